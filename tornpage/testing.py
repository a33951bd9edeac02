"""What tests of other stores need: a store in memory that does what the model says, and one assertion."""

from tornpage.properties.foreign.reference_store import ReferenceStore
from tornpage.targets import assert_store_holds

__all__ = ["ReferenceStore", "assert_store_holds"]
