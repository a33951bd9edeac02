"""List the judges by their evidence, in the order in which they run (docs/contract.md).

Each judge knows one numbered promise and takes `Evidence`. Activation tables count the judges of a recorded disk by
name. properties/explore/kills/judge.py lists the judges of killed processes.
"""

from collections.abc import Callable, Mapping

from tornpage.properties.judge.delay import DELAY_JUDGES, nothing_delayed_is_left_out
from tornpage.properties.judge.evidence import Evidence
from tornpage.properties.judge.idempotence import recovered_is_durable
from tornpage.properties.judge.image_evidence import ImageEvidence
from tornpage.properties.judge.index import index_holds_the_log, keys_are_found
from tornpage.properties.judge.log import (
    begins_where_it_may,
    covers_the_floor,
    is_a_prefix,
    log_reads_to_its_end,
    nothing_behind_the_end,
    promises_of_an_image_are_kept,
    records_were_put,
    watermarks_in_order,
)
from tornpage.properties.judge.progress import (
    PROGRESS_JUDGES,
    progress_of_an_image_is_kept,
    progress_of_an_image_is_whole,
)
from tornpage.properties.judge.queues import (
    extensions_hold_the_log,
    nothing_is_left_to_dispatch,
    queues_are_read_in_order,
    queues_have_their_bounds,
    queues_hold_the_log,
    times_are_found,
)
from tornpage.properties.judge.reachable import puts_are_reached
from tornpage.properties.judge.rulings import Ruling
from tornpage.properties.judge.small_files import (
    SMALL_FILE_JUDGES,
    checkpoint_is_not_ahead,
    checkpoint_is_not_ahead_of_queues,
    floors_say_what_is_durable,
    small_files_are_whole,
)
from tornpage.properties.judge.start import (
    cut_records_are_kept,
    damage_is_named_and_kept,
    is_exclusive,
    opens_for_writing,
)

__all__ = ["JUDGES", "JUDGES_OF_IMAGES", "OF_THE_PROCESS", "QUEUE_JUDGES"]

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
"""In the order in which they run."""

JUDGES: tuple[Callable[[Evidence], Ruling], ...] = (
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
"""In the order in which they run."""

OF_THE_PROCESS: frozenset[Callable[[Evidence], Ruling]] = frozenset(
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
"""Judges that only depend on the view and answers of the process, and on the persisted log and progress files."""

JUDGES_OF_IMAGES: Mapping[int, tuple[Callable[[ImageEvidence], Ruling], ...]] = {
    1: (log_reads_to_its_end, is_a_prefix, records_were_put),
    2: (covers_the_floor, promises_of_an_image_are_kept),
    3: (nothing_behind_the_end,),
    4: (queues_hold_the_log, extensions_hold_the_log),
    5: (index_holds_the_log, keys_are_found),
    7: (opens_for_writing, floors_say_what_is_durable, cut_records_are_kept, damage_is_named_and_kept),
    9: (watermarks_in_order, checkpoint_is_not_ahead, checkpoint_is_not_ahead_of_queues),
    13: (progress_of_an_image_is_kept, small_files_are_whole, progress_of_an_image_is_whole),
    16: (nothing_is_left_to_dispatch,),
    17: (queues_have_their_bounds, queues_are_read_in_order, times_are_found),
    18: (puts_are_reached,),
    14: (is_exclusive,),
}
"""By number, in the order in which they run. Number 6 recovers again and runs last."""
