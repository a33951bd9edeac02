"""A step of the statistics that an interrupt ended left no samples.

The clock had been set back. Each later step raised IndexError, and so did the put or snapshot that made it.
"""

import pytest

from tornpage.impl.statistics.store_statistics import StoreStatistics


class Interrupted(StoreStatistics):
    """Statistics whose next count of answers is interrupted, as by a signal."""

    is_interrupted = True

    def _count_answers(self) -> None:
        if self.is_interrupted:
            self.is_interrupted = False
            raise KeyboardInterrupt
        super()._count_answers()


def test_a_step_continues_after_an_interrupt_of_the_last_one() -> None:
    statistics = Interrupted(started_ms=100_000)
    with pytest.raises(KeyboardInterrupt):
        statistics.step(50_000)
    assert statistics.step(51_000) > 51_000
    assert statistics.snapshot(51_000).rate_10s is None
