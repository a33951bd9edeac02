"""Import the store with all strategies, and note which of its functions run meanwhile.

A process that forks a trial for each mutant imports this module. It is the only module of this package that imports
the store.
"""

import importlib
import sys
from types import FrameType

__all__ = ["RUN_AT_IMPORT", "STRATEGIES"]

STRATEGIES = "tornpage.properties.score.strategies"
"""The module that imports the store and all strategies."""

RUN_AT_IMPORT: set[tuple[str, str, int]] = set()
"""File, name and first line of each function that ran. Their results may be kept in modules."""


def _note(frame: FrameType, event: str, argument: object) -> None:
    code = frame.f_code
    if event == "call" and "/impl/" in code.co_filename:
        RUN_AT_IMPORT.add((code.co_filename, code.co_qualname, code.co_firstlineno))


def _import() -> None:
    before = sys.getprofile()
    sys.setprofile(_note)
    try:
        importlib.import_module(STRATEGIES)
    finally:
        sys.setprofile(before)


_import()
