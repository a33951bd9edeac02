"""The judges of served nodes have to reject wrong connections, sockets, threads and ends."""

from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.replication import classic, cutting, node, node_thread, requests, server, tcp
from tornpage.impl.serving import client, client_server, served_member, served_node
from tornpage.impl.serving.lines import line_of
from tornpage.properties.cluster.classic_pairs import classic_pairs_hold
from tornpage.properties.cluster.client_lines import clients_hold
from tornpage.properties.cluster.connections_alone import connections_hold
from tornpage.properties.cluster.cuts_alone import cuts_hold
from tornpage.properties.cluster.node_client import node_client_holds
from tornpage.properties.cluster.sockets import sockets_hold, threads_hold
from tornpage.properties.cluster.waiting_requests import waiting_requests_hold
from tornpage.properties.cluster.whole_nodes import whole_members_hold, whole_nodes_hold
from tornpage.properties.contract import GuaranteeBroken

JUDGES = (
    classic_pairs_hold, clients_hold, connections_hold, cuts_hold, node_client_holds, sockets_hold, threads_hold,
    waiting_requests_hold, whole_members_hold, whole_nodes_hold,
)  # fmt: skip


def do_nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def answer_without_id(self: Any, request: dict[str, Any], answer: dict[str, Any]) -> None:
    self._unsent += line_of({**answer, "id": 7})


def with_bytes_in_flight(self: Any, *given: Any, _init: Any = server.ReplicaConnection.__init__, **named: Any) -> None:
    _init(self, *given, **named)
    self._flight_bytes = 1


@pytest.mark.parametrize("judge", JUDGES)
def test_parts_of_served_nodes_hold(judge: Callable[[], None]) -> None:
    judge()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a judge that fails leaves sockets
@pytest.mark.parametrize(
    ("judge", "owner", "name", "wrong"),
    [
        (classic_pairs_hold, classic.ClassicConnection, "_report", do_nothing),
        (classic_pairs_hold, classic, "_BODY_BYTES_MAX", 1 << 40),
        (classic_pairs_hold, classic.ClassicClient, "_take_data", do_nothing),
        (clients_hold, client_server._Client, "_answer", answer_without_id),
        (clients_hold, client_server, "UNANSWERED_MAX", 1_025),
        (clients_hold, client_server, "CLIENTS_MAX", 65),
        (clients_hold, client_server, "UNSENT_BYTES_MAX", 1 << 20),
        (classic_pairs_hold, server.ReplicaServer, "_end_others", do_nothing),
        (connections_hold, server, "_BURST_PAUSE_MS", 2),
        (connections_hold, server, "_UNEVEN_BYTES", (16 << 10) + 1),
        (connections_hold, server, "_FRAMES_PER_STEP", 65),
        (connections_hold, server.ReplicaConnection, "__init__", with_bytes_in_flight),
        (connections_hold, server.ReplicaConnection, "_acknowledge", do_nothing),
        (connections_hold, server.ReplicaConnection, "_heartbeat", lambda _: b""),
        (connections_hold, server.ReplicaConnection, "wake_offset", 0),
        (cuts_hold, cutting, "_zero", do_nothing),
        (cuts_hold, cutting, "_remove_files", do_nothing),
        (cuts_hold, DurableFloor, "start", do_nothing),
        (node_client_holds, client.Client, "close", do_nothing),
        (node_client_holds, client, "_READ_BYTES", 0),
        (waiting_requests_hold, requests.ReplicaRequests, "forgo", do_nothing),
        (waiting_requests_hold, requests.ReplicaRequests, "forget", do_nothing),
        (waiting_requests_hold, requests.ReplicaRequests, "_count_again", do_nothing),
        (whole_nodes_hold, server.ReplicaServer, "_find", do_nothing),
        (whole_nodes_hold, node.ReplicatedStore, "follow", do_nothing),
        (sockets_hold, tcp, "_NOT_YET", frozenset()),
        (sockets_hold, tcp, "_LOOPBACK", "127.0.0.2"),
        (threads_hold, node_thread, "_PAUSE_AFTER_FAILURE_MS", 999),
        (whole_members_hold, client_server.ClientServer, "close", do_nothing),
        (whole_members_hold, served_member, "require_loopback", do_nothing),
        (whole_members_hold, served_node, "require_no_member", do_nothing),
        (whole_nodes_hold, served_node, "_is_loopback", lambda _: True),
    ],
)  # fmt: skip
def test_wrong_part_of_served_node_is_rejected(
    judge: Callable[[], None], owner: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(GuaranteeBroken):
        judge()
