"""A topic that is deleted while a member stores progress does not get the old progress.

Symptom: the group had progress 2 in the new queue, and its members never saw the first two new messages.
Cause: the broker checked the lease and the stored progress, and then committed. If the topic was deleted in between and
got new messages, the commit counted in the new queue.
Fix: the progress takes the place of the progress that was checked, or the request is checked again
(impl/consumer/broker.py, impl/groups/consumer_offsets.py).
Found by: `tornpage explore interleavings --seconds 60 --seed 602`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.consumers import GROUP, World
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Claim,
    Locked,
    LockQueues,
    Pull,
    Refusal,
    Refused,
    Request,
    Subscription,
    UpdateOffset,
)

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda lease: UpdateOffset(GROUP, QUEUE, 2, lease),
        lambda lease: Pull(GROUP, QUEUE, 2, Subscription("orders"), commit_offset=2, lease=lease),
    ],
    ids=["update", "pull"],
)
def test_progress_of_the_old_numbers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_of: Callable[[Any], Request]
) -> None:
    here = World(tmp_path / "store", queues=1)
    here.put("m0", "m1")
    here.settle()
    here.broker.handle(UpdateOffset(GROUP, QUEUE, 1), "a", here.now_ms)
    locked = here.broker.handle(LockQueues(GROUP, (Claim(QUEUE, "t1"),), (), True, "1"), "a", here.now_ms)
    assert isinstance(locked, Locked)
    here.settle()
    read, left = here.store.consumer_offsets, [True]

    def deleted_beside(topic: str) -> dict[str, dict[int, int]]:
        """Read progress. Then delete the topic and put new messages, before the broker goes on."""
        found = read(topic)
        if left and left.pop():
            assert here.store.clean_unused_topics(()) == ("orders",)
            here.put("new0", "new1", "new2")
            here.settle()
        return found

    monkeypatch.setattr(here.broker.store, "consumer_offsets", deleted_beside)
    answer = here.broker.handle(request_of(locked.leases[QUEUE]), "a", here.now_ms)
    assert isinstance(answer, Refused)
    assert answer.reason is Refusal.FENCED
    assert read("orders").get(GROUP, {}) == {}
    here.close()
