"""Helpers for tests of your store: an assertion, base classes by shape, reference stores."""

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
from tornpage.properties.foreign.shapes.adapters import FileStore, KeyValueStore, LogStore, QueueStore
from tornpage.properties.foreign.shapes.memory import MemoryFiles, MemoryKeyValue, MemoryLog, MemoryQueues

__all__ = [
    "SAFE_AFTER",
    "CommitLog",
    "CrashFault",
    "FileStore",
    "HarnessError",
    "KeyValueStore",
    "LogStore",
    "MemoryFiles",
    "MemoryKeyValue",
    "MemoryLog",
    "MemoryQueues",
    "QueueStore",
    "ReferenceState",
    "ReferenceStore",
    "SafeAfter",
    "TargetUnusable",
    "assert_case_holds",
    "assert_store_holds",
]
