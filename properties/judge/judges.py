"""List the judges of a recovered store (docs/contract.md).

Each judge looks at one recovered store and knows one numbered promise. Its name is what activation tables count.
"""

from collections.abc import Callable

from properties.judge.delay import DELAY_JUDGES, nothing_delayed_is_left_out
from properties.judge.evidence import Recovered
from properties.judge.idempotence import recovered_is_durable
from properties.judge.index import index_holds_the_log, keys_are_found
from properties.judge.log import (
    begins_where_it_may,
    covers_the_floor,
    is_a_prefix,
    nothing_behind_the_end,
    watermarks_in_order,
)
from properties.judge.progress import PROGRESS_JUDGES
from properties.judge.queues import (
    extensions_hold_the_log,
    queues_are_read_in_order,
    queues_have_their_bounds,
    queues_hold_the_log,
    times_are_found,
)
from properties.judge.rulings import Ruling
from properties.judge.small_files import SMALL_FILE_JUDGES, checkpoint_is_not_ahead, checkpoint_is_not_ahead_of_queues
from properties.judge.start import opens_for_writing

__all__ = ["JUDGES", "OF_THE_PROCESS", "QUEUE_JUDGES"]

QUEUE_JUDGES = (
    queues_hold_the_log,
    extensions_hold_the_log,
    index_holds_the_log,
    queues_have_their_bounds,
    queues_are_read_in_order,
    times_are_found,
    keys_are_found,
    checkpoint_is_not_ahead_of_queues,
)
"""In the order in which they speak."""

JUDGES: tuple[Callable[[Recovered], Ruling], ...] = (
    opens_for_writing,
    begins_where_it_may,
    is_a_prefix,
    covers_the_floor,
    nothing_behind_the_end,
    recovered_is_durable,
    watermarks_in_order,
    checkpoint_is_not_ahead,
    *QUEUE_JUDGES,
    *SMALL_FILE_JUDGES,
    *PROGRESS_JUDGES,
    *DELAY_JUDGES,
)
"""In the order in which they speak."""

OF_THE_PROCESS: frozenset[Callable[[Recovered], Ruling]] = frozenset(
    {
        is_a_prefix,
        watermarks_in_order,
        queues_hold_the_log,
        extensions_hold_the_log,
        index_holds_the_log,
        queues_have_their_bounds,
        queues_are_read_in_order,
        times_are_found,
        keys_are_found,
        nothing_delayed_is_left_out,
    }
)
"""Those that look at what a process has and answers, and at what the log and the progress files say: nowhere else."""
