"""A close answers puts that wait for a replica.

Symptom: a put that waited for a replica was never answered when the store closed (contract 16).
Cause: closing ended the service of the time-outs and answered only the waits for the disk. A put that was appended
before the close and asked the replica after it was watched by no service.
Fix: closing answers the remaining puts with their time-out, and later ones at once (impl/put/time_outs.py, `finish`,
`watch`). The disk and the replica may answer first (impl/put/put_answers.py).
Found by: the crash lab's rule that every put is answered; the second part by a review.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, HandRunner, ScriptedReplicas, config_of, open_store
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.put.time_outs import Request
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

SYNC = pytest.mark.parametrize("sync", [False, True])


def opened(directory: Path, replicas: ScriptedReplicas, *, sync: bool) -> MessageStore:
    config = replace(config_of(sync=sync), broker_role=BrokerRole.SYNC_MASTER)
    return open_store(
        directory, config=config, parts=Parts({ThreadRunner: HandRunner(), make_replicas: lambda: replicas})
    )


@SYNC
def test_close_answers_who_waits(sync: bool, tmp_path: Path) -> None:
    store = opened(tmp_path, ScriptedReplicas(confirms=None), sync=sync)
    answers = [store.put_async(MESSAGE) for _ in range(3)]
    store.close()
    assert [answer.result(timeout=0).status for answer in answers] == [PutStatus.FLUSH_SLAVE_TIMEOUT] * 3
    assert not (tmp_path / "abort").exists()


@SYNC
@pytest.mark.parametrize("confirms", [None, True])
def test_put_that_asks_behind_the_close_is_answered(sync: bool, confirms: bool | None, tmp_path: Path) -> None:
    closing: list[MessageStore] = []

    class ClosesFirst(ScriptedReplicas):
        """Close the store when the replica is asked."""

        def request(self, request: Request) -> None:
            closing[0].close()
            super().request(request)

    closing.append(opened(tmp_path, ClosesFirst(confirms=confirms), sync=sync))
    status = closing[0].put_async(MESSAGE).result(timeout=0).status
    assert status is (PutStatus.PUT_OK if confirms else PutStatus.FLUSH_SLAVE_TIMEOUT)
