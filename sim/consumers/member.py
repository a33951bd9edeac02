"""One member of a group: pullers, listener threads, and timers of progress and rebalance."""

from collections import deque
from collections.abc import Callable

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.consumer.queues import MessageQueue
from tornpage.sim.consumers.broker import Broker, BrokerQueue
from tornpage.sim.consumers.scenario import GroupScenario, Member
from tornpage.sim.events.bell import Bell, now_ns
from tornpage.sim.streams import Draws, stream

__all__ = ["Client", "Observer"]

Observer = Callable[[int, int, int, int, int, str], None]
"""Receives queue, offset, the times of the pull, of the begin and of the end of a listener, and the member."""


class _Held:
    """A queue that a member holds.

    Cached are the offsets from `low` to `next`, but those that are finished. `begun` follows the last offset that a
    listener has got. `hand_overs` counts those that have begun.
    """

    def __init__(self, queue: BrokerQueue) -> None:
        self.queue = queue
        self.low = self.next = self.begun = queue.progress
        self.running = self.hand_overs = 0
        self.is_dropped = self.is_draining = False
        self._done: set[int] = set()

    @property
    def cached(self) -> int:
        """The number of cached messages."""
        return self.next - self.low - len(self._done)

    @property
    def span(self) -> int:
        """The difference of the highest and the lowest cached offset."""
        return max(0, self.next - 1 - self.low)

    def finish(self, offset: int) -> None:
        """Finish a message; the progress is the lowest offset that is not finished."""
        self._done.add(offset)
        while self.low in self._done:
            self._done.remove(self.low)
            self.low += 1


