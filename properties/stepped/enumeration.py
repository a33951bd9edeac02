"""Every schedule of a small case, without repeating one."""

from collections.abc import Callable, Iterator, Sequence

__all__ = ["every_schedule"]


def every_schedule(run: Callable[[tuple[int, ...]], Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield each schedule after `run` carried it out, in lexicographic order, the sequential one first.

    Args:
        run: Carries out one schedule on fresh state and returns the `options` of its trace.

    No two of them are the same interleaving, and together they are all of them. There are exponentially many.
    """
    schedule: tuple[int, ...] = ()
    while True:
        options = run(schedule)
        chosen = schedule + (0,) * (len(options) - len(schedule))
        yield chosen
        last = next((at for at in reversed(range(len(options))) if chosen[at] + 1 < options[at]), None)
        if last is None:
            return
        schedule = (*chosen[:last], chosen[last] + 1)
