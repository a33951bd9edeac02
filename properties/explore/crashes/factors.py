"""List the factors of a run and their levels, and name the levels that a run had.

Every setting of the store, every rule and service of the workload, and every fault is a factor. The strategy `covering`
draws one row of a covering array for each run (properties/program/covering.py), so that a campaign soon has run every
pair of levels. `Combination` turns a row into what the run draws from.

The coverage table does not count rows. It counts the levels that a run had: the settings of its store, and the
operations and faults that happened in it. `off` or `none` is the level of a factor of which nothing happened.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, get_args

from tornpage.model.operations import (
    AimFault,
    Damage,
    DamageKind,
    DerivedFile,
    DerivedHarm,
    Operation,
    ProgressHarm,
    ServiceName,
)
from tornpage.properties.disk.sampling import FAULTS
from tornpage.properties.explore.crashes.end_faults import FIELDS, READS_BEFORE, UNITS_HARMS, Beside, EndChoices
from tornpage.properties.judge.queues import MADE_GOOD
from tornpage.properties.program.case import Settings
from tornpage.properties.program.covering import CoveringArray, Pair, Row
from tornpage.properties.program.drawing import PROPERTIES, TOPICS, WORDS, Words
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_stories import CALLS, PLACES
from tornpage.properties.program.workload import RULES

__all__ = [
    "ABSENT",
    "EXCLUDED",
    "FACTORS",
    "PLANNED",
    "RUNS_PER_ARRAY",
    "RUNS_PER_SHARD",
    "SEEDS_PER_SHARD",
    "SESSIONS",
    "STANDARD_ROW",
    "Happened",
    "damages_of_row",
    "end_choices_of_row",
    "levels_of",
    "row_of",
    "services_of_row",
    "settings_of_row",
    "text_of_levels",
    "words_of_row",
]

ABSENT = ("off", "none")
"""The levels that say that nothing of the factor happened."""

Fields = Mapping[str, Any]

_SETTINGS: Mapping[str, Mapping[str, Fields]] = {
    "durability": {
        "async": {"sync_flush": False, "pool_buffers": 0, "fast_fail": False},
        "sync": {"sync_flush": True, "pool_buffers": 0, "fast_fail": False},
        "pool_of_1": {"sync_flush": False, "pool_buffers": 1, "fast_fail": False},
        "pool_of_2": {"sync_flush": False, "pool_buffers": 2, "fast_fail": False},
        "pool_refusing": {"sync_flush": False, "pool_buffers": 2, "fast_fail": True},
    },
    "least_pages": {str(pages): {"least_pages": pages} for pages in (4, 1, 8, 16)},
    "files_ahead": {str(files): {"files_ahead": files} for files in (0, 1)},
    "pending_copies": {str(copies): {"pending_copies": copies} for copies in (0, 2, 3)},
    "trailer": {"on": {"trailer": True}, "without": {"trailer": False}},
    "light_queues": {
        "off": {"multi_dispatch": False, "light_queues": False, "light_queues_max": 20_000},
        "on": {"multi_dispatch": True, "light_queues": True, "light_queues_max": 20_000},
        "up_to_1": {"multi_dispatch": True, "light_queues": True, "light_queues_max": 1},
    },
    "delay_levels": {str(levels): {"delay_levels": levels} for levels in (18, 2)},
    "log_directories": {
        "1": {"log_paths": 1, "first_disk_full": False, "second_disk_full": False},
        "2": {"log_paths": 2, "first_disk_full": False, "second_disk_full": False},
        "first_full": {"log_paths": 2, "first_disk_full": True, "second_disk_full": False},
        "second_full": {"log_paths": 2, "first_disk_full": False, "second_disk_full": True},
    },
    "queue_units": {str(units): {"queue_units": units} for units in (16, 4, 8)},
    "extension": {
        "off": {"queue_ext": False, "bit_maps": False},
        "on": {"queue_ext": True, "bit_maps": False},
        "bit_maps": {"queue_ext": True, "bit_maps": True},
    },
    "index_slots": {str(slots): {"index_slots": slots} for slots in (3, 1, 10)},
    "index_entries": {
        **{str(entries - 1): {"index": True, "index_entries": entries} for entries in (24, 2, 10, 64)},
        "none": {"index": False},
    },
    "verify_reads": {mode: {"verify_reads": mode} for mode in ("always", "once", "never")},
    "role": {role: {"role": role} for role in ("ASYNC_MASTER", "SYNC_MASTER")},
    "pull_limits": {
        "usual": {"pull_count": 32, "pull_bytes": 262_144, "far_count": 8, "far_bytes": 65_536, "memory_bytes": 0},
        "small": {"pull_count": 5, "pull_bytes": 3_000, "far_count": 2, "far_bytes": 1_500, "memory_bytes": 10_240},
    },
    "confirms": {"off": {"confirms": False}, "on": {"confirms": True}},
}
"""By factor and level: the settings."""

_BARE = ("", "TAGS\x01TagA", "TAGS\x01TagB")
_WITH_KEYS = tuple(text for text in PROPERTIES if "KEYS" in text)
_DELAYED = ("DELAY\x011", "DELAY\x013\x02TAGS\x01TagB", "DELAY\x011\x02KEYS\x01k1", "KEYS\x01k1 k2\x02TAGS\x01TagA")

_WORDS: Mapping[str, tuple[str, Mapping[str, Fields]]] = {
    "topics": (
        "put",
        {
            "three": {"topics": TOPICS, "queues": 2, "topics_move": False},
            "one_queue": {"topics": TOPICS[:1], "queues": 1, "topics_move": False},
            "twelve": {"topics": (*TOPICS, *(f"Topic{n}" for n in range(9))), "queues": 1, "topics_move": False},
            "moving": {"topics": TOPICS, "queues": 1, "topics_move": True},
        },
    ),
    "bodies": (
        "put",
        {
            "mixed": {"body_bytes": WORDS.body_bytes, "to_the_end": False},
            "small": {"body_bytes": (100, 400, 400, 700)},
            "large": {"body_bytes": (900, 1_900, 3_900, 7_000)},
            "to_the_end": {"body_bytes": WORDS.body_bytes, "to_the_end": True},
        },
    ),
    "properties": (
        "put",
        {
            "mixed": {"properties": PROPERTIES},
            "bare": {"properties": _BARE},
            "keys": {"properties": _WITH_KEYS},
            "delayed": {"properties": _DELAYED},
        },
    ),
    "pulls": (
        "get_message",
        {"up_to_32": {"pulls": WORDS.pulls}, "above_32": {"pulls": (33, 64, 800)}},
    ),
    "filters": (
        "get_message",
        {"tags": {"by_properties": False}, "properties": {"by_properties": True}},
    ),
    "pauses": (
        "step",
        {
            "mixed": {"pauses_ms": WORDS.pauses_ms},
            "short": {"pauses_ms": (0, 1, 200, 500)},
            "long": {"pauses_ms": (1_000, 10_000, 60_000)},
        },
    ),
}
"""By factor: the rule that uses the words, and the words of each level."""

SESSIONS: Mapping[str, tuple[int, ...]] = {
    "one": (40,),
    "two": (40, 10),
    "three": (40, 10, 10),
    "equal": (25, 25, 25),
}
"""The operations of each session, at least; the last level has sessions of equal length."""

CLOCKS_MS: Mapping[str, int] = {"steady": 0, "back": -90_000, "forward": 90_000, "three_days": 73 * 3_600_000}
"""The step of the wall clock in each session. After three days every file of the log has expired."""

_RULES_ALWAYS = frozenset({"put", "dispatch", "try_functions", "try_settings"})
"""Without messages nothing can be lost, and without dispatch only the log can. Functions and settings depend on nothing
else, and cost some hundredths of a second."""

_SERVICES: tuple[ServiceName, ...] = (
    "group-commit", "time-outs", "flush", "commit", "allocate", "reput", "flush-queues", "progress", "schedule",
    "pull-hold",
)  # fmt: skip
_HARMED: tuple[DerivedFile, ...] = get_args(DerivedFile)
_HARMS: tuple[DerivedHarm, ...] = get_args(DerivedHarm)
_CRASH_KINDS = (*FAULTS, "kill", "crash_in_recovery", "progress_being_saved", "delivered_after_recovery", *MADE_GOOD)

_HIT: Mapping[str, Mapping[str, str]] = {
    "end_derived": {harm: f"derived_{harm}" for harm in _HARMS},
    "end_file": {file: f"harmed_{file}" for file in _HARMED},
    "end_progress": {harm: f"progress_file_{harm}" for harm in get_args(ProgressHarm)},
    "end_delays": {"none": "", "lost": "delay_offsets_lost", "garbage": "delay_offsets_garbage"},
    "end_damage": {kind: kind for kind in get_args(DamageKind)},
    "end_clock": {"none": "", "forward": "clock_forward", "back": "clock_back"},
    "end_field": {"none": "", **{group: f"field_{group}" for group in FIELDS}},
    "end_numbers": {"none": "", **{units: f"numbers_{units}" for units in UNITS_HARMS}},
    "end_open_record": {"none": "", **{group: f"open_record_{group}" for group in READS_BEFORE}},
    **{f"crash_{kind}": {"hit": kind} for kind in _CRASH_KINDS},
}
"""By factor and level: the name of a fault in activation tables, as which it is counted."""

_ENDS = frozenset(
    {
        "end_derived", "end_progress", "end_delays", "end_damage", "end_clock", "end_field", "end_numbers",
        "end_open_record",
    }
)  # fmt: skip
"""The factors that name a fault class at the end of a run."""

_END_BESIDE: Mapping[str, Beside] = {"none": "", "queue": "queue", "index": "index"}

FACTORS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        **{factor: tuple(levels) for factor, levels in _SETTINGS.items()},
        **{factor: tuple(levels) for factor, (_, levels) in _WORDS.items()},
        "sessions": tuple(SESSIONS),
        "clock": tuple(CLOCKS_MS),
        **{f"rule_{name}": ("on",) if name in _RULES_ALWAYS else ("off", "on") for name in RULES},
        **{f"step_{name}": ("off", "on") for name in _SERVICES},
        "fault_effect": tuple(EFFECTS),
        "fault_place": tuple(PLACES),
        "fault_calls": tuple(CALLS),
        "fault_in_session": ("off", "on"),
        **{factor: tuple(levels) for factor, levels in _HIT.items() if not factor.startswith("crash_")},
        "end_beside": tuple(_END_BESIDE),
        **{factor: tuple(levels) for factor, levels in _HIT.items() if factor.startswith("crash_")},
    }
)
"""Levels by factor. The crash faults at the end are not planned. Each run draws them at its crash states."""

PLANNED: Mapping[str, Sequence[str]] = MappingProxyType(
    {factor: levels for factor, levels in FACTORS.items() if not factor.startswith("crash_")}
)
"""The factors of a row."""


def _excluded() -> Iterator[Pair]:
    """Yield the pairs of levels that no run can have."""
    pools = ("pool_of_1", "pool_of_2", "pool_refusing")
    without = {"group-commit": ("async", *pools), "flush": ("sync",), "commit": ("async", "sync")}
    for service, modes in without.items():
        for mode in modes:
            yield ("durability", mode), (f"step_{service}", "on")
    yield ("files_ahead", "0"), ("step_allocate", "on")
    for service in ("flush", "commit"):
        yield ("step_group-commit", "on"), (f"step_{service}", "on")
    for service in _SERVICES:
        yield ("rule_step", "off"), (f"step_{service}", "on")
    for level in ("short", "long"):
        yield ("rule_step", "off"), ("pauses", level)
    yield ("rule_get_message", "off"), ("pulls", "above_32")
    yield ("rule_get_message", "off"), ("filters", "properties")
    no_index = ("index_entries", "none")
    for level in _SETTINGS["index_slots"].keys() - {"3"}:
        yield no_index, ("index_slots", level)
    for factor, level in (("fault_place", "index"), ("end_file", "index"), ("end_beside", "index")):
        yield no_index, (factor, level)
    yield no_index, ("crash_index_made_good", "hit")
    for factor, level in (("fault_place", "extension"), ("end_file", "extension")):
        yield ("extension", "off"), (factor, level)
    for place, effects in PLACES.items():
        for effect in EFFECTS.keys() - effects.keys():
            yield ("fault_effect", effect), ("fault_place", place)
    for harm in _HARMS:
        if harm != "stale":
            yield ("end_file", "marker"), ("end_derived", harm)
    for group in FIELDS:  # these changes are judged only for stores with one queue for a message
        for level in ("on", "up_to_1"):
            yield ("end_field", group), ("light_queues", level)
    yield ("end_field", "place"), ("trailer", "on")  # the trailer covers these fields
    for units in UNITS_HARMS:
        yield ("end_numbers", units), ("trailer", "on")
    yield ("rule_pull_held", "off"), ("rule_cancel_pull", "on")
    yield ("rule_replica_is", "on"), ("role", "ASYNC_MASTER")


EXCLUDED: tuple[Pair, ...] = tuple(sorted(_excluded()))

_STANDARD_LEVELS = {
    "fault_in_session": "off",
    "step_group-commit": "off",
    "step_commit": "off",
    "step_allocate": "off",
    "step_pull-hold": "off",
    **{f"rule_{name}": "off" for name, rule in RULES.items() if not rule.weight and name not in _RULES_ALWAYS},
}
STANDARD_ROW: Row = {
    factor: _STANDARD_LEVELS.get(factor, "on" if factor.startswith(("rule_", "step_")) else levels[0])
    for factor, levels in PLANNED.items()
}
"""The first row of each array: the usual level of each factor, with all rules of the standard configuration. A campaign
of one run hits every fault, rule and judge that it has to hit."""

RUNS_PER_ARRAY = 256
"""Runs after which another array begins. The first half has every pair, the second half many threes."""

RUNS_PER_SHARD = 8
"""Rows of the array for each shard. A shard of 1,000 states has about as many runs; later ones repeat rows of the next
shard with other draws."""

SEEDS_PER_SHARD = 1_000_000
"""Numbers of runs from one shard to the next."""


def row_of(seed: str) -> Row:
    """Return the row of a run by its seed, `campaign:number`."""
    campaign, _, number = seed.rpartition(":")
    shard, run = divmod(int(number), SEEDS_PER_SHARD)
    block, place = divmod(shard * RUNS_PER_SHARD + run, RUNS_PER_ARRAY)
    return _array(f"{campaign} {block}").row(place)


@lru_cache(maxsize=2)
def _array(seed: str) -> CoveringArray:
    excluded = [pair for pair in EXCLUDED if all(factor in PLANNED for factor, _ in pair)]
    return CoveringArray(PLANNED, excluded=excluded, first=STANDARD_ROW, seed=seed)


def settings_of_row(row: Row, base: Settings) -> Settings:
    """Return the settings of a run."""
    there = {factor: levels[row[factor]] for factor, levels in _SETTINGS.items()}
    return replace(base, **{name: value for some in there.values() for name, value in some.items()})


def words_of_row(row: Row) -> Words:
    """Return the words of a run."""
    there = {factor: levels[row[factor]] for factor, (_, levels) in _WORDS.items()}
    return replace(WORDS, **{name: value for some in there.values() for name, value in some.items()})


def services_of_row(row: Row) -> tuple[ServiceName, ...]:
    """Return the services that the rule `step` draws."""
    return tuple(name for name in _SERVICES if row[f"step_{name}"] == "on")


def damages_of_row(row: Row) -> tuple[str, ...]:
    """Return the fault classes at the end of a run."""
    effect = row["fault_effect"].replace("-", "_")
    drawn = (names[row[factor]] for factor, names in _HIT.items() if factor in _ENDS)
    return (f"aimed_{effect}", "second_opener", *(name for name in drawn if name))


def end_choices_of_row(row: Row, fault_rule: AimFault) -> EndChoices:
    """Return what the faults at the end of a run hit."""
    files: dict[str, DerivedFile] = {file: file for file in _HARMED}
    return EndChoices(fault_rule, files[row["end_file"]], _END_BESIDE[row["end_beside"]])


# ---- levels that a run had -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened in a run, as far as factors count it.

    `hit` counts rules and faults by the names of activation tables, `steps` the services of drawn steps. `fault_rules`
    are the I/O fault rules that hit a call, and `fault_in_session` tells whether one did so in a session. `sessions`
    are the lengths of the sessions that ended, as configured. The wall clock was moved by `clock_ms`.
    """

    settings: Settings
    words: Words
    operations: Sequence[Operation]
    hit: Counter[str]
    steps: Collection[str]
    fault_rules: Collection[AimFault]
    fault_in_session: bool
    sessions: tuple[int, ...]
    clock_ms: int


