"""A store with the properties that batches of 4.8.0 and 4.9.0 have: two pairs are joined."""

from pathlib import Path

from tests.support.impl.stores import caught_up, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message

__all__ = ["JOINED", "written"]

JOINED = "UNIQ_KEY\x01u{0}\x02KEYS\x01b{0}WAIT\x01true"
"""What 4.9.0 writes for a member with a key in a batch with WAIT = true."""


def written(directory: Path, version: str) -> str:
    """Write a store of a release with three such messages; return its directory."""
    config = MessageStoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=4000, max_hash_slot_num=8, max_index_num=40,
        rocketmq_version=version, record_checksum="body",
    )  # fmt: skip
    with open_store(directory, config=config) as store:
        for number in range(3):
            assert store.put(Message("Topic", b"body", 0, JOINED.format(number))).stored
        caught_up(store)
    return str(directory)
