"""Test which directories a member opens, and the settings that it takes."""

from pathlib import Path
from typing import Any

import pytest

from tornpage.impl.errors import BadConfig, BadDirectory, StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.opening import OpenMember
from tornpage.impl.raft.settings import RaftSettings

PEERS = ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")


def opened(directory: Path, me: int = 0, **settings: Any) -> OpenMember:
    sizes = {"data_file_bytes": 8_192, "index_file_bytes": 4_096, **settings}
    return OpenMember(str(directory), me, RaftSettings(peers=PEERS, **sizes), files=OsFiles(), parts=Parts())


def test_a_directory_keeps_its_member(tmp_path: Path) -> None:
    member = opened(tmp_path / "m")
    with pytest.raises(StoreInUse):
        opened(tmp_path / "m")
    member.log.append([Carried(1, b"x")])
    member.log.sync()
    member.hard_state.save(3, 1)
    member.close()
    again = opened(tmp_path / "m")
    assert (again.log.end, again.hard_state.term, again.hard_state.vote) == (1, 3, 1)
    again.close()
    for me, settings, sentence in (
        (1, {}, "has the log of member n0, and this is member n1; give --raft-id 0"),
        (
            0,
            {"data_file_bytes": 16_384},
            "has 8192 bytes, and data_file_bytes is 16384; give --set data_file_bytes=8192",
        ),
        (0, {"index_file_bytes": 8_192}, "has 4096 bytes, and index_file_bytes is 8192"),
    ):
        with pytest.raises(BadDirectory, match=sentence):
            opened(tmp_path / "m", me, **settings)
    opened(tmp_path / "m").close()


def test_a_store_without_a_group_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with pytest.raises(BadDirectory, match="is a store without a group"):
        opened(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["commitlog", "lock"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"peers": ()}, "a group has 1 to 7 members"),
        ({"peers": ("127.0.0.1:1",) * 2}, "two members have the same address"),
        ({"peers": ("localhost:1",)}, "use IP:PORT for each member"),
        ({"peers": ("127.0.0.1",)}, "use IP:PORT for each member"),
        ({"peers": ("127.0.0.1:0",)}, "use a port that the other members know"),
        ({"heartbeat_interval": 0}, "use a whole number, 1 to"),
        ({"election_timeout_min": 200}, "at least twice heartbeat_interval"),
        ({"election_timeout_max": 600}, "more than election_timeout_min"),
        ({"silence_max": 1_000}, "more than election_timeout_max"),
        ({"data_file_bytes": 100}, "use 4096 bytes to 1 TiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadConfig, match=sentence):
        RaftSettings(**{"peers": PEERS, **settings})
