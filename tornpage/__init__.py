"""The front door: the names a user of the store needs, loaded when they are asked for."""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "Arrival": "tornpage.impl.dispatch.arriving",
    "BatchMember": "tornpage.impl.message.message",
    "BrokerRole": "tornpage.impl.config.policy",
    "BufferReleased": "tornpage.impl.errors",
    "FilterBitMaps": "tornpage.impl.read.filters",
    "FlushDiskType": "tornpage.impl.config.policy",
    "FlushResult": "tornpage.impl.store",
    "GetMessageResult": "tornpage.impl.read.queue_pull",
    "GetResult": "tornpage.impl.message.message",
    "GetStatus": "tornpage.impl.message.message",
    "Message": "tornpage.impl.message.message",
    "MessageBatch": "tornpage.impl.message.message",
    "MessageFilter": "tornpage.impl.read.message_filter",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "tornpage.impl.config.message_store_config",
    "Parts": "tornpage.impl.parts",
    "PropertyFilter": "tornpage.impl.read.filters",
    "PutResult": "tornpage.impl.message.message",
    "PutStatus": "tornpage.impl.message.message",
    "QueryMessageResult": "tornpage.impl.read.message_query",
    "ReadBuffer": "tornpage.impl.read.read_buffer",
    "RecordBuffer": "tornpage.impl.read.read_buffer",
    "ReferenceStore": "tornpage.testing",
    "RunningFlag": "tornpage.impl.service.running_flags",
    "StoreError": "tornpage.impl.errors",
    "StoredMessage": "tornpage.impl.message.message",
    "TagFilter": "tornpage.impl.read.message_filter",
    "TooManyHeldPulls": "tornpage.impl.errors",
    "assert_store_holds": "tornpage.testing",
    "encode_batch_body": "tornpage.impl.message.batch",
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
