"""Show each judge a correct recovery changed by its planted violation.

The violations are in properties/judge/violations.py. A judge that accepts its violation proves nothing in a campaign,
however often it was evaluated.
"""

from tornpage.model.operations import CommitOffset, DeleteTopics, Flush, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.violations import VIOLATIONS
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

__all__ = ["judges_that_go_red", "right_recovery"]

_SETTINGS = Settings(file_bytes=4096, queue_units=4, queue_ext=True, bit_maps=True, index_entries=6)
_KEYS = "KEYS\x01Aa k\x02TAGS\x01TagA"
_PROGRAM: tuple[Operation, ...] = (
    Put(body_bytes=900, properties=_KEYS),
    Put(queue_id=1, properties="DELAY\x011"),
    Put(body_bytes=900, properties="KEYS\x01BB"),
    *[Put(body_bytes=900, properties=_KEYS)] * 3,
    Put(topic="U"),
    Flush(),
    Step(service="reput"),
    CommitOffset(behind=1),
    Step(service="progress", after_ms=5_000),
    Step(service="schedule", after_ms=1_000),
    Flush(),
    Step(service="progress", after_ms=10_000),
    Step(service="flush-queues", after_ms=60_000),
    DeleteTopics(in_use=("T",)),
    Put(body_bytes=40),
    Flush(),
)


def right_recovery(tracker: DirtyTracker) -> Recovered:
    """Return a correctly recovered store with several files, keys, delays and progress.

    All judges have something to compare in it. Raises GuaranteeBroken for a store that breaks a promise at rest.
    """
    trial = lockstep_of(_SETTINGS, tracker=tracker)
    for operation in _PROGRAM:
        trial.run(operation)
    return trial.recovery.judged_at_rest()


def judges_that_go_red(tracker: DirtyTracker) -> list[str]:
    """Return the names of the judges that refuse their planted violation.

    The list is empty if the store breaks a promise on the way to a correct recovery.
    """
    try:
        found = right_recovery(tracker)
    except GuaranteeBroken:
        return []
    return [judge.__name__ for judge in JUDGES if judge(VIOLATIONS[judge.__name__](found)).verdict == "broken"]
