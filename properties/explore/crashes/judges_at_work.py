"""Which judges had something to compare in a recovered store.

A judge that looks at an empty log, or at a checkpoint that says nothing, agrees with everything: it is armed, and has
not fired. Each entry says what its judge needs in order to fire; all of them cost next to nothing, since they are asked
for each state. That a judge can go red is shown by a planted violation (properties/explore/crashes/violations.py).
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from model.delay import SCHEDULE_TOPIC
from properties.judge.derived_files import EXTENSIONS
from properties.judge.judges import JUDGES, ROOT, LegalLogs, physic_timestamp
from properties.judge.progress_judges import CONSUMER_FILES
from properties.judge.progress_ledger import DELAY_OFFSETS
from properties.judge.queue_judges import checkpoint_times
from properties.judge.recovered import Recovered
from properties.program.case import Settings

__all__ = [
    "ALL_JUDGES",
    "NEEDS",
    "OF_SOME_STORES",
    "armed_judges",
    "fired_by_legal",
    "fired_by_recovery",
    "fired_judges",
]


Need = Literal[
    "image", "head gone", "records", "room behind", "time", "units", "extension", "entries", "times of queues",
    "saved delays", "delays", "progress", "groups",
]  # fmt: skip
"""What a recovered store must have for a judge to compare something."""

NEEDS: Mapping[str, Need] = {
    "opens_for_writing": "image",
    "begins_where_it_may": "head gone",
    "is_a_prefix": "records",
    "covers_the_floor": "records",
    "nothing_behind_the_end": "room behind",
    "recovered_is_durable": "records",
    "watermarks_in_order": "records",
    "checkpoint_is_not_ahead": "time",
    "queues_hold_the_log": "units",
    "extensions_hold_the_log": "extension",
    "index_holds_the_log": "entries",
    "queues_have_their_bounds": "units",
    "queues_are_read_in_order": "units",
    "times_are_found": "units",
    "keys_are_found": "entries",
    "checkpoint_is_not_ahead_of_queues": "times of queues",
    "nothing_delayed_is_left_out": "saved delays",
    "delivery_goes_on_where_it_was_saved": "delays",
    "small_files_are_whole": "records",
    "floors_say_what_is_durable": "records",
    "files_are_old_or_new": "progress",
    "nobody_is_led_past": "groups",
}
"""By name of the judge."""

ALL_JUDGES = tuple(f"judge_{judge.__name__}" for judge in JUDGES)

OF_SOME_STORES = frozenset({"judge_extensions_hold_the_log"})
"""Judges of what few stores have: a store without an extension does not arm them."""

_OF_EVERY_STORE = tuple(name for name in ALL_JUDGES if name not in OF_SOME_STORES)


def armed_judges(settings: Settings) -> tuple[str, ...]:
    """Return the judges that a store with these settings arms, as activation tables call them."""
    return ALL_JUDGES if settings.queue_ext else _OF_EVERY_STORE


def fired_judges(found: Recovered) -> tuple[str, ...]:
    """Return the judges that had something to compare, as an activation table calls them."""
    return (*fired_by_legal(found.legal), *fired_by_recovery(found))


def fired_by_legal(legal: LegalLogs) -> tuple[str, ...]:
    """Return those to whom the legal logs give something to compare, whatever was recovered."""
    return _judges_with(("head gone",) if any(next(iter(legal))[2:]) else ())


def fired_by_recovery(found: Recovered) -> tuple[str, ...]:
    """Return those to whom the disk and what was recovered from it do: equal images, equal judges."""
    said, derived, before = found.said_before, found.derived, found.files.base
    _, end_offset, begin_offset, _ = found.key  # the store itself may have gone on since
    has_records = end_offset > begin_offset
    is_master = found.layout.role != "SLAVE"
    has_saved_delays = is_master and bool(said.get(DELAY_OFFSETS))
    has_times = any((*checkpoint_times(before), *checkpoint_times(found.durable)))
    there: tuple[tuple[Need, bool], ...] = (
        ("image", bool(before.files)),
        ("records", has_records),
        ("room behind", end_offset % found.ledger.file_bytes != 0),
        ("time", physic_timestamp(found.durable) > 0),
        ("units", has_records and bool(derived.queues)),
        ("extension", has_records and found.settings.queue_ext and _has_extension(found)),
        ("entries", has_records and bool(derived.keys)),
        (
            "times of queues",
            has_times and not found.was_harmed,
        ),
        ("saved delays", has_saved_delays),
        ("delays", has_saved_delays or any(topic == SCHEDULE_TOPIC for topic, _ in derived.queues)),
        ("progress", any(said.values())),
        ("groups", any(said.get(path) for path in CONSUMER_FILES)),
    )
    return _judges_with(tuple(need for need, is_there in there if is_there))


def _has_extension(found: Recovered) -> bool:
    return any(path.startswith(f"{ROOT}/{EXTENSIONS}") for path in found.files.paths())


@cache
def _judges_with(needs: tuple[Need, ...]) -> tuple[str, ...]:
    return tuple(f"judge_{judge.__name__}" for judge in JUDGES if NEEDS[judge.__name__] in needs)
