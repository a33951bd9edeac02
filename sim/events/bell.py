"""The simulated time, and an event that happens repeatedly."""

from collections.abc import Callable

from simpy import Environment, Event
from simpy.events import ProcessGenerator

from tornpage.sim.events.turns import Turn

__all__ = ["Bell", "now_ns", "until_due"]


def now_ns(env: Environment) -> int:
    """Return the simulated time; all delays are whole ns, so the time is whole."""
    return env.now  # type: ignore[return-value]


class Bell:
    """A repeated event. A waiting actor checks again after each ring whether it was meant."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._event: Event | None = None

    def wait(self) -> Event:
        """Return the event of the next ring."""
        if self._event is None:
            self._event = self._env.event()
        return self._event

    def wait_until(self, at_ns: int, rank: int) -> Event:
        """Return an event of the next ring, or of a turn of this rank at `at_ns` if that is first."""
        either = self._env.event()

        def happen(_: Event) -> None:
            if not either.triggered:
                either.succeed()

        for event in (self.wait(), Turn(self._env, at_ns - now_ns(self._env), rank)):
            assert event.callbacks is not None
            event.callbacks.append(happen)
        return either

    def ring(self) -> None:
        """Wake all waiting actors."""
        if self._event is not None:
            event, self._event = self._event, None
            event.succeed()


def until_due(
    env: Environment, bell: Bell, due: Callable[[], int | None], *, until_ns: int, wake_ns: int, rank: int
) -> ProcessGenerator:
    """Sleep until there is work, and for the wake time, but not beyond `until_ns`.

    `due` returns when the work is or was due, None while that is unknown. The bell rings when it may be known.
    """
    begin_ns, due_ns = now_ns(env), due()
    while due_ns is None and now_ns(env) < until_ns:
        yield bell.wait_until(until_ns, rank)
        due_ns = due()
    if due_ns is None or due_ns > begin_ns:
        start_ns = until_ns if due_ns is None else min(until_ns, due_ns + wake_ns)
        yield Turn(env, start_ns - now_ns(env), rank)
