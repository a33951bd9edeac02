"""The order of actors at the same nanosecond.

SimPy orders equal times by priority, and only then by the order of requests. Every actor that looks at the state of
others waits by a turn of its own rank. So what it sees follows from times alone, not from the order in which events
were made. The fast engine knows only times.

| rank | actor |
|---|---|
| `simpy`'s own | the put lock and the allocator: their actions follow from times alone |
| PRODUCERS + number | a closed producer that arrives |
| COMMITTER | the committer, which sees everything written by now |
| FLUSHER | the flusher, which sees everything committed by now |
| KERNEL | the kernel's write-back |
| END | the end of the run |

A producer acknowledged by a flush is not seen by a flush decision at the same nanosecond.
"""

from simpy import Environment, Event

__all__ = ["COMMITTER", "END", "FLUSHER", "KERNEL", "PRODUCERS", "Turn"]

PRODUCERS = 16
COMMITTER = 1 << 20
FLUSHER = COMMITTER + 1
KERNEL = COMMITTER + 2
END = COMMITTER + 3


class Turn(Event):
    """An event `delay_ns` from now, after all events of lower rank at that moment."""

    def __init__(self, env: Environment, delay_ns: int, rank: int) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, rank, delay_ns)  # type: ignore[arg-type]
