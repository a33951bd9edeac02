"""What the broker knows of a group: members, owners of queues, and stored progress."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.sim.consumers.scenario import GroupScenario, Load
from tornpage.sim.distributions import Int64s
from tornpage.sim.events.bell import now_ns
from tornpage.sim.streams import Draws, stream

__all__ = ["Broker", "BrokerQueue"]


@dataclass(slots=True)
class BrokerQueue:
    """One queue: its messages, its owner, and the progress of the group."""

    number: int
    arrivals_ns: Int64s
    service_ns: Int64s
    progress: int = 0
    owner: str | None = None
    stored: list[tuple[int, int]] = field(default_factory=list)
    """Each change of the progress: time and offset."""

    def end(self, at_ns: int) -> int:
        """Return the offset after the last message at a time."""
        return int(self.arrivals_ns.searchsorted(at_ns, side="right"))


class Broker:
    """Members and queues. `wake` of each member is called after a notice."""

    def __init__(self, env: Environment, scenario: GroupScenario, load: Load, seed: int) -> None:
        self.queues = [
            BrokerQueue(number, arrivals, service)
            for number, (arrivals, service) in enumerate(zip(load.arrivals_ns, load.service_ns, strict=True))
        ]
        self.members: dict[str, Callable[[], None]] = {}
        self._env = env
        self._notice = None if scenario.notice is None else Draws(scenario.notice, stream(seed, "notices"))

    def join(self, name: str, wake: Callable[[], None]) -> None:
        """Add a member."""
        self.members[name] = wake
        self.notify(but=name)

    def remove(self, name: str) -> None:
        """Remove a member."""
        if self.members.pop(name, None) is not None:
            self.notify(but=name)

    def notify(self, but: str) -> None:
        """Wake the members but one, each after the time of a notice."""
        if self._notice is not None:
            for name in self.members:
                if name != but:
                    self._env.process(self._notified(name, self._notice.next()))

    def _notified(self, name: str, after_ns: int) -> ProcessGenerator:
        yield self._env.timeout(after_ns)
        if name in self.members:
            self.members[name]()

    def claims(self, queue: BrokerQueue, name: str) -> bool:
        """Give a queue to a member, unless a living member owns it; return whether it has it."""
        if queue.owner is None or queue.owner == name or queue.owner not in self.members:
            queue.owner = name
        return queue.owner == name

    def store(self, queue: BrokerQueue, offset: int, name: str, *, fenced: bool) -> None:
        """Store progress.

        With `fenced`, only the owner may. Without, the last writer wins, also with a lower offset, as in RocketMQ.
        """
        if fenced and (queue.owner != name or offset < queue.progress):
            return
        if offset != queue.progress:
            queue.progress = offset
            queue.stored.append((now_ns(self._env), offset))
