"""A node whose new role is refused keeps its old role and its open store.

Symptom: after `become` had raised BadConfig, the store of the node was closed, and the node could not be used.
Cause: `ReplicatedStore.become` closed the store before it made the new settings.
Fix: it makes them first.
Found by: reading a mutant of `become`.
"""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.impl.nodes import free_address, open_node
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig
from tornpage.impl.message.message import Message


def test_the_store_stays_open(tmp_path: Path) -> None:
    node = open_node(tmp_path, BrokerRole.SYNC_MASTER, free_address())
    try:
        with pytest.raises(BadConfig):
            node.become(cast("Any", "MASTER"))
        assert node.role is BrokerRole.SYNC_MASTER
        node.store.put_async(Message("T", b"kept", queue_id=0))
        assert [message.body for message in node.store.messages()] == [b"kept"]
    finally:
        node.close()
