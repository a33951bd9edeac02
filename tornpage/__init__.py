"""The front door: the names a user of the store needs, loaded when they are asked for."""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "Arrival": "impl.dispatch.arriving",
    "BatchMember": "impl.message.message",
    "BrokerRole": "impl.config.policy",
    "BufferReleased": "impl.errors",
    "FilterBitMaps": "impl.read.filters",
    "FlushDiskType": "impl.config.policy",
    "FlushResult": "impl.store",
    "GetMessageResult": "impl.read.queue_pull",
    "GetResult": "impl.message.message",
    "GetStatus": "impl.message.message",
    "Message": "impl.message.message",
    "MessageBatch": "impl.message.message",
    "MessageFilter": "impl.read.message_filter",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "impl.config.message_store_config",
    "Parts": "impl.parts",
    "PropertyFilter": "impl.read.filters",
    "PutResult": "impl.message.message",
    "PutStatus": "impl.message.message",
    "QueryMessageResult": "impl.read.message_query",
    "ReadBuffer": "impl.read.read_buffer",
    "RecordBuffer": "impl.read.read_buffer",
    "ReferenceStore": "tornpage.testing",
    "RunningFlag": "impl.service.running_flags",
    "StoreError": "impl.errors",
    "StoredMessage": "impl.message.message",
    "TagFilter": "impl.read.message_filter",
    "TooManyHeldPulls": "impl.errors",
    "assert_store_holds": "tornpage.testing",
    "encode_batch_body": "impl.message.batch",
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
