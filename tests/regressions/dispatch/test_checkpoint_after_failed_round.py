"""The checkpoint after a round of dispatch that failed half-way.

Symptom: "the checkpoint on disk is wrong about the queues", once in 86,029 crash states of a campaign (seed 901).
Cause: a false alarm. A round of dispatch ended the older log file and failed in the next one, because its index file
could not be made. The checkpoint covered the dispatched part. The crash lab assumed that the round had done nothing.
Fix: after such a round the checkpoint may cover any point between begin and end of the round.
"""

import pytest

from tornpage.model.operations import Put, RefuseFile, Step
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep import compare
from tornpage.properties.program.case import Case, Settings

KEYED = Put(properties="KEYS\x01k1 k2\x02TAGS\x01TagA")
REPUT, FLUSH_QUEUES = Step(service="reput"), Step(service="flush-queues")
CASE = Case(
    Settings(file_bytes=1024),
    (Put(body_bytes=379), REPUT, Put(body_bytes=287), RefuseFile(), KEYED, REPUT, FLUSH_QUEUES),
)


def test_what_was_dispatched_before_the_refusal_may_be_in_the_checkpoint() -> None:
    with choose_tracker("auto") as tracker:
        assert replay(CASE, tracker=tracker) is None


def test_what_nobody_has_put_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    third_ms = BORN_TIMESTAMP + 3
    for queues_ms, is_right in ((third_ms, True), (third_ms + 1, False)):
        monkeypatch.setattr(compare, "derived_checkpoint_times", lambda image, said=queues_ms: (said, 0))
        with choose_tracker("auto") as tracker:
            found = replay(CASE, tracker=tracker)
        assert (found is None) == is_right, found
