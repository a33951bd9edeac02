"""Where commands work when they are told no place."""

import tempfile

from tornpage.document import refuse

__all__ = ["temporary_directory"]


def temporary_directory(remedy: str) -> str:
    """Return the system's directory for temporary files; refuses with the remedy where none can be written."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        refuse(f"no temporary directory can be written; free some space there, or {remedy}")
