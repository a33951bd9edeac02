"""The front door: the names a user of the store needs, loaded when they are asked for."""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "Arrival": "impl.arriving",
    "BatchMember": "impl.message",
    "BrokerRole": "impl.policy",
    "BufferReleased": "impl.errors",
    "FilterBitMaps": "impl.filters",
    "FlushDiskType": "impl.policy",
    "FlushResult": "impl.store",
    "GetMessageResult": "impl.queue_pull",
    "GetResult": "impl.message",
    "GetStatus": "impl.message",
    "Message": "impl.message",
    "MessageBatch": "impl.message",
    "MessageFilter": "impl.message_filter",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "impl.config",
    "Parts": "impl.parts",
    "PropertyFilter": "impl.filters",
    "PutResult": "impl.message",
    "PutStatus": "impl.message",
    "QueryMessageResult": "impl.message_query",
    "ReadBuffer": "impl.read_buffer",
    "RecordBuffer": "impl.read_buffer",
    "ReferenceStore": "tornpage.testing",
    "RunningFlag": "impl.running_flags",
    "StoreError": "impl.errors",
    "StoredMessage": "impl.message",
    "TagFilter": "impl.message_filter",
    "TooManyHeldPulls": "impl.errors",
    "assert_store_holds": "tornpage.testing",
    "encode_batch_body": "impl.batch",
}

__all__ = [
    "Arrival",
    "BatchMember",
    "BrokerRole",
    "BufferReleased",
    "FilterBitMaps",
    "FlushDiskType",
    "FlushResult",
    "GetMessageResult",
    "GetResult",
    "GetStatus",
    "Message",
    "MessageBatch",
    "MessageFilter",
    "MessageStore",
    "MessageStoreConfig",
    "Parts",
    "PropertyFilter",
    "PutResult",
    "PutStatus",
    "QueryMessageResult",
    "ReadBuffer",
    "RecordBuffer",
    "ReferenceStore",
    "RunningFlag",
    "StoreError",
    "StoredMessage",
    "TagFilter",
    "TooManyHeldPulls",
    "__version__",
    "assert_store_holds",
    "encode_batch_body",
]


def __getattr__(name):  # type: ignore[no-untyped-def]  # the guard reads this file with old Pythons too
    """Load a public name from the room it lives in."""
    if name not in _HOMES:
        raise AttributeError("module 'tornpage' has no attribute " + repr(name))
    return getattr(importlib.import_module(_HOMES[name]), name)
