"""`tornpage serve`."""

import json
import logging
import os
import signal
import sys
import threading
from dataclasses import fields
from typing import Any

import click

from tornpage.cli.document import refuse, warn
from tornpage.cli.nodes.member import assigned_value, opened_member

__all__ = ["command"]

_STOP = (signal.SIGINT, signal.SIGTERM)
_LEVELS = ("debug", "info", "warning")
_OPTIONS = {
    "acknowledge": "--acknowledge",
    "broker_role": "--role",
    "flush_disk_type": "--flush",
    "ha_listen_address": "--ha-listen",
    "ha_master_address": "--master",
    "in_sync_replicas": "--in-sync-replicas",
    "peers": "--peers",
    "protocol": "--protocol",
}
"""Settings that have an option, which would replace an assigned value."""


@click.command("serve")
@click.argument("store", type=click.Path(file_okay=False))
@click.option(
    "--role",
    type=click.Choice(["ASYNC_MASTER", "SYNC_MASTER", "SLAVE"]),
    default="ASYNC_MASTER",
    show_default=True,
    help="A SYNC_MASTER answers a put after its replicas have confirmed it.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    help="Where clients connect, on loopback. Port 0 is any free port; the ready line names it.",
)
@click.option(
    "--ha-listen",
    metavar="HOST:PORT",
    default="127.0.0.1:10912",
    show_default=True,
    help="Where replicas connect while this node is a master.",
)
@click.option("--master", metavar="HOST:PORT", default="", help="The master's --ha-listen; required for a SLAVE.")
@click.option(
    "--protocol",
    type=click.Choice(["tornpage", "4.9.3"]),
    default="tornpage",
    show_default=True,
    help="4.9.3 is for a Java broker as the other node.",
)
@click.option(
    "--raft-id", metavar="N", type=click.IntRange(min=0), default=None, help="Number of this member of a Raft group."
)
@click.option(
    "--raft-peers",
    metavar="IP:PORT,...",
    default=None,
    help="Addresses of all members of the group, in the order of their numbers. Each member has the same list.",
)
@click.option("--raft-messages", is_flag=True, help="The group keeps a message store, not entries of bytes.")
@click.option("--peers", metavar="IP", multiple=True, help="Accept replicas from this address only; can be repeated.")
@click.option(
    "--allow-network",
    is_flag=True,
    help="Let --ha-listen or --raft-peers leave loopback. --ha-listen needs --peers too.",
)
@click.option("--in-sync-replicas", type=click.IntRange(1, 64), default=1, show_default=True, help="Replicas to ask.")
@click.option(
    "--acknowledge",
    type=click.Choice(["received", "durable"]),
    default="received",
    show_default=True,
    help="A replica confirms what is in its page cache, or what it has synced.",
)
@click.option(
    "--flush",
    type=click.Choice(["ASYNC_FLUSH", "SYNC_FLUSH"]),
    default="ASYNC_FLUSH",
    show_default=True,
    help="SYNC_FLUSH answers a put after the sync.",
)
@click.option(
    "--set",
    "assigned",
    metavar="NAME=VALUE",
    multiple=True,
    help="Another setting of MessageStoreConfig or ReplicationSettings, such as mapped_file_size_commit_log=1048576, "
    "or of RaftSettings with --raft-id.",
)
@click.option("--log", type=click.Choice(_LEVELS), default="info", show_default=True, help="What standard error gets.")
@click.option("--json", "as_json", is_flag=True, help="Ready line, status and last line as JSON objects.")
@click.pass_context
def command(context: click.Context, /, store: str, **asked: Any) -> None:
    """Run the store in directory STORE with all its services until SIGTERM or SIGINT.

    \b
    tornpage serve master --role SYNC_MASTER --ha-listen 127.0.0.1:10912 --listen 127.0.0.1:10911
    tornpage serve slave --role SLAVE --master 127.0.0.1:10912
    tornpage ask 127.0.0.1:10911 put topic=T body=hello
    tornpage serve one --raft-id 0 --raft-peers 127.0.0.1:10930,127.0.0.1:10931,127.0.0.1:10932

    With --raft-id it runs a member of a Raft group (docs/replication/raft.md).

    The first line on standard output says that the store is open and where it listens. SIGUSR1 prints the status as
    JSON. A damaged store serves reads only, and a line on standard error says why. A signal to stop closes the store
    and exits with 0. The exit code is 2 if the store cannot be opened or did not close cleanly
    (docs/replication/serve.md).
    """
    from tornpage.impl.kernels.compiled import load_compiled_parts

    signals = {*_STOP, signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread, so that only `sigwait` gets them
    _log_to_standard_error(asked["log"])
    if asked["raft_id"] is None and asked["raft_peers"] is None and not asked["raft_messages"]:
        node, facts = _opened(store, asked), {"role": asked["role"]}
        facts |= {"store": os.path.abspath(store), "listen": node.address, "ha_listen": node.ha_address}
    else:
        node = opened_member(context, store, asked)
        facts = {"member": asked["raft_id"], "store": os.path.abspath(store), "listen": node.address}
    _print_event("ready", asked["as_json"], pid=os.getpid(), **facts)
    if asked["raft_messages"] or asked["raft_id"] is None:
        # beside the services: a replica that loaded them in its 20,000th record would answer its master too late
        threading.Thread(target=load_compiled_parts, name="tornpage-loading", daemon=True).start()
    found = node.status().get("read_only_reason")
    if found is not None:
        warn(f"the store serves reads only: {found}")
    while signal.sigwait(signals) not in _STOP:
        print(json.dumps(node.status()), flush=True)
    reason = node.close()
    if reason:
        refuse(f"the store did not close cleanly: {reason}")
    _print_event("closed", asked["as_json"], store=os.path.abspath(store))


def _opened(store: str, asked: dict[str, Any]) -> Any:
    """Return the running node; refuse what cannot run."""
    from tornpage.front import wall_clock_ms
    from tornpage.impl.config.policy import BrokerRole, FlushDiskType
    from tornpage.impl.errors import StoreError
    from tornpage.impl.io.os_files import OsFiles
    from tornpage.impl.kernels.compiled import compiled_parts
    from tornpage.impl.serving.served_node import ServedNode

    try:
        config, settings = _settings(asked["assigned"])
        config = config(broker_role=BrokerRole[asked["role"]], flush_disk_type=FlushDiskType[asked["flush"]])
        settings = settings(
            protocol=asked["protocol"],
            ha_listen_address=asked["ha_listen"],
            ha_master_address=asked["master"],
            peers=tuple(asked["peers"]),
            in_sync_replicas=asked["in_sync_replicas"],
            acknowledge=asked["acknowledge"],
        )
        node = ServedNode(
            store,
            config,
            settings,
            listen=asked["listen"],
            may_leave_loopback=asked["allow_network"],
            files=OsFiles(),
            clock=wall_clock_ms,
            parts=compiled_parts(),
        )
    except StoreError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot serve {store}: {error.strerror or error} ({error.filename or 'no file'})")
    return node


def _settings(assigned: tuple[str, ...]) -> tuple[Any, Any]:
    """Return functions that make both settings from the options and the assigned values."""
    from functools import partial

    from tornpage.impl.config.message_store_config import MessageStoreConfig
    from tornpage.impl.replication.settings import ReplicationSettings

    made: dict[str, dict[str, Any]] = {"config": {}, "settings": {}}
    kinds = {each.name: ("config", each.default) for each in fields(MessageStoreConfig)}
    kinds |= {each.name: ("settings", each.default) for each in fields(ReplicationSettings)}
    for text in assigned:
        name = text.partition("=")[0]
        if name in _OPTIONS:
            refuse(f"--set {text}: give {_OPTIONS[name]} instead")
        where, default = kinds.get(name, ("", None))
        value = assigned_value(text, default)
        made[where][name] = value
    return partial(MessageStoreConfig, **made["config"]), partial(ReplicationSettings, **made["settings"])


def _print_event(event: str, as_json: bool, **facts: Any) -> None:
    if as_json:
        text = json.dumps({"event": event, **facts})
    else:
        text = " ".join([event, *(f"{name}={value}" for name, value in facts.items() if value != "")])
    try:
        print(text, flush=True)
    except OSError as error:
        warn(f"the line {event!r} was not printed: {error.strerror or error}")


def _log_to_standard_error(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("tornpage")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
