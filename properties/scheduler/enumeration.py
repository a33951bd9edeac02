"""Enumerate every schedule of a small case exactly once."""

from collections.abc import Callable, Iterator, Sequence

__all__ = ["every_schedule", "following"]


def every_schedule(run: Callable[[tuple[int, ...]], Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield each schedule after `run` has run it, in lexicographic order.

    The sequential schedule comes first.

    Args:
        run: Runs one schedule on fresh state and returns the `options` of its trace.

    The schedules are all different interleavings, and together all that exist. Their number grows exponentially.
    """
    schedule: tuple[int, ...] | None = ()
    while schedule is not None:
        options = run(schedule)
        yield schedule + (0,) * (len(options) - len(schedule))
        schedule = following(schedule, options)


def following(schedule: Sequence[int], options: Sequence[int]) -> tuple[int, ...] | None:
    """Return the next schedule after one with these `options`; None after the last."""
    chosen = (*schedule, *(0,) * (len(options) - len(schedule)))
    last = next((at for at in reversed(range(len(options))) if chosen[at] + 1 < options[at]), None)
    return None if last is None else (*chosen[:last], chosen[last] + 1)
