"""Test the gates of every put: their order, and that they precede checks of the message."""

from typing import Any

import pytest

from tests.model.support import batch_of, layout_of, message_of
from tornpage.model.admission import service_refusal
from tornpage.model.commitlog import CommitLog, Conditions, PutOutcome, put
from tornpage.model.message import PutStatus

NO_SERVICE, BUSY = PutStatus.SERVICE_NOT_AVAILABLE, PutStatus.OS_PAGECACHE_BUSY


@pytest.mark.parametrize(
    ("log", "layout", "lock_held_ms", "status"),
    [
        ({}, {}, 0, None),
        ({"poisoned": True}, {}, 0, NO_SERVICE),
        ({}, {"role": "SLAVE"}, 0, NO_SERVICE),
        ({}, {"role": "SYNC_MASTER"}, 0, None),
        ({"flags": 1}, {}, 0, None),
        ({"flags": 2}, {}, 0, NO_SERVICE),
        ({"flags": 4}, {}, 0, NO_SERVICE),
        ({"flags": 8}, {}, 0, NO_SERVICE),
        ({"flags": 16}, {}, 0, NO_SERVICE),
        ({"flags": 17}, {}, 0, NO_SERVICE),
        ({"flags": 32}, {}, 0, None),
        ({}, {}, 1000, None),
        ({}, {}, 1001, BUSY),
        ({}, {"page_cache_busy_ms": 5}, 5, None),
        ({}, {"page_cache_busy_ms": 5}, 6, BUSY),
        ({}, {}, 10_000_001, BUSY),
        ({"poisoned": True}, {}, 1001, NO_SERVICE),
        ({}, {"role": "SLAVE"}, 1001, NO_SERVICE),
        ({"flags": 2}, {}, 1001, NO_SERVICE),
        ({"flags": 1}, {}, 1001, BUSY),
    ],
)
def test_gates(log: dict[str, Any], layout: dict[str, Any], lock_held_ms: int, status: PutStatus | None) -> None:
    state = CommitLog(**log)
    assert service_refusal(state, layout=layout_of(**layout), lock_held_ms=lock_held_ms) is status
    if status is None:
        return
    for given in (message_of(), message_of(""), message_of(properties="x" * 40_000), batch_of(), batch_of(b"")):
        assert put(
            state,
            given,
            layout=layout_of(**layout),
            store_timestamp=1,
            conditions=Conditions(lock_held_ms=lock_held_ms),
        ) == (state, PutOutcome(status))
