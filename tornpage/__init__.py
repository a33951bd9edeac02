"""The front door: the names a user of the store needs, loaded when they are asked for."""

import importlib

__version__ = "0.1.0"

_HOMES = {
    "BatchMember": "impl.message",
    "BrokerRole": "impl.policy",
    "Components": "impl.components",
    "FlushDiskType": "impl.policy",
    "FlushResult": "impl.store",
    "GetResult": "impl.message",
    "GetStatus": "impl.message",
    "Message": "impl.message",
    "MessageBatch": "impl.message",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "impl.config",
    "PutResult": "impl.message",
    "PutStatus": "impl.message",
    "RunningFlag": "impl.running_flags",
    "StoreError": "impl.errors",
    "StoredMessage": "impl.message",
    "encode_batch_body": "impl.batch",
}

__all__ = [
    "BatchMember",
    "BrokerRole",
    "Components",
    "FlushDiskType",
    "FlushResult",
    "GetResult",
    "GetStatus",
    "Message",
    "MessageBatch",
    "MessageStore",
    "MessageStoreConfig",
    "PutResult",
    "PutStatus",
    "RunningFlag",
    "StoreError",
    "StoredMessage",
    "__version__",
    "encode_batch_body",
]


def __getattr__(name):  # type: ignore[no-untyped-def]  # the guard reads this file with old Pythons too
    """Load a public name from the room it lives in."""
    if name not in _HOMES:
        raise AttributeError("module 'tornpage' has no attribute " + repr(name))
    return getattr(importlib.import_module(_HOMES[name]), name)
