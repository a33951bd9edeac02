"""The reference itself as a target: it keeps nothing over a life, and promises no more."""

from pathlib import Path

from tornpage.properties.foreign.reference_store import ReferenceStore

__all__ = ["open_store"]


def open_store(directory: Path) -> ReferenceStore:
    """Open it; the directory stays empty."""
    return ReferenceStore(durable="nothing", kill="nothing")
