"""Helpers for tests of your store: an assertion, and a reference store in memory."""

from tornpage.model.state import CommitLog
from tornpage.outcomes.targets import assert_case_holds, assert_store_holds
from tornpage.properties.contract import HarnessError
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.reference_store import (
    SAFE_AFTER,
    CrashFault,
    ReferenceState,
    ReferenceStore,
    SafeAfter,
)

__all__ = [
    "SAFE_AFTER",
    "CommitLog",
    "CrashFault",
    "HarnessError",
    "ReferenceState",
    "ReferenceStore",
    "SafeAfter",
    "TargetUnusable",
    "assert_case_holds",
    "assert_store_holds",
]
