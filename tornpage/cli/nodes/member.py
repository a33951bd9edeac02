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


def opened_member(context: click.Context, store: str, asked: dict[str, Any]) -> Any:
    """Return the running member; refuse what cannot run."""
    from tornpage.impl.errors import StoreError
    from tornpage.impl.io.os_files import OsFiles
    from tornpage.impl.parts import Parts
    from tornpage.impl.serving.served_member import ServedMember

    for name, option in (("raft_id", "--raft-id"), ("raft_peers", "--raft-peers")):
        if asked[name] is None:
            refuse(f"a member of a group needs {option}")
    for name in _PAIR_ONLY:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            refuse(f"--{name.replace('_', '-')} is for a master or a slave; leave it out with --raft-id")
    try:
        return ServedMember(
            os.path.abspath(store),
            asked["raft_id"],
            _settings(asked["raft_peers"], asked["assigned"]),
            listen=asked["listen"],
            may_leave_loopback=asked["allow_network"],
            files=OsFiles(),
            parts=Parts(),
            when_failed=lambda: os.kill(os.getpid(), signal.SIGTERM),
        )
    except StoreError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot serve {store}: {error.strerror or error} ({error.filename or 'no file'})")


def _settings(peers: str, assigned: tuple[str, ...]) -> Any:
    """Return the settings of the member from the options and the assigned values."""
    from tornpage.impl.raft.settings import RaftSettings

    defaults = {each.name: each.default for each in fields(RaftSettings) if each.default is not MISSING}
    made = {}
    for text in assigned:
        name = text.partition("=")[0]
        if name == "peers":
            refuse(f"--set {text}: give --raft-peers instead")
        made[name] = assigned_value(text, defaults.get(name))
    return RaftSettings(peers=tuple(each.strip() for each in peers.split(",")), **made)


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