def levels_of(happened: Happened) -> dict[str, tuple[str, ...]]:
    """Return the levels that a run had, by factor. A run may have several levels of a fault."""
    hit, settings = happened.hit, happened.settings
    found: dict[str, list[str]] = {factor: [] for factor in FACTORS}
    for factor, levels in _SETTINGS.items():
        found[factor] += _matching(settings, levels)
    if not settings.index:
        found["index_slots"] = [level for level in found["index_slots"] if level == "3"]
    for factor, (rule, levels) in _WORDS.items():
        found[factor] += _matching(happened.words, levels) if hit[f"rule_{rule}"] else []
    found["sessions"] += [level for level, lengths in SESSIONS.items() if lengths == happened.sessions]
    found["clock"] += [level for level, by_ms in CLOCKS_MS.items() if by_ms == happened.clock_ms]
    for name in RULES:
        found[f"rule_{name}"] += ["on"] if hit[f"rule_{name}"] else []
    for name in _SERVICES:
        found[f"step_{name}"] += ["on"] if name in happened.steps else []
    for each in happened.fault_rules:
        where, _, calls = each.where.partition(" and ")
        places = [place for place, effects in PLACES.items() if where in effects.get(each.effect, ())]
        found["fault_effect"].append(each.effect)
        found["fault_place"] += places
        found["fault_calls"] += [level for level, text in CALLS.items() if places and calls == text]
    found["fault_in_session"] += ["on"] if happened.fault_in_session else []
    for factor, names in _HIT.items():
        found[factor] += [level for level, name in names.items() if hit[name]]
    beside = {each.beside for each in happened.operations if isinstance(each, Damage) and hit[each.kind]}
    found["end_beside"] += [level for level, file in _END_BESIDE.items() if file in beside]
    for factor, some in found.items():
        if not some and factor not in _SETTINGS:
            some += [level for level in FACTORS[factor] if level in ABSENT]
    return {factor: tuple(level for level in FACTORS[factor] if level in some) for factor, some in found.items()}


def _matching(value: Settings | Words, levels: Mapping[str, Fields]) -> list[str]:
    def matches(wanted: Fields) -> bool:
        return all(getattr(value, name) == there for name, there in wanted.items())

    return [level for level, wanted in levels.items() if matches(wanted)]


def text_of_levels(levels: Mapping[str, Iterable[str]]) -> str:
    """Return levels as words `factor=level`, in the order of the factors."""
    return " ".join(f"{factor}={level}" for factor, some in levels.items() for level in some)
