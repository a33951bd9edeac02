"""Helpers for tests of other stores: a store in memory that does what the model says, and one assertion."""

from model.state import CommitLog
from properties.contract import HarnessError
from properties.foreign.protocol import TargetUnusable
from properties.foreign.reference_store import SAFE_AFTER, Disaster, ReferenceState, ReferenceStore, SafeAfter
from tornpage.outcomes.targets import assert_store_holds

__all__ = [
    "SAFE_AFTER",
    "CommitLog",
    "Disaster",
    "HarnessError",
    "ReferenceState",
    "ReferenceStore",
    "SafeAfter",
    "TargetUnusable",
    "assert_store_holds",
]
