"""Configure a run and its rule epilogue, and list what must be hit.

The standard configuration has all operations, services, faults and corruptions, always with the same weights. The
strategy `random` uses it, and draws the settings of the store. With the strategy `covering` the configuration of a run,
its settings too, is a row of a covering array (explore/crashes/factors.py). About half of the rules are off in a row.
What is off leaves room for the rest, and some bugs show only without an operation that would hide them.

The epilogue is a short last session in which no rule of the configuration is left out. Rare rules are drawn once in a
hundred operations or less. Rules that inject a failure or delete need a prepared store to act on; `_SCENES` prepares
it.

Source: Groce, Zhang, Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from tornpage.model.operations import AimFault, DeleteTopics, DiskUsed, Flush, Operation, Put, Step
from tornpage.properties.campaign.coverage import ALL_JUDGES, OF_SOME_STORES, Tally
from tornpage.properties.disk.rules import DISK_RULES
from tornpage.properties.disk.sampling import CHANCES, Chances
from tornpage.properties.explore.crashes.end_faults import ANY_END, EndChoices, end_fault_classes
from tornpage.properties.explore.crashes.factors import (
    CLOCKS_MS,
    SESSIONS,
    STANDARD_ROW,
    damages_of_row,
    end_choices_of_row,
    row_of,
    services_of_row,
    settings_of_row,
    words_of_row,
)
from tornpage.properties.judge.queues import MADE_GOOD
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.covering import Row
from tornpage.properties.program.drawing import TOPICS, WORDS, Words
from tornpage.properties.program.fault_stories import fault_rule_at
from tornpage.properties.program.workload import WEIGHTS, WEIGHTS_IN_ROWS, Rule, draw_settings

__all__ = [
    "DAMAGES",
    "DEFAULT_STRATEGY",
    "STANDARD",
    "STRATEGIES",
    "RunConfiguration",
    "Strategy",
    "configuration_of",
    "required",
    "rule_epilogue",
    "silent",
]


Strategy = Literal["random", "covering"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
DEFAULT_STRATEGY: Strategy = "covering"

DAMAGES: tuple[str, ...] = end_fault_classes("posix-strict")
"""Fault classes at the end of a run, named as in activation tables; the same on each disk."""

_FACTORS = (1, 1, 2, 4)
_NO_SERVICES = replace(WORDS, services=())


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """Hold what one run may draw.

    `weights` has a weight for each rule of the workload, 0 for a rule that is off. Its operations are drawn from
    `words`, whose services are those of the rule `step`, or all if there are none. `sessions` are the numbers of
    operations of each session, at least; () draws them. The wall clock is moved by `clock_ms` once in each session.
    `damages` are the fault classes at the end of the run, with the `choices` of what they hit. With `fault_in_session`
    the fault rule of those choices is also enabled in the last session. `chances` control how crash states are drawn.

    `row` is the row of the covering array, or None for the standard configuration.
    """

    weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict(WEIGHTS)))
    words: Words = _NO_SERVICES
    sessions: tuple[int, ...] = ()
    clock_ms: int = 0
    damages: tuple[str, ...] = DAMAGES
    choices: EndChoices = ANY_END
    fault_in_session: bool = False
    chances: Chances = CHANCES
    row: Row | None = None

    def settings(self, base: Settings, rng: random.Random) -> Settings:
        """Return the settings of the run: those of the row, or drawn ones."""
        return draw_settings(base, rng) if self.row is None else settings_of_row(self.row, base)

    def text(self) -> str:
        """Return the row as one line of JSON, or "" for the standard configuration."""
        return "" if self.row is None else json.dumps(self.row, sort_keys=True)


STANDARD = RunConfiguration()


def configuration_of(strategy: Strategy, seed: str) -> RunConfiguration:
    """Return the configuration of a run.

    What a row leaves open is drawn independently of all other draws of the seed.
    """
    return STANDARD if strategy == "random" else _of_row(row_of(seed), random.Random(f"configuration {seed}"))


def _of_row(row: Row, rng: random.Random) -> RunConfiguration:
    services = services_of_row(row)
    weights = {
        name: weight * rng.choice(_FACTORS) if row[f"rule_{name}"] == "on" and (name != "step" or services) else 0
        for name, weight in WEIGHTS_IN_ROWS.items()
    }
    others = sum(weights.values()) - weights["put"]
    weights["put"] = max(others, sum(WEIGHTS.values()) - others)  # what is off leaves room for puts, which fill files
    rule = fault_rule_at(row["fault_effect"], row["fault_place"], row["fault_calls"], rng)
    return RunConfiguration(
        weights=MappingProxyType(weights),
        words=replace(words_of_row(row), services=services),
        sessions=SESSIONS[row["sessions"]],
        clock_ms=CLOCKS_MS[row["clock"]],
        damages=damages_of_row(row),
        choices=end_choices_of_row(row, rule),
        fault_in_session=row["fault_in_session"] == "on",
        chances=CHANCES if row == STANDARD_ROW else CHANCES.varied(rng),
        row=row,
    )


_SCENES: Mapping[str, tuple[Operation | None, ...]] = {
    "delete_topics": (
        DiskUsed(percent=10),
        Put(topic="Coda"),
        Step(service="reput"),
        DeleteTopics(in_use=TOPICS),
        None,
    ),
    "deliver": (
        DiskUsed(percent=10),
        Put(properties="DELAY\x011"),
        Flush(),
        Step(service="reput"),
        Step(service="schedule", after_ms=1_000),
        Flush(),
        Step(service="group-commit"),
        Step(service="schedule", after_ms=1_000),
        Step(service="progress", after_ms=10_000),
        Step(service="flush-queues", after_ms=60_000),
        None,
    ),
    "refuse_file": (None, Put(topic="Coda"), Step(service="reput")),
    "fail_write": (None, Put(), Step(service="commit", after_ms=10_000)),
    "fail_sync": (None, Put(), Flush()),
    "close": (None,),
}
"""The operations of an epilogue around a rule's own operation (None). Rules that fail or end the store come last. Every
scene makes disk space available first, because an earlier clean-up may have reported a full disk. Where copies wait for
the disk, a second round of delivery sees that they are durable."""


def rule_epilogue(rules: Sequence[Rule], done: Mapping[str, int]) -> Iterator[tuple[Rule, Operation | None]]:
    """Yield operations with their rules; for None the rule draws the operation.

    Of the enabled `rules`, those come that were not yet `done`, and those that have a scene.
    """
    enabled = {rule.name: rule for rule in rules}
    left_out = [name for name in enabled if name not in _SCENES and not done[name]]
    for name in (*left_out, *(name for name in _SCENES if name in enabled)):
        for operation in _SCENES.get(name, (None,)):
            yield enabled[name], operation


_POWER_FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name", "crash_in_recovery", "kill")


def required(disk: Disk) -> tuple[str, ...]:
    """Return the faults, rules and judges that a campaign on a disk must hit.

    Their names are those of activation tables. A rule that every run had switched off was not hit, and the campaign
    reports it. Rules without a weight in the standard configuration are left out.
    """
    power: tuple[str, ...] = ("kill",) if disk == "kill" else (*_POWER_FAULTS, *MADE_GOOD)
    if not DISK_RULES[disk].tears:
        power = tuple(fault for fault in power if fault != "torn_page")
    faults = (*power, *end_fault_classes(disk), "progress_saved", "progress_being_saved", "delivered_after_recovery")
    return (*faults, *(f"rule_{name}" for name, weight in WEIGHTS.items() if weight), *ALL_JUDGES)


def silent(tally: Tally, disk: Disk, fault_rules: Iterable[AimFault] = (), *, judges_refuse: bool = False) -> list[str]:
    """Return what was never hit, and the judges that did not refuse their violation.

    The rules in `fault_rules` must be hit as well. With `judges_refuse` all judges count as having refused theirs. A
    judge of a rare kind of store counts only if some run had such a store, which a short campaign may not have drawn.
    """
    return [
        name
        for name in (*required(disk), *dict.fromkeys(aim.text for aim in fault_rules))
        if (not tally.hit[name] and (name not in OF_SOME_STORES or tally.enabled[name]))
        or (name.startswith("judge_") and not (judges_refuse or tally.effective[name]))
    ]
