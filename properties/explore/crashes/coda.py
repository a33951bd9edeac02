"""The coda of a history: a short last life in which no rule of its mix is left out.

Rare rules are drawn once in a hundred operations or less; without a coda short campaigns would never see them, and a
rule that orders something to fail, or deletes, would hardly ever find anything to do so to. So some rules have a scene.
"""

from collections.abc import Iterator, Mapping, Sequence

from properties.program.case import DeleteTopics, DiskUsed, Flush, Operation, Put, Step
from properties.program.drawing import TOPICS
from properties.program.workload import Rule

__all__ = ["coda"]

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
"""What a coda puts around a rule's own operation (None), in this order: what fails or ends the store comes last.

Whatever a clean-up was told about the disk, there is room for what is put in a scene. Where copies wait for the disk, a
second round of delivery hears that they are there.
"""


def coda(rules: Sequence[Rule], done: Mapping[str, int]) -> Iterator[tuple[Rule, Operation | None]]:
    """Yield operations, each with the rule that it is for; None is one that the rule has to draw.

    Of the enabled `rules` those come that were not yet `done`, and those that have a scene.
    """
    enabled = {rule.name: rule for rule in rules}
    left_out = [name for name in enabled if name not in _SCENES and not done[name]]
    for name in (*left_out, *(name for name in _SCENES if name in enabled)):
        for operation in _SCENES.get(name, (None,)):
            yield enabled[name], operation
