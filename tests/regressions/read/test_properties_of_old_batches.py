"""Properties of a record are parsed as the release that wrote the store parses them.

Symptom: a batch of RocketMQ 4.8.0 or 4.9.0 had the property KEYS = "b23WAIT", 0x01, "true" in our store, and none in
that release. Its index was rebuilt with the finding `index_rebuilt`.
Cause: these releases append the properties of a batch to those of a member without a separator. Up to 4.9.0 a pair with
two 0x01 is dropped; later releases keep it. The store parsed as later releases do.
Fix: the setting `rocketmq_version` chooses the rule, for reads, queries and dispatch. Nothing in a directory states the
release.
Found by: the version matrix, `tornpage peer matrix`.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import caught_up, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.errors import BadConfig
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.message.message import Message
from tornpage.impl.message.properties_text import parse_pairs, parse_split_pairs, parser_of
from tornpage.impl.parts import Parts

JOINED = "UNIQ_KEY\x01u1\x02KEYS\x01b23WAIT\x01true"
"""What 4.9.0 writes for a member with KEYS = b23 in a batch with WAIT = true."""


def opened(directory: Path, version: str, **parts: Any) -> Any:
    config = MessageStoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=4000, max_hash_slot_num=8, max_index_num=40,
        rocketmq_version=version, record_checksum="body",
    )  # fmt: skip
    return open_store(directory, config=config, **parts)


def compiled() -> Parts:
    return Parts({dispatch_records: CompiledParts(records_worth_loading=0).dispatch_records})


def keys_of(store: Any) -> tuple[str | None, list[int]]:
    """Return KEYS of the message by two reads, and its places in answers to a query."""
    with store.get_message("Topic", 0, 0) as pulled:
        [buffer] = pulled.messages
        pulled_keys = buffer.message().properties.get("KEYS")
        assert store.get(buffer.offset).message.properties.get("KEYS") == pulled_keys
    with store.query_message("Topic", "b23WAIT\x01true") as found:
        return pulled_keys, [buffer.queue_offset for buffer in found.messages]


@pytest.mark.parametrize("parts", [None, compiled])
@pytest.mark.parametrize(
    ("version", "keys", "found"),
    [
        ("4.8.0", None, []),
        ("4.9.0", None, []),
        ("4.9.1", "b23WAIT\x01true", [0]),
        ("4.9.3", "b23WAIT\x01true", [0]),
        ("5.4.0", "b23WAIT\x01true", [0]),
    ],
)
def test_the_setting_chooses_the_rule(
    tmp_path: Path, version: str, keys: str | None, found: list[int], parts: Any
) -> None:
    with opened(tmp_path / "store", version, parts=parts and parts()) as store:
        assert store.put(Message("Topic", b"body", 0, JOINED)).stored
        caught_up(store)
        assert keys_of(store) == (keys, found)


def test_an_index_of_that_release_is_right_with_its_setting_only(tmp_path: Path) -> None:
    """The derived floor of other settings proves nothing."""
    with opened(tmp_path / "store", "4.9.0") as store:
        assert store.put(Message("Topic", b"body", 0, JOINED)).stored
        caught_up(store)
    with opened(tmp_path / "store", "4.9.0") as store:
        assert [finding.code for finding in store.findings] == []
        assert keys_of(store) == (None, [])
    with opened(tmp_path / "store", "4.9.3") as store:
        caught_up(store)
        assert keys_of(store) == ("b23WAIT\x01true", [0])


@pytest.mark.parametrize(
    ("text", "split", "later"),
    [
        ("A\x01b\x02C\x01d", {"A": "b", "C": "d"}, {"A": "b", "C": "d"}),
        ("A\x01b\x01c", {}, {"A": "b\x01c"}),
        ("A\x01b\x01", {"A": "b"}, {"A": "b\x01"}),
        ("A\x01", {}, {}),
        ("\x01b", {"": "b"}, {}),
        ("", {}, {}),
    ],
)
def test_both_rules(text: str, split: dict[str, str], later: dict[str, str]) -> None:
    assert parse_split_pairs(text) == split
    assert parse_pairs(text) == later


@pytest.mark.parametrize("version", ["", "4.9", "4.9.x", "latest", "4.9.3.1"])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(BadConfig, match="rocketmq_version"):
        MessageStoreConfig(rocketmq_version=version)
    with pytest.raises(ValueError, match="use a release"):
        parser_of(version)
