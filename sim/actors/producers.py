"""The producers, one generator each.

Open producers are one generator for all of them, since none waits for an answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.impl.config.policy import FlushPolicy
from tornpage.sim.distributions import Int64s
from tornpage.sim.events.bell import now_ns
from tornpage.sim.events.turns import PRODUCERS, Turn
from tornpage.sim.log.log import Log
from tornpage.sim.streams import Draws
from tornpage.sim.workload import OpenLoad

__all__ = ["Progress", "Turnstile", "arrivals", "closed_producer", "open_producers", "watched", "without_progress"]

ARRIVALS_AT_ONCE = 1 << 16
PORTION = 1 << 12

Progress = Callable[[int], None]
"""Called now and then with the number of messages sent."""


def without_progress(messages: int) -> None:
    """Ignore the number of messages sent."""


@dataclass(slots=True)
class Turnstile:
    """The number of messages that closed producers may still send, and of producers left.

    Messages are admitted in portions, so that reporting to `progress` costs nothing per message.
    """

    messages: int | None
    """Messages that are in no portion yet."""
    producers: int
    progress: Progress = without_progress
    portion: int = 0
    handed_out: int = 0

    def admits(self) -> bool:
        """Admit one message, unless the last one was sent."""
        if self.portion or self._has_another_portion():
            self.portion -= 1
            return True
        return False

    def _has_another_portion(self) -> bool:
        self.progress(self.handed_out)
        self.portion = PORTION if self.messages is None else min(PORTION, self.messages)
        self.handed_out += self.portion
        if self.messages is not None:
            self.messages -= self.portion
        return self.portion > 0


def arrivals(
    workload: OpenLoad,
    *,
    messages: int | None,
    duration_ns: int | None,
    arrival_rng: np.random.Generator,
    size_rng: np.random.Generator,
) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield blocks of arrivals and sizes until the load ends; no block is empty.

    The load ends after `messages`, or after `duration_ns`.
    """
    times = workload.clock(arrival_rng)
    sent = 0
    while messages is None or sent < messages:
        count = ARRIVALS_AT_ONCE if messages is None else min(ARRIVALS_AT_ONCE, messages - sent)
        at_ns = times.take(count)
        sizes = workload.sizes.draw(size_rng, count)
        if duration_ns is not None:
            count = int(at_ns.searchsorted(duration_ns, side="right"))
        if count:
            yield at_ns[:count], sizes[:count]
        if count < len(at_ns):
            return
        sent += count


def watched(blocks: Iterator[tuple[Int64s, Int64s]], progress: Progress) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the blocks of `arrivals`, and report the messages sent before each next block."""
    sent = 0
    for block in blocks:
        yield block
        sent += len(block[0])
        progress(sent)


def open_producers(env: Environment, log: Log, *, blocks: Iterator[tuple[Int64s, Int64s]]) -> ProcessGenerator:
    """Send what `arrivals` yields.

    A block is handed over when the last message of the block before arrives.
    """
    for at_ns, sizes in blocks:
        log.arrive_many(at_ns, sizes)
        yield env.timeout(at_ns.item(-1) - now_ns(env))
    log.close()


def closed_producer(
    env: Environment,
    log: Log,
    turnstile: Turnstile,
    *,
    number: int,
    policy: FlushPolicy,
    duration_ns: int | None,
    think: Draws,
    sizes: Draws,
) -> ProcessGenerator:
    """Think, put, wait for the answer, in a loop.

    The loop ends when the turnstile closes or the next put would be after `duration_ns`.
    """
    answered_ns = now_ns(env)
    while True:
        arrives_ns = answered_ns + think.next()
        if duration_ns is not None and arrives_ns > duration_ns:
            break
        yield Turn(env, arrives_ns - now_ns(env), PRODUCERS + number)
        if not turnstile.admits():
            break
        row = log.arrive(arrives_ns, sizes.next(), number)
        if turnstile.portion == 0 == turnstile.messages:
            log.close()
        if policy.answers_after_flush(wait_store_msg_ok=True):
            while log.durable_rows <= row:
                yield log.made_durable.wait()
            answered_ns = log.answered_ns(row)
        else:
            while log.planned_rows <= row:
                yield log.planned.wait()
            answered_ns = log.written_ns.item(row)
    turnstile.producers -= 1
    if turnstile.producers == 0:
        log.close()
