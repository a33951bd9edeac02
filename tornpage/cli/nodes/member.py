"""Run a member of a Raft group for `tornpage serve`."""

import os
import signal
from dataclasses import MISSING, fields
from typing import Any

import click
from click.core import ParameterSource

from tornpage.cli.document import refuse

__all__ = ["assigned_value", "opened_member"]

_PAIR_ONLY = ("role", "ha_listen", "master", "protocol", "peers", "in_sync_replicas", "acknowledge", "flush")
"""Options of `serve` for a master or a slave."""
_INSTEAD = {
    "content": "--raft-messages",
    "mapped_file_size_commit_log": "--set data_file_bytes",
    "peers": "--raft-peers",
    "slave_timeout": "--set answer_timeout",
}
"""Settings that have another name here."""


def opened_member(context: click.Context, store: str, asked: dict[str, Any]) -> Any:
    """Return the running member; refuse what cannot run."""
    from tornpage.front import wall_clock_ms
    from tornpage.impl.errors import StoreError
    from tornpage.impl.io.os_files import OsFiles
    from tornpage.impl.kernels.compiled import compiled_parts
    from tornpage.impl.serving.served_member import ServedMember

    for name, option in (("raft_id", "--raft-id"), ("raft_peers", "--raft-peers")):
        if asked[name] is None:
            refuse(f"a member of a group needs {option}")
    for name in _PAIR_ONLY:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            refuse(f"--{name.replace('_', '-')} is for a master or a slave; leave it out with --raft-id")
    try:
        settings, config = _settings(asked["raft_peers"], asked["assigned"], messages=asked["raft_messages"])
        return ServedMember(
            os.path.abspath(store),
            asked["raft_id"],
            settings,
            listen=asked["listen"],
            may_leave_loopback=asked["allow_network"],
            files=OsFiles(),
            clock=wall_clock_ms,
            parts=compiled_parts(),
            config=config,
            when_failed=lambda: os.kill(os.getpid(), signal.SIGTERM),
        )
    except StoreError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot serve {store}: {error.strerror or error} ({error.filename or 'no file'})")


def _settings(peers: str, assigned: tuple[str, ...], *, messages: bool) -> tuple[Any, Any]:
    """Return the settings of the member and of its store."""
    from tornpage.impl.config.message_store_config import MessageStoreConfig
    from tornpage.impl.raft.settings import RaftSettings

    of_member = {each.name: each.default for each in fields(RaftSettings) if each.default is not MISSING}
    of_store = {each.name: each.default for each in fields(MessageStoreConfig)} if messages else {}
    made: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for text in assigned:
        name = text.partition("=")[0]
        if name in _INSTEAD:
            refuse(f"--set {text}: give {_INSTEAD[name]} instead")
        if name in of_member:
            made[name] = assigned_value(text, of_member[name])
        else:
            stored[name] = assigned_value(text, of_store.get(name))
    members = tuple(each.strip() for each in peers.split(","))
    settings = RaftSettings(peers=members, content="messages" if messages else "entries", **made)
    return settings, MessageStoreConfig(**stored)


def assigned_value(text: str, default: Any) -> Any:
    """Return the value of NAME=VALUE, of the type of the default of the setting.

    Refuses another value. The default of a name that is no setting is None.
    """
    name, _, value = text.partition("=")
    if isinstance(default, bool) and value in ("true", "false"):
        return value == "true"
    if isinstance(default, int | float) and not isinstance(default, bool):
        try:
            return type(default)(value)
        except ValueError:
            refuse(f"--set {text}: {name} is a number")
    if isinstance(default, str):
        return value
    refuse(f"--set {text}: no setting of this name takes such a value")
