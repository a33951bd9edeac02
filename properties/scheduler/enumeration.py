"""Every schedule of a small case, without repeating one."""

from collections.abc import Callable, Iterator, Sequence

__all__ = ["every_schedule", "following"]


def every_schedule(run: Callable[[tuple[int, ...]], Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield each schedule after `run` carried it out, in lexicographic order, the sequential one first.

    Args:
        run: Carries out one schedule on fresh state and returns the `options` of its trace.

    No two of them are the same interleaving, and together they are all of them. There are exponentially many.
    """
    schedule: tuple[int, ...] | None = ()
    while schedule is not None:
        options = run(schedule)
        yield schedule + (0,) * (len(options) - len(schedule))
        schedule = following(schedule, options)


def following(schedule: Sequence[int], options: Sequence[int]) -> tuple[int, ...] | None:
    """Return the schedule behind one that had so many `options` at each decision; None behind the last one."""
    chosen = (*schedule, *(0,) * (len(options) - len(schedule)))
    last = next((at for at in reversed(range(len(options))) if chosen[at] + 1 < options[at]), None)
    return None if last is None else (*chosen[:last], chosen[last] + 1)
