"""Test members of a group with threads and TCP: requests of clients, and refusals."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import free_address
from tornpage.front import wall_clock_ms
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig, BadDirectory, StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.serving.client import Client
from tornpage.impl.serving.served_member import ServedMember

PATIENCE_S = 30.0
SMALL_STORE = MessageStoreConfig(mapped_file_size_consume_queue=2_000, max_hash_slot_num=16, max_index_num=64)
SIZES: dict[str, Any] = {"data_file_bytes": 65_536, "index_file_bytes": 4_096}


def served(directory: Path, me: int, settings: RaftSettings, **options: Any) -> ServedMember:
    given: dict[str, Any] = {"listen": "127.0.0.1:0", "may_leave_loopback": False, **options}
    return ServedMember(
        str(directory), me, settings, files=OsFiles(), parts=Parts(), clock=wall_clock_ms, seed=me, **given
    )


@pytest.fixture
def group(tmp_path: Path) -> Iterator[list[ServedMember]]:
    settings = RaftSettings(
        peers=tuple(free_address() for _ in range(3)),
        heartbeat_interval=100,
        election_timeout_min=1_000,
        election_timeout_max=1_500,
        reconnect_interval=20,
        **SIZES,
    )
    members = [served(tmp_path / str(me), me, settings) for me in range(3)]
    yield members
    assert [each.close() for each in members] == [""] * 3


def leader_of(group: list[ServedMember]) -> int:
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        for me, each in enumerate(group):
            status = each.status()
            if status["role"] == "leader" and status["commit_end"] == status["end"]:
                return me
    raise AssertionError("no member leads")


def test_clients_append_read_and_ask(group: list[ServedMember]) -> None:
    leader = leader_of(group)
    follower = (leader + 1) % 3
    with Client(group[leader].address) as client, Client(group[follower].address) as other:
        first = client.ask("append", body="text")
        assert (first["ok"], first["status"]) == (True, "OK")
        assert client.ask("append", body64="AP8=")["index"] == first["index"] + 1
        read = client.ask("read", **{"from": first["index"], "max": 5})
        assert (read["end"], [each["body64"] for each in read["entries"]]) == (first["index"] + 2, ["dGV4dA==", "AP8="])
        assert [each.get("body") for each in read["entries"]] == ["text", None]

        refused = other.ask("append", body="x")
        assert (refused["ok"], refused["status"], refused["leader"]) == (False, "NOT_LEADER", leader)
        assert refused["leader_clients"] == group[leader].address
        assert other.ask("read")["status"] == "NOT_LEADER"
        limit = time.monotonic() + PATIENCE_S
        while other.ask("entries")["end"] < read["end"]:
            assert time.monotonic() < limit
        assert other.ask("entries", **{"from": 1})["entries"] == client.ask("entries", **{"from": 1})["entries"]

        status = client.ask("status")
        assert (status["member"], status["role"], status["failure"]) == (leader, "leader", "")
        assert [(each["sends"], each["receives"]) for each in status["peers"]] == [(True, True)] * 2


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"op": "append"}, "`body` or `body64` is missing"),
        ({"op": "append", "body": ""}, "has at least one byte"),
        ({"op": "append", "body64": "?"}, "is no base64"),
        ({"op": "read", "from": -1}, "`from` is missing or no number"),
        ({"op": "entries", "max": 5_000}, "`max` is missing or no number from 1 to 1000"),
        ({"op": "transfer", "member": 3}, "`member` is missing or no number from 0 to 0"),
        ({"op": "put", "topic": "T"}, "no operation is named 'put'; the names are append,"),
        ({"op": None}, "no operation is named None"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_requests_are_refused(alone: ServedMember, request_: dict[str, Any], sentence: str) -> None:
    with Client(alone.address) as client:
        client.send(request_)
        answer = client.receive()
    assert answer["ok"] is False
    assert sentence in answer["error"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMember]:
    settings = RaftSettings(peers=(free_address(),), body_bytes_max=1_000, **SIZES)
    member = served(tmp_path_factory.mktemp("alone"), 0, settings)
    yield member
    assert member.close() == ""


def test_many_outstanding_appends_are_answered_in_order(alone: ServedMember) -> None:
    leader_of([alone])
    with Client(alone.address) as client:
        client.send(*({"op": "append", "id": number, "body": f"b{number}"} for number in range(200)))
        answers = [client.receive() for _ in range(200)]
        assert [each["id"] for each in answers] == list(range(200))
        assert [each["index"] for each in answers] == list(range(answers[0]["index"], answers[0]["index"] + 200))
        assert client.ask("append", body="x" * 1_001)["status"] == "TOO_LARGE"


def test_a_group_serves_a_message_store(tmp_path: Path) -> None:
    settings = RaftSettings(
        peers=tuple(free_address() for _ in range(3)),
        content="messages",
        heartbeat_interval=100,
        election_timeout_min=1_000,
        election_timeout_max=1_500,
        reconnect_interval=20,
        **SIZES,
    )
    group = [served(tmp_path / str(me), me, settings, config=SMALL_STORE) for me in range(3)]
    leader = leader_of(group)
    follower = (leader + 1) % 3
    with Client(group[leader].address) as client, Client(group[follower].address) as other:
        client.send(*({"op": "put", "id": each, "topic": "T", "body": f"b{each}"} for each in range(30)))
        answers = [client.receive() for _ in range(30)]
        assert [(each["status"], each["queue_offset"]) for each in answers] == [("PUT_OK", each) for each in range(30)]
        assert client.ask("read")["ok"]
        found = client.ask("get", topic="T", max=100)["messages"]
        assert [each["body"] for each in found] == [f"b{each}" for each in range(30)]

        refused = other.ask("put", topic="T", body="x")
        assert (refused["status"], refused["leader_clients"]) == ("NOT_LEADER", group[leader].address)
        assert other.ask("read")["status"] == "NOT_LEADER"
        limit = time.monotonic() + PATIENCE_S
        while other.ask("get", topic="T", max=100)["messages"] != found:
            assert time.monotonic() < limit
        assert "`member` is missing" in client.ask("transfer")["error"]
        status = client.ask("status")
        assert (status["role"], status["store"]) == ("leader", str(tmp_path / str(leader)))

        assert group[leader].close() == ""
        limit = time.monotonic() + PATIENCE_S
        new = other
        while (answer := new.ask("put", topic="T", body="after"))["status"] != "PUT_OK":
            assert time.monotonic() < limit
            if answer.get("leader_clients"):
                with suppress(ConnectionRefusedError):  # the follower may still name the leader that has just closed
                    new = Client(answer["leader_clients"])
        assert answer["queue_offset"] == 30
        if new is not other:
            new.close()
    assert [each.close() for each in group if each is not group[leader]] == [""] * 2
    with pytest.raises(BadDirectory, match="has messages, and this member is to have entries; give --raft-messages"):
        served(tmp_path / "0", 0, RaftSettings(peers=settings.peers, **SIZES))


def test_forbidden_addresses_and_numbers_change_nothing(tmp_path: Path) -> None:
    peers = ("127.0.0.1:1", "10.0.0.1:2")
    for me, options, sentence in (
        (2, {}, "the group has members 0 to 1"),
        (0, {}, "allow the network for members on other machines"),
        (0, {"listen": "0.0.0.0:0"}, "clients are served on loopback only"),
    ):
        with pytest.raises(BadConfig, match=sentence):
            served(tmp_path / "m", me, RaftSettings(peers=peers), **options)
    assert not (tmp_path / "m").exists()


def test_an_address_in_use_releases_the_directory(alone: ServedMember, tmp_path: Path) -> None:
    taken = RaftSettings(peers=(alone.address,), **SIZES)
    for _ in range(2):
        with pytest.raises(OSError, match="Address already in use"):
            served(tmp_path / "m", 0, taken)
    with pytest.raises(OSError, match="Address already in use"):
        served(tmp_path / "m", 0, RaftSettings(peers=(free_address(),), **SIZES), listen=alone.address)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    settings = RaftSettings(peers=(free_address(),), **SIZES)
    member = served(tmp_path / "m", 0, settings)
    try:
        with pytest.raises(StoreInUse):
            served(tmp_path / "m", 0, RaftSettings(peers=(free_address(),), **SIZES))
    finally:
        member.close()


def test_a_failed_disk_ends_the_member_and_tells_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    settings = RaftSettings(peers=(free_address(),), **SIZES)
    member = served(tmp_path / "m", 0, settings, when_failed=lambda: told.append(True))
    leader_of([member])

    def fails(*_: object) -> None:
        raise OSError(5, "no disk")

    with Client(member.address) as client:
        assert client.ask("append", body="x")["ok"]  # the first entry of the leader is durable then
        monkeypatch.setattr(OsFiles, "sync", fails)
        assert client.ask("append", body="x")["status"] == "UNKNOWN"
        assert client.ask("append", body="x")["status"] == "STOPPED"
    assert "no disk" in member.close()
    assert told == [True]
