"""Who acts first among those who act at the same nanosecond.

SimPy orders equal times by priority, and only then by who asked first. Everyone who looks at the state of others waits
by a turn of his own rank, so that what he sees follows from times alone, not from the order in which events were made.
The fast engine knows times and nothing else.

| rank | who |
|---|---|
| `simpy`'s own | the put lock, the allocator: what they do follows from times alone |
| PRODUCERS + number | a closed producer, who arrives |
| COMMITTER | the committer, who sees all that is written by now |
| FLUSHER | the flusher, who sees all that is committed by now |
| KERNEL | the kernel's write-back |
| END | the end of the run |

Whom a flush answers is too late for the look that follows it at once.
"""

from simpy import Environment, Event

__all__ = ["COMMITTER", "END", "FLUSHER", "KERNEL", "PRODUCERS", "Turn"]

PRODUCERS = 16
COMMITTER = 1 << 20
FLUSHER = COMMITTER + 1
KERNEL = COMMITTER + 2
END = COMMITTER + 3


class Turn(Event):
    """An event that happens `delay_ns` from now, after all of lower rank that happen at that moment."""

    def __init__(self, env: Environment, delay_ns: int, rank: int) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, rank, delay_ns)  # type: ignore[arg-type]
