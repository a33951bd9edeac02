"""A directory of a member is opened again as what it is, and not as another store.

Symptom: a member with messages that closed before its first message was refused from then on: "has entries, and this
member is to have messages". `serve` without --raft-id opened the directory of a member as a store of its own. A member
with entries was refused from then on, because its directory had a commit log.
Cause: the folder of the queues, which the first message makes, told messages from entries. A store without a group did
not look for members.
Fix: any file of a store tells them apart (impl/raft/opening.py), and `serve` looks for members
(impl/serving/served_node.py).
Found by: trying the command line with wrong directories.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.consumers import wait_for
from tests.support.impl.nodes import free_address, node_config
from tornpage.front import wall_clock_ms
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadDirectory
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.serving.served_member import ServedMember
from tornpage.impl.serving.served_node import ServedNode


def member_of(directory: Path, content: str) -> ServedMember:
    settings = RaftSettings((free_address(),), content, data_file_bytes=65_536, index_file_bytes=4_096)  # type: ignore[arg-type]
    return ServedMember(
        str(directory),
        0,
        settings,
        listen="127.0.0.1:0",
        may_leave_loopback=False,
        files=OsFiles(),
        clock=wall_clock_ms,
        parts=Parts(),
    )


def names_in(directory: Path) -> list[str]:
    return sorted(str(each.relative_to(directory)) for each in directory.rglob("*"))


@pytest.mark.parametrize(("content", "other"), [("messages", "entries"), ("entries", "messages")])
def test_member_without_a_message_opens_again(tmp_path: Path, content: str, other: str) -> None:
    assert member_of(tmp_path / "m", content).close() == ""
    again = member_of(tmp_path / "m", content)
    wait_for(lambda: again.status().get("end", 0) > 0)
    assert again.close() == ""
    with pytest.raises(BadDirectory, match=f"has {content}, and this member is to have {other}"):
        member_of(tmp_path / "m", other)


def test_member_whose_first_opening_was_killed_opens(tmp_path: Path) -> None:
    (tmp_path / "m" / "dledger-n0" / "data").mkdir(parents=True)
    assert member_of(tmp_path / "m", "messages").close() == ""


@pytest.mark.parametrize("content", ["messages", "entries"])
def test_node_refuses_the_directory_of_a_member(
    tmp_path: Path, content: str, make_node: Callable[[Path], ServedNode]
) -> None:
    assert member_of(tmp_path / "m", content).close() == ""
    before = names_in(tmp_path)
    with pytest.raises(
        BadDirectory, match="has the log of member n0 of a Raft group; give --raft-id 0 and --raft-peers"
    ):
        make_node(tmp_path / "m")
    assert names_in(tmp_path) == before


@pytest.fixture
def make_node() -> Callable[[Path], ServedNode]:
    def made(directory: Path) -> ServedNode:
        return ServedNode(
            str(directory),
            node_config(BrokerRole.ASYNC_MASTER),
            ReplicationSettings(ha_listen_address="127.0.0.1:0"),
            listen="127.0.0.1:0",
            may_leave_loopback=False,
            files=OsFiles(),
            clock=wall_clock_ms,
            parts=Parts(),
        )

    return made
