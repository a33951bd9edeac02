"""Count what a campaign explores, and which judges had data to compare.

A judge of an empty log, or of a checkpoint without times, agrees with everything: it is enabled but not hit. `NEEDS`
says what each judge needs to be hit. These conditions are cheap because they are checked for each crash state. A
planted violation shows that a judge can refuse (properties/judge/violations.py).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Literal

from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.operations import WITHOUT_A_VERB, Operation
from tornpage.properties.judge.evidence import EXTENSIONS, LegalLogs, Recovered
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.ledgers import DELAY_OFFSETS
from tornpage.properties.judge.progress import CONSUMER_FILES
from tornpage.properties.judge.small_files import checkpoint_times, physic_timestamp
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.workload import Rule

__all__ = [
    "ALL_JUDGES",
    "NEEDS",
    "OF_SOME_STORES",
    "RuleCounts",
    "Seen",
    "Tally",
    "enabled_judges",
    "hit_by_legal",
    "hit_by_recovery",
    "hit_judges",
    "judge_counter",
    "merged",
]


class Seen(dict[bytes, None]):
    """Keep a set of hashes in the order of their first addition."""

    def add(self, key: bytes) -> None:
        """Add a hash; one that is already there keeps its place."""
        self[key] = None


@dataclass
class Tally:
    """Count what runs did.

    `states` counts crash states with at least 2 files and 10 records, `all_states` counts every one. `enabled`, `hit`
    and `effective` count fault classes, rules (`rule_…`), judges (`judge_…`) and durability modes (`mode_…`).
    docs/contract.md defines these terms for each. In JSON they are called `armed`, `fired` and `mattered`.

    `work` counts how states were processed (docs/adr/0024). `known` are states whose image was recovered and judged
    before. `done_again` are known states that were recovered again all the same. `recoveries` are stores opened to be
    judged, including second recoveries and those of a crash in recovery. `viewed` are recoveries that no judge
    examined, because another one with the same result had been judged. `evaluations` counts the evaluations of each
    judge.

    `discovery` holds (all states, distinct images, distinct recovered logs) every 256 states. `levels` has the levels
    that each ended run had, as text (explore/crashes/factors.py).
    """

    states: int = 0
    all_states: int = 0
    histories: int = 0
    proven_legal: int = 0
    images: Seen = field(default_factory=Seen)
    recovered: Seen = field(default_factory=Seen)
    enabled: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    effective: Counter[str] = field(default_factory=Counter)
    discovery: list[tuple[int, int, int]] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    evaluations: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def count_judges(self, enabled: Iterable[str], hit: Iterable[str]) -> None:
        """Count the judges of one recovered store: those enabled, and those hit."""
        self.enabled.update(enabled)
        self.hit.update(hit)


def merged(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies, as if one tally had counted everything in this order.

    Distinct hashes are distinct over all tallies, so the discovery curve continues from one tally to the next.
    """
    total = Tally()
    for tally in tallies:
        start, images, recovered = total.all_states, iter(tally.images), iter(tally.recovered)
        taken = (0, 0)
        for all_states, images_then, recovered_then in (*tally.discovery, _end(tally)):
            total.images.update(dict.fromkeys(islice(images, images_then - taken[0])))
            total.recovered.update(dict.fromkeys(islice(recovered, recovered_then - taken[1])))
            taken = images_then, recovered_then
            total.discovery.append((start + all_states, len(total.images), len(total.recovered)))
        for name in ("states", "all_states", "histories", "proven_legal"):
            setattr(total, name, getattr(total, name) + getattr(tally, name))
        for counted, more in _counters(total, tally):
            counted.update(more)
        total.levels += tally.levels
        for stage, seconds in tally.seconds.items():
            total.seconds[stage] += seconds
    return total


def _end(tally: Tally) -> tuple[int, int, int]:
    return tally.all_states, len(tally.images), len(tally.recovered)


