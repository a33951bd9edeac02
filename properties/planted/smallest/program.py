"""What the smallest cases are made of: a program, and power losses that take a few facts and nothing else."""

from model.operations import Crash, Operation
from properties.program.case import Settings

__all__ = ["FIRST_LOG_FILE", "Program", "losing", "page_of"]

Program = tuple[Settings, tuple[Operation, ...]]
"""Settings without a bug, and what is done with the store."""

FIRST_LOG_FILE = "/store/commitlog/00000000000000000000"


def losing(*facts: str, back: int = 0) -> Crash:
    """Return a power loss `back` events before the answer in which these facts are lost and all others survive."""
    return Crash(back=back, survived=dict.fromkeys(facts, 0), others="kept")


def page_of(path: str, number: int = 0) -> str:
    """Return the fact that is a page of a file."""
    return f"page {path} {number}"
