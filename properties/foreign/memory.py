"""Offer the reference itself as a target.

It keeps nothing after a session and promises nothing more.
"""

from pathlib import Path

from tornpage.properties.foreign.reference_store import ReferenceStore

__all__ = ["open_store"]


def open_store(directory: Path) -> ReferenceStore:
    """Open the reference; the directory stays empty."""
    return ReferenceStore(durable="nothing", kill="nothing")
