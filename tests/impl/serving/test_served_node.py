"""Test served nodes: requests of clients, bad input, and the pair."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import free_address, node_config
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.serving import client_server, lines
from tornpage.impl.serving.client import Client
from tornpage.impl.serving.served_node import ServedNode

ASYNC, SYNC, SLAVE = BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER, BrokerRole.SLAVE
PATIENCE_S = 30.0


def served(directory: Path, role: BrokerRole, *, listen: str = "127.0.0.1:0", **settings: Any) -> ServedNode:
    return ServedNode(
        str(directory),
        node_config(role),
        ReplicationSettings(**{"ha_listen_address": "127.0.0.1:0", "reconnect_interval": 10, **settings}),
        listen=listen,
        may_leave_loopback=settings.get("peers") is not None,
        files=OsFiles(),
        clock=lambda: time.time_ns() // 1_000_000,
        parts=Parts(),
    )


@contextmanager
def clients_of(*nodes: ServedNode) -> Iterator[list[Client]]:
    clients = [Client(node.address) for node in nodes]
    try:
        yield clients
    finally:
        for client in clients:
            client.close()
        for node in nodes:
            assert node.close() is None


def ask_until(client: Client, name: str, value: object, op: str = "status", **fields: Any) -> dict[str, Any]:
    limit = time.monotonic() + PATIENCE_S
    while (answer := client.ask(op, **fields))[name] != value:
        assert time.monotonic() < limit, answer
    return answer


def test_messages_are_put_and_read(tmp_path: Path) -> None:
    with clients_of(served(tmp_path / "store", ASYNC)) as (client,):
        first = client.ask("put", topic="T", queue=1, body="text", keys="k1 k2", tags="a", properties={"p": "q"})
        assert first == {"id": None, "ok": True, "status": "PUT_OK", "offset": 0, "queue_offset": 0} | {
            "message_id": "7F00000100002A9F0000000000000000"
        }
        assert client.ask("put", topic="T", queue=1, body64="/w==", id=7)["id"] == 7
        ask_until(client, "dispatch_behind_bytes", 0)
        found = client.ask("get", topic="T", queue=1)
        assert (found["status"], found["min"], found["max"], found["next"]) == ("FOUND", 0, 2, 2)
        assert [each.get("body") for each in found["messages"]] == ["text", None]
        assert [each["body64"] for each in found["messages"]] == ["dGV4dA==", "/w=="]
        assert found["messages"][0]["properties"] == {"KEYS": "k1 k2", "TAGS": "a", "p": "q"}
        assert [each["body"] for each in client.ask("query", topic="T", key="k2")["messages"]] == ["text"]
        assert client.ask("queues")["queues"] == [{"topic": "T", "queue": 1, "min": 0, "max": 2}]
        assert client.ask("progress", group="g", topic="T", queue=1)["offset"] == 0
        assert client.ask("commit", group="g", topic="T", queue=1, offset=2)["ok"]
        assert client.ask("progress", group="g", topic="T", queue=1)["offset"] == 2
        assert client.ask("flush")["durable"]


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({"op": "nothing"}, "no operation is named 'nothing'"),
        ({}, "no operation is named None"),
        ({"op": ["put"]}, "no operation is named"),
        ({"op": "put", "topic": "T"}, "`body` or `body64` is missing"),
        ({"op": "put", "topic": 5, "body": "x"}, "`topic` is missing or no text"),
        ({"op": "put", "topic": "T", "body": "x", "queue": -1}, "`queue` is missing or no number"),
        ({"op": "put", "topic": "T", "body": "x", "queue": True}, "`queue` is missing or no number"),
        ({"op": "put", "topic": "T", "body64": "?"}, "no base64"),
        ({"op": "put", "topic": "T", "body": "x", "properties": {"a": 1}}, "value that is no text"),
        ({"op": "put", "topic": "T", "body": "x", "properties": [1]}, "`properties` is no object"),
        ({"op": "get", "topic": "T", "max": 1_000_000}, "`max` is missing or no number from 1"),
        ({"op": "become", "role": "KING"}, "no role is named 'KING'"),
        ({"op": "become", "role": "SLAVE"}, "`master` is missing"),
        ({"op": "commit", "group": "", "topic": "T", "offset": 1}, "cannot be stored"),
    ],
)
def test_a_bad_request_is_refused_and_the_connection_goes_on(
    request_: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with clients_of(served(tmp_path / "store", ASYNC)) as (client,):
        client.send(request_)
        answer = client.receive()
        assert not answer["ok"]
        assert sentence in answer["error"]
        assert client.ask("status")["ok"]


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"[1]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_is_no_request_ends_its_connection_only(garbage: bytes, tmp_path: Path) -> None:
    node = served(tmp_path / "store", ASYNC)
    with clients_of(node) as (client,), socket.create_connection(("127.0.0.1", _port(node.address))) as hostile:
        hostile.settimeout(PATIENCE_S)
        hostile.sendall(garbage)
        with hostile.makefile("rb") as answers:
            assert b'"ok":false' in answers.readline()
            assert answers.readline() == b""
        assert client.ask("status")["ok"]


def test_a_line_without_an_end_and_too_many_clients_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 1_000)
    monkeypatch.setattr(client_server, "CLIENTS_MAX", 2)
    node = served(tmp_path / "store", ASYNC)
    with clients_of(node) as (client,), Client(node.address) as long:
        assert long.ask("status")["ok"]
        with Client(node.address) as third:
            assert "2 clients already" in third.receive()["error"]
        assert "more than 1000 bytes" in long.ask("put", topic="T", body="x" * 4_000)["error"]
        with pytest.raises(ConnectionResetError):
            long.receive()
        assert client.ask("status")["ok"]


def test_a_pair_confirms_puts_and_changes_roles(tmp_path: Path) -> None:
    addresses = [free_address(), free_address()]
    first = served(tmp_path / "first", SYNC, ha_listen_address=addresses[0])
    second = served(tmp_path / "second", SLAVE, ha_listen_address=addresses[1], ha_master_address=addresses[0])
    with clients_of(first, second) as (old, new):
        limit = time.monotonic() + PATIENCE_S
        while old.ask("put", topic="T", body="one")["status"] != "PUT_OK":
            assert time.monotonic() < limit
        assert new.ask("put", topic="T", body="x")["status"] == "SERVICE_NOT_AVAILABLE"
        ask_until(old, "left", 0, "drain")
        assert old.ask("put", topic="T", body="late")["status"] == "SERVICE_NOT_AVAILABLE"
        assert old.ask("become", role="SLAVE", master=addresses[1])["role"] == "SLAVE"
        assert new.ask("become", role="SYNC_MASTER")["role"] == "SYNC_MASTER"
        ask_until(old, "joined", True)
        while new.ask("put", topic="T", body="two")["status"] != "PUT_OK":
            assert time.monotonic() < limit
        end = new.ask("status")["max_offset"]
        ask_until(old, "max_offset", end)


def test_a_change_of_roles_that_fails_keeps_the_old_role(tmp_path: Path) -> None:
    first = served(tmp_path / "first", ASYNC)
    second = served(tmp_path / "second", SLAVE, ha_listen_address=first.ha_address, ha_master_address=first.ha_address)
    with clients_of(first, second) as (old, new):
        ask_until(new, "joined", True)
        answer = new.ask("become", role="SYNC_MASTER")
        assert not answer["ok"]
        assert "in use" in answer["error"]
        assert new.ask("status")["role"] == "SLAVE"
        assert old.ask("put", topic="T", body="one")["ok"]
        ask_until(new, "max_offset", old.ask("status")["max_offset"])


@pytest.mark.parametrize(
    ("role", "settings", "sentence"),
    [
        (ASYNC, {"ha_listen_address": "0.0.0.0:0"}, "allow the network"),
        (ASYNC, {"ha_listen_address": "0.0.0.0:0", "peers": ()}, "name the addresses"),
        (ASYNC, {"peers": ("host-name",)}, "use IPv4 addresses"),
        (ASYNC, {"peers": ("::1",)}, "use IPv4 addresses"),
        (ASYNC, {"listen": "192.0.2.1:0"}, "loopback only"),
        (SLAVE, {}, "address of its master"),
    ],
)
def test_impossible_addresses_are_refused(
    role: BrokerRole, settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(BadConfig, match=sentence):
        served(tmp_path / "store", role, **settings)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("role", "settings"),
    [
        (ASYNC, {"listen": "::1:0"}),
        (ASYNC, {"ha_listen_address": "[::1]:0"}),
        (SLAVE, {"ha_master_address": "::1:10912"}),
    ],
)
def test_an_ipv6_address_is_refused(role: BrokerRole, settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="links are IPv4"):
        served(tmp_path / "store", role, **settings)
    assert not (tmp_path / "store").exists()


def test_an_address_in_use_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    node = served(tmp_path / "one", ASYNC)
    with clients_of(node):
        for listen, ha_listen in ((node.address, "127.0.0.1:0"), ("127.0.0.1:0", node.ha_address)):
            with pytest.raises(OSError, match=f"in use.*{node.address if listen == node.address else ha_listen}"):
                served(tmp_path / "two", ASYNC, listen=listen, ha_listen_address=ha_listen)
    assert served(tmp_path / "two", ASYNC).close() is None


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