class Client:
    """The actors of one member."""

    def __init__(
        self, env: Environment, broker: Broker, scenario: GroupScenario, member: Member, seed: int, observe: Observer
    ) -> None:
        self._env, self._broker, self._scenario, self._member = env, broker, scenario, member
        self._observe = observe
        self._held: dict[int, _Held] = {}
        self._ready: deque[tuple[_Held, int, int]] = deque()
        self._work, self._changes, self._idle = Bell(env), Bell(env), Bell(env)
        self._pulls = Draws(scenario.pull, stream(seed, f"pulls of {member.name}"))
        self._is_over = self._is_leaving = self._is_woken = False
        self.busy_ns = 0
        self.moved = 0
        env.process(self._life())

    @property
    def name(self) -> str:
        """The client id."""
        return self._member.name

    # ---- life ----------------------------------------------------------------------------------------------------

    def _life(self) -> ProcessGenerator:
        member, env = self._member, self._env
        yield env.timeout(member.joins_ns)
        self._broker.join(self.name, self._wake)
        for _ in range(member.threads):
            env.process(self._thread())
        env.process(self._rounds())
        env.process(self._persisting())
        if member.ends_ns is None:
            return
        yield env.timeout(member.ends_ns - now_ns(env))
        if member.crashes_ns is not None:
            self._is_over = True
            yield env.timeout(self._scenario.noticed_ns)
            self._broker.remove(self.name)
            return
        self._is_leaving = True
        for held in tuple(self._held.values()):
            self._give_up(held)
        while self._held:
            yield self._idle.wait()
        self._is_over = True
        self._broker.remove(self.name)

    def _wake(self) -> None:
        self._is_woken = True
        self._changes.ring()

    # ---- rebalance -----------------------------------------------------------------------------------------------

    def _rounds(self) -> ProcessGenerator:
        """Divide the queues at the begin, in each period, after a notice or a refused claim."""
        scenario, env = self._scenario, self._env
        due_ns = now_ns(env)
        while not self._is_over and not self._is_leaving:
            self._is_woken = False
            if now_ns(env) >= due_ns:
                due_ns = now_ns(env) + scenario.rebalance_ns
            is_whole = self._divide()
            until_ns = due_ns if is_whole else min(due_ns, now_ns(env) + scenario.claim_ns)
            while not self._is_woken and now_ns(env) < until_ns:
                yield self._changes.wait_until(until_ns, 0)

    def _divide(self) -> bool:
        """Give up and take queues; return whether each queue of the share is held."""
        if self.name not in self._broker.members:
            return True
        names = {MessageQueue("T", "b", queue.number): queue for queue in self._broker.queues}
        share = self._scenario.strategy(self.name, tuple(names), tuple(self._broker.members))
        wanted = {names[name].number: names[name] for name in share}
        for number, held in tuple(self._held.items()):
            if number not in wanted:
                self._give_up(held)
            elif held.is_draining:
                held.is_draining = False
                held.next = held.begun
                self._env.process(self._puller(held))
        for number, queue in wanted.items():
            if number not in self._held and (not self._scenario.hands_over or self._broker.claims(queue, self.name)):
                held = self._held[number] = _Held(queue)
                self.moved += 1
                self._env.process(self._puller(held))
        return wanted.keys() <= self._held.keys()

    def _give_up(self, held: _Held) -> None:
        if not self._scenario.hands_over:
            held.is_dropped = True
            self._store(held)
            del self._held[held.queue.number]
            self._idle.ring()
        elif not held.is_draining:
            held.is_draining = True
            held.hand_overs += 1
            self._env.process(self._hand_over(held, held.hand_overs))

    def _hand_over(self, held: _Held, number: int) -> ProcessGenerator:
        """Wait for the running listeners, store the progress, release the queue.

        Nothing is done after another hand-over of the queue has begun, or after this one was called off.
        """
        give_up_ns = now_ns(self._env) + self._scenario.hand_over_ns
        while self._goes_on(held, number) and held.running and now_ns(self._env) < give_up_ns:
            yield self._idle.wait_until(give_up_ns, 0)
        if not self._goes_on(held, number):
            return
        held.is_dropped = True
        self._store(held)
        held.queue.owner = None
        del self._held[held.queue.number]
        self._broker.notify(but=self.name)
        self._idle.ring()

    def _goes_on(self, held: _Held, number: int) -> bool:
        return held.is_draining and held.hand_overs == number and not self._is_over

    # ---- progress ------------------------------------------------------------------------------------------------

    def _persisting(self) -> ProcessGenerator:
        yield self._env.timeout(self._scenario.first_persist_ns)
        while not self._is_over:
            for held in self._held.values():
                self._store(held)
            yield self._env.timeout(self._scenario.persist_ns)

    def _store(self, held: _Held) -> None:
        self._broker.store(held.queue, held.low, self.name, fenced=self._scenario.hands_over)

    # ---- messages ------------------------------------------------------------------------------------------------

    def _puller(self, held: _Held) -> ProcessGenerator:
        """Pull one queue.

        A pull carries the progress, and the broker holds it while there is no message.
        """
        scenario, env = self._scenario, self._env
        while not (self._is_over or held.is_dropped or held.is_draining):
            room = scenario.prefetch - held.cached
            if room < 1 or held.span >= scenario.span:
                yield env.timeout(scenario.pause_ns)
                continue
            self._store(held)
            took_ns = self._pulls.next()
            yield env.timeout(took_ns // 2)
            asked = held.next
            if held.queue.end(now_ns(env)) <= asked:
                yield from self._held_pull(held, asked)
            end = min(held.queue.end(now_ns(env)), asked + min(room, scenario.batch))
            yield env.timeout(took_ns - took_ns // 2)
            if self._is_over or held.is_dropped or held.is_draining or held.next != asked:
                return
            pulled_ns = now_ns(env)
            self._ready.extend((held, offset, pulled_ns) for offset in range(asked, end))
            held.next = end
            self._work.ring()

    def _held_pull(self, held: _Held, asked: int) -> ProcessGenerator:
        """Wait for the next message, or for the end of the time that the broker holds a pull."""
        arrivals = held.queue.arrivals_ns
        wait_ns = self._scenario.hold_ns
        if asked < len(arrivals):
            wait_ns = min(wait_ns, int(arrivals[asked]) - now_ns(self._env))
        yield self._env.timeout(wait_ns)

    def _thread(self) -> ProcessGenerator:
        env = self._env
        while not self._is_over:
            if not self._ready:
                yield self._work.wait()
                continue
            held, offset, pulled_ns = self._ready.popleft()
            if held.is_dropped or held.is_draining or offset < held.begun:
                continue
            held.begun = offset + 1
            held.running += 1
            begun_ns = now_ns(env)
            yield env.timeout(int(held.queue.service_ns[offset]))
            self._note(held, offset, pulled_ns, begun_ns)

    def _note(self, held: _Held, offset: int, pulled_ns: int, begun_ns: int) -> None:
        """Note a finished run, or one that a crash has ended."""
        crash_ns = self._member.crashes_ns
        has_crashed = self._is_over and crash_ns is not None
        end_ns = crash_ns if has_crashed and crash_ns is not None else now_ns(self._env)
        self.busy_ns += end_ns - begun_ns
        self._observe(held.queue.number, offset, pulled_ns, begun_ns, -1 if has_crashed else end_ns, self.name)
        held.running -= 1
        if not held.is_dropped and not has_crashed:
            held.finish(offset)
        self._idle.ring()
