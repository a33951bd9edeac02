"""Errors of peers."""

__all__ = ["PeerCrashed", "PeerError", "PeerFailed", "PeerTimeout", "PeerUnavailable"]


class PeerError(Exception):
    """Base of all errors of a peer."""


class PeerUnavailable(PeerError):
    """The peer cannot run on this machine: it is not installed, or a program is missing.

    The message is one line with a remedy.
    """


class PeerFailed(PeerError):
    """The peer answered a request with an error."""


class PeerCrashed(PeerError):
    """The process of the peer ended during a request."""


class PeerTimeout(PeerError):
    """The peer did not answer within the time limit; its process was killed."""
