"""A body that cannot be bytes is refused. An unknown operation is answered with all names.

Symptom: `{"op": "append", "body": "\\ud800"}` ended the connection of the client, and the log of the node got a
traceback. A member with messages named eight of its ten operations in the answer to an unknown one.
Cause: the encoding of a body raised an exception that the operations did not expect. The names were those of a store.
Fix: the body is refused (impl/serving/fields.py), and each class of operations names its own ones.
Found by: sending wrong requests to served nodes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.nodes import free_address
from tornpage.front import wall_clock_ms
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.serving.client import Client
from tornpage.impl.serving.served_member import ServedMember


@pytest.fixture(params=["entries", "messages"])
def member(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedMember]:
    settings = RaftSettings((free_address(),), request.param, data_file_bytes=65_536, index_file_bytes=4_096)
    member = ServedMember(
        str(tmp_path / "m"),
        0,
        settings,
        listen="127.0.0.1:0",
        may_leave_loopback=False,
        files=OsFiles(),
        clock=wall_clock_ms,
        parts=Parts(),
    )
    yield member
    assert member.close() == ""


def test_body_with_half_a_character_is_refused(member: ServedMember, caplog: pytest.LogCaptureFixture) -> None:
    with Client(member.address) as client:
        for op in ("append", "put"):
            client.send({"op": op, "topic": "T", "body": "a\ud800"})
            client.receive()
        answer = client.ask("put" if "put" in client.ask("no")["error"] else "append", topic="T", body="a\ud800")
        assert (answer["ok"], answer["error"]) == (False, "`body` is no text of UTF-8: 'a\\ud800'")
        assert client.ask("status")["ok"]
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_unknown_operation_is_answered_with_all_names(member: ServedMember) -> None:
    with Client(member.address) as client:
        refused = client.ask("explode")["error"]
        assert refused.startswith("no operation is named 'explode'; the names are ")
        for op in refused.rpartition("are ")[2].split(", "):
            assert "no operation is named" not in client.ask(op).get("error", "")
        assert {"read", "status", "transfer"} < set(refused.rpartition("are ")[2].split(", "))
