"""An index whose header counts entries as slots in use is healthy.

Symptom: a healthy store of RocketMQ 4.3.2 to 4.6.1 opened with the finding `index_rebuilt`. `audit` and `inspect` gave
the verdict broken, with IX_BROKEN.
Cause: up to 4.6.1 each entry increases `hashSlotCount`, later only the first entry of a slot does. Such a release may
continue a file of our store, and the count then lies between.
Fix: a count from the number of used slots to the number of entries is no finding. An open writes the count of later
releases.
Found by: the version matrix, `tornpage peer matrix`. A count between was found with `--operations 40 --seed 1`.
"""

import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.impl.stores import caught_up, open_store
from tornpage.cli.main import cli
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message

COUNTS_AT = 32
CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=4000, max_hash_slot_num=8, max_index_num=40
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a closed store with 30 entries in 8 slots."""
    with open_store(tmp_path / "store", config=CONFIG) as opened:
        for number in range(30):
            assert opened.put(Message("Topic", b"body", 0, f"KEYS\x01key-{number}")).stored
        caught_up(opened)
    return tmp_path / "store"


def index_file(store: Path) -> Path:
    [path] = (store / "index").iterdir()
    return path


def count_entries(store: Path, count: int = 30) -> None:
    """Write the header that 4.6.1 writes, or one with another count of slots."""
    path = index_file(store)
    content = bytearray(path.read_bytes())
    slots, following = struct.unpack_from(">ii", content, COUNTS_AT)
    assert (slots, following) == (8, 31)
    struct.pack_into(">i", content, COUNTS_AT, count)
    path.write_bytes(bytes(content))


def findings(store: Path) -> list[str]:
    with open_store(store, config=CONFIG) as opened:
        assert opened.read_only_reason is None
        return [finding.code for finding in opened.findings]


@pytest.mark.parametrize("count", [30, 29, 9])
@pytest.mark.parametrize("killed", [False, True])
def test_an_open_finds_nothing(store: Path, killed: bool, count: int) -> None:
    count_entries(store, count)
    if killed:
        (store / "abort").touch()
    assert findings(store) == []
    assert struct.unpack_from(">ii", index_file(store).read_bytes(), COUNTS_AT) == (8, 31)


@pytest.mark.parametrize("count", [31, 7])
def test_any_other_count_is_repaired_with_a_finding(store: Path, count: int) -> None:
    count_entries(store, count)
    (store / "config" / "derivedFloor").unlink()
    assert findings(store) == ["index_rebuilt"]


@pytest.mark.parametrize("count", [30, 29, 9])
@pytest.mark.parametrize("command", [["audit"], ["inspect", "index"]])
def test_commands_that_look_find_nothing(store: Path, command: list[str], count: int) -> None:
    count_entries(store, count)
    verb, *view = command
    seen = CliRunner().invoke(cli, [verb, str(store), *view, "--json"])
    assert [each["code"] for each in json.loads(seen.stdout)["findings"]] == []
    assert seen.exit_code == 0
