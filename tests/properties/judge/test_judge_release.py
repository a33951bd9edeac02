"""Test the judges of stores of 4.8.0 and 4.9.0, whose batches join two properties."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.impl.stores import caught_up, open_store
from tornpage.cli.main import cli
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.model.properties import property_of

JOINED = "UNIQ_KEY\x01u{0}\x02KEYS\x01b{0}WAIT\x01true\x02TAGS\x01a\x01b"
"""What 4.9.0 writes for a member with a key in a batch with WAIT = true, and a tag joined in the same way."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a killed store that 4.9.0 could have written."""
    directory = tmp_path_factory.mktemp("written") / "store"
    config = MessageStoreConfig(
        mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=4000, max_hash_slot_num=8, max_index_num=40,
        rocketmq_version="4.9.0", record_checksum="body",
    )  # fmt: skip
    with open_store(directory, config=config) as opened:
        for number in range(3):
            assert opened.put(Message("Topic", b"body", 0, JOINED.format(number))).stored
        caught_up(opened)
    (directory / "abort").touch()
    for name in ("durableFloor", "derivedFloor"):
        (directory / "config" / name).unlink()
    return str(directory)


def judged(store: str, *options: str) -> tuple[str, list[str], str]:
    """Return the verdict, the codes of the findings, and the ruling on the index."""
    done = CliRunner().invoke(cli, ["judge", store, "--crashes", "1", *options, "--json"])
    document: dict[str, Any] = json.loads(done.stdout)
    [ruling] = [each for each in document["rulings"] if each["number"] == 5]
    return document["verdict"], [each["code"] for each in document["findings"]], ruling["sentence"]


def test_the_store_recovers_and_is_judged_by_the_rule_of_its_release(store: str) -> None:
    verdict, codes, why = judged(store, "--rocketmq-version", "4.9.0")
    assert (verdict, codes) == ("holds", [])
    assert why.startswith("3 entries")


def test_without_the_release_queues_and_index_are_rebuilt(store: str) -> None:
    verdict, codes, why = judged(store)
    assert (verdict, sorted(codes)) == ("holds", ["index_rebuilt", "queue_rebuilt"])
    assert why.startswith("6 entries")


def test_what_names_no_release_is_refused(store: str) -> None:
    refused = CliRunner().invoke(cli, ["judge", store, "--rocketmq-version", "4.9"])
    assert (refused.exit_code, refused.output) == (
        2,
        "tornpage: '4.9' names no release; give a release of RocketMQ, such as 4.9.3\n",
    )


@pytest.mark.parametrize(
    ("text", "dropped", "kept"),
    [
        ("A\x01b\x02C\x01d", "b", "b"),
        ("A\x01b\x01c", None, "b\x01c"),
        ("A\x01b\x01", "b", "b\x01"),
        ("A\x01", None, None),
        ("A\x01b\x01c\x02A\x01d", "d", "d"),
    ],
)
def test_the_model_reads_by_both_rules(text: str, dropped: str | None, kept: str | None) -> None:
    assert property_of(text, "A", drops_joined=True) == dropped
    assert property_of(text, "A") == kept