def _counters(total: Tally, tally: Tally) -> Iterable[tuple[Counter[str], Counter[str]]]:
    return (
        (total.enabled, tally.enabled),
        (total.hit, tally.hit),
        (total.effective, tally.effective),
        (total.evaluations, tally.evaluations),
        (total.work, tally.work),
    )


Need = Literal[
    "image", "head gone", "records", "room behind", "time", "units", "extension", "entries", "times of queues",
    "saved delays", "delays", "progress", "groups",
]  # fmt: skip
"""What a recovered store must have so that a judge can compare something."""

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
"""Judges of a file that few stores have; only a store with an extension enables them."""

_OF_EVERY_STORE = tuple(name for name in ALL_JUDGES if name not in OF_SOME_STORES)


def enabled_judges(settings: Settings) -> tuple[str, ...]:
    """Return the judges that a store with these settings enables, by activation name."""
    return ALL_JUDGES if settings.queue_ext else _OF_EVERY_STORE


def hit_judges(found: Recovered) -> tuple[str, ...]:
    """Return the judges that had data to compare, by activation name."""
    return (*hit_by_legal(found.legal), *hit_by_recovery(found))


def hit_by_legal(legal: LegalLogs) -> tuple[str, ...]:
    """Return the judges that can compare something because of the legal logs alone."""
    return _judges_with(("head gone",) if any(next(iter(legal))[2:]) else ())


def hit_by_recovery(found: Recovered) -> tuple[str, ...]:
    """Return the judges that can compare something because of the recovered disk.

    Equal images give equal judges.
    """
    said, derived, before = found.versions_before, found.derived, found.files.base
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
            has_times and not found.was_corrupted,
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


_FAILURES: Mapping[str, str] = {
    "fail_sync": "poisoned",
    "fail_write": "commits_failed",
    "refuse_file": "dispatch_failed",
}
"""How an injected failure of each rule shows: the log is poisoned, or a coverage point is reached."""


def judge_counter(tally: Tally) -> Callable[[Recovered], None]:
    """Return the observer of a lockstep run that counts the judges of each recovered store.

    A store that is judged with a shared verdict cache is counted by the owner of the cache.
    """

    def count(found: Recovered) -> None:
        tally.count_judges(enabled_judges(found.settings), hit_judges(found))

    return count


class RuleCounts:
    """Count the rules of one run.

    `done` counts how often each rule was carried out. Pending failures were injected and have not happened yet.
    """

    def __init__(self, tally: Tally, trial: Lockstep) -> None:
        self._tally = tally
        self._trial = trial
        self._pending: set[str] = set()
        self.done: Counter[str] = Counter()

    def arm(self, rule: Rule) -> None:
        """Count a rule that this run may draw."""
        self._tally.enabled[f"rule_{rule.name}"] += 1

    def carry_out(self, rule: Rule, operation: Operation, run: Callable[[Operation], None]) -> None:
        """Carry out an operation that a rule has drawn, and count it."""
        trial, name = self._trial, f"rule_{rule.name}"
        self.done[rule.name] += 1
        self._tally.hit[name] += 1
        if rule.name in _FAILURES:
            self._pending.add(rule.name)
        log, journal, effects = trial.log, len(trial.files.journal), trial.coverage.total()
        self.follow(operation, run)
        if isinstance(operation, WITHOUT_A_VERB):
            effective = rule.name not in _FAILURES and (bool(log.retained) or trial.coverage.total() > effects)
        else:
            effective = trial.log is not log or len(trial.files.journal) != journal or trial.coverage.total() > effects
        self._tally.effective[name] += effective

    def follow(self, operation: Operation, run: Callable[[Operation], None]) -> None:
        """Carry out any operation, and count the injected failures that happen in it."""
        if not self._pending:
            run(operation)
            return
        before = self._trial.coverage.copy()
        run(operation)
        happened = {*(self._trial.coverage - before), *(["poisoned"] if self._trial.log.poisoned else [])}
        for name in sorted(name for name in self._pending if _FAILURES[name] in happened):
            self._pending.remove(name)
            self._tally.effective[f"rule_{name}"] += 1
