"""Draw the swarm configuration and rule epilogue of a run, and list what must be hit.

The standard configuration has all operations, services, faults and corruptions, always with the same weights. The
strategy `random` uses it. With the strategy `swarm` each run draws its own configuration, in which about half of
everything is off. What is off leaves room for the rest, and some bugs show only without an operation that would hide
them.

The epilogue is a short last session in which no rule of the configuration is left out. Rare rules are drawn once in a
hundred operations or less. Rules that inject a failure or delete need a prepared store to act on; `_SCENES` prepares
it.

Source: Groce, Zhang, Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from tornpage.model.operations import AimFault, DeleteTopics, DiskUsed, Flush, Operation, Put, ServiceName, Step
from tornpage.properties.campaign.coverage import ALL_JUDGES, OF_SOME_STORES, Tally
from tornpage.properties.disk.rules import DISK_RULES
from tornpage.properties.disk.sampling import CHANCES, Chances
from tornpage.properties.explore.crashes.end_faults import end_fault_classes
from tornpage.properties.judge.queues import MADE_GOOD
from tornpage.properties.program.case import Disk
from tornpage.properties.program.drawing import TOPICS
from tornpage.properties.program.workload import RULES, WEIGHTS, Rule

__all__ = [
    "DAMAGES",
    "STANDARD",
    "STRATEGIES",
    "Strategy",
    "SwarmConfiguration",
    "required",
    "rule_epilogue",
    "silent",
    "swarm_configuration_of",
]


Strategy = Literal["random", "swarm"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

DAMAGES: tuple[str, ...] = end_fault_classes("posix-strict")
"""Fault classes at the end of a run, named as in activation tables; the same on each disk."""

SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)
_ON_SHARE = 0.5
_FACTORS = (1, 1, 2, 4)
_ALWAYS_ON = frozenset({"put", "dispatch"})
"""Without messages nothing can be lost, and without dispatch only the log can."""


@dataclass(frozen=True, slots=True)
class SwarmConfiguration:
    """Hold the swarm configuration of one run: what it may draw.

    `weights` has a weight for each rule of the workload, 0 for a rule that is off. The rule `step` draws from
    `services`. `damages` are the fault classes at the end of the run. `chances` control how crash states are drawn.
    """

    weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict(WEIGHTS)))
    services: tuple[ServiceName, ...] = SERVICES
    damages: tuple[str, ...] = DAMAGES
    chances: Chances = CHANCES

    def document(self) -> dict[str, Any]:
        """Return the departures from the standard configuration as plain lists and numbers."""
        said: dict[str, Any] = {}
        if dict(self.weights) != dict(WEIGHTS):
            said["rules"] = {name: weight for name, weight in self.weights.items() if weight}
        for name in ("services", "damages"):
            if getattr(self, name) != getattr(STANDARD, name):
                said[name] = list(getattr(self, name))
        if self.chances != CHANCES:
            said["chances"] = self.chances.document()
        return said

    def text(self) -> str:
        """Return the document as one line of JSON, or "" for the standard configuration."""
        said = self.document()
        return json.dumps(said, sort_keys=True) if said else ""


STANDARD = SwarmConfiguration()


def swarm_configuration_of(strategy: Strategy, seed: str) -> SwarmConfiguration:
    """Return the configuration of a run.

    It is drawn independently of all other draws of the seed.
    """
    return STANDARD if strategy == "random" else _swarm(random.Random(f"swarm {seed}"))


def _swarm(rng: random.Random) -> SwarmConfiguration:
    weights = {
        name: weight * rng.choice(_FACTORS) if name in _ALWAYS_ON or rng.random() < _ON_SHARE else 0
        for name, weight in WEIGHTS.items()
    }
    services = tuple(service for service in SERVICES if rng.random() < _ON_SHARE)
    return SwarmConfiguration(
        weights=MappingProxyType(weights),
        services=services or ("group-commit",),
        damages=tuple(damage for damage in DAMAGES if rng.random() < _ON_SHARE),
        chances=CHANCES.varied(rng),
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

    Their names are those of activation tables. A rule that every swarm configuration switched off was not hit, and the
    campaign reports it.
    """
    power: tuple[str, ...] = ("kill",) if disk == "kill" else (*_POWER_FAULTS, *MADE_GOOD)
    if not DISK_RULES[disk].tears:
        power = tuple(fault for fault in power if fault != "torn_page")
    faults = (*power, *end_fault_classes(disk), "progress_saved", "progress_being_saved", "delivered_after_recovery")
    return (*faults, *(f"rule_{name}" for name in RULES), *ALL_JUDGES)


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
