"""Names of peers: `rocketmq:VERSION`."""

from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import Release, installed

__all__ = ["release_named"]


def release_named(name: str) -> Release:
    """Return the installed release of a peer. Raises PeerUnavailable."""
    kind, _, version = name.partition(":")
    if kind != "rocketmq" or not version:
        raise PeerUnavailable(f"{name!r} is no peer; give rocketmq:VERSION, as in `tornpage peer list`")
    return installed(version)
