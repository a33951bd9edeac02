"""The front door: the names that a user of the store needs. Each is loaded when it is first used.

Type checkers and editors read the imports below `TYPE_CHECKING`; at run time the import of `tornpage` loads no part of
the store. Helpers for tests of other stores are in `tornpage.testing`.
"""

import importlib
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from impl.arriving import (
        Arrival,
        MessageArrivingListener,
    )
    from impl.batch import encode_batch_body
    from impl.bloom import (
        BloomBits,
        BloomFilter,
    )
    from impl.broker_configs import (
        ConsumerFilterData,
        SubscriptionGroupConfig,
        TopicConfig,
    )
    from impl.config import (
        MessageStoreConfig,
        RecordChecksum,
    )
    from impl.consume_queue_ext import ExtUnit
    from impl.delay import DelayLevels
    from impl.dispatching import FilterBitMap
    from impl.errors import (
        BadConfig,
        BadDirectory,
        BadFilter,
        BadProgress,
        BufferReleased,
        ForkedStore,
        NoSpace,
        NotReadable,
        ReadOnlyStore,
        StoreClosed,
        StoreError,
        StoreInUse,
        TooManyHeldPulls,
        WrongFileSize,
    )
    from impl.files import (
        Clock,
        Files,
    )
    from impl.filters import (
        FilterBitMaps,
        PropertyFilter,
    )
    from impl.hosts import Host
    from impl.loading import Finding
    from impl.message import (
        BatchMember,
        GetResult,
        GetStatus,
        Message,
        MessageBatch,
        PutResult,
        PutStatus,
        StoredMessage,
    )
    from impl.message_filter import (
        MessageFilter,
        TagFilter,
    )
    from impl.message_query import QueryMessageResult
    from impl.parts import Parts
    from impl.policy import (
        AllocationPolicy,
        BrokerRole,
        CommitPolicy,
        FlushDiskType,
        FlushPolicy,
        PutLockKind,
        QueueFlushPolicy,
        WarmUp,
    )
    from impl.queue_pull import GetMessageResult
    from impl.read_buffer import (
        ReadBuffer,
        RecordBuffer,
    )
    from impl.read_statistics import (
        DiskFall,
        ReadRates,
        ReadStatisticsSnapshot,
    )
    from impl.retention_policy import (
        RetentionPolicy,
        Room,
    )
    from impl.running_flags import (
        RunningFlag,
        RunningFlags,
    )
    from impl.statistics import (
        PutLatencyBuckets,
        StatisticsSnapshot,
        TopicCount,
    )
    from impl.store import FlushResult
    from tornpage.front import MessageStore

__version__ = "0.1.0"

_HOMES = {
    "AllocationPolicy": "impl.policy",
    "Arrival": "impl.arriving",
    "BadConfig": "impl.errors",
    "BadDirectory": "impl.errors",
    "BadFilter": "impl.errors",
    "BadProgress": "impl.errors",
    "BatchMember": "impl.message",
    "BloomBits": "impl.bloom",
    "BloomFilter": "impl.bloom",
    "BrokerRole": "impl.policy",
    "BufferReleased": "impl.errors",
    "Clock": "impl.files",
    "CommitPolicy": "impl.policy",
    "ConsumerFilterData": "impl.broker_configs",
    "DelayLevels": "impl.delay",
    "DiskFall": "impl.read_statistics",
    "ExtUnit": "impl.consume_queue_ext",
    "Files": "impl.files",
    "FilterBitMap": "impl.dispatching",
    "FilterBitMaps": "impl.filters",
    "Finding": "impl.loading",
    "FlushDiskType": "impl.policy",
    "FlushPolicy": "impl.policy",
    "FlushResult": "impl.store",
    "ForkedStore": "impl.errors",
    "GetMessageResult": "impl.queue_pull",
    "GetResult": "impl.message",
    "GetStatus": "impl.message",
    "Host": "impl.hosts",
    "Message": "impl.message",
    "MessageArrivingListener": "impl.arriving",
    "MessageBatch": "impl.message",
    "MessageFilter": "impl.message_filter",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "impl.config",
    "NoSpace": "impl.errors",
    "NotReadable": "impl.errors",
    "Parts": "impl.parts",
    "PropertyFilter": "impl.filters",
    "PutLatencyBuckets": "impl.statistics",
    "PutLockKind": "impl.policy",
    "PutResult": "impl.message",
    "PutStatus": "impl.message",
    "QueryMessageResult": "impl.message_query",
    "QueueFlushPolicy": "impl.policy",
    "ReadBuffer": "impl.read_buffer",
    "ReadOnlyStore": "impl.errors",
    "ReadRates": "impl.read_statistics",
    "ReadStatisticsSnapshot": "impl.read_statistics",
    "RecordBuffer": "impl.read_buffer",
    "RecordChecksum": "impl.config",
    "RetentionPolicy": "impl.retention_policy",
    "Room": "impl.retention_policy",
    "RunningFlag": "impl.running_flags",
    "RunningFlags": "impl.running_flags",
    "StatisticsSnapshot": "impl.statistics",
    "StoreClosed": "impl.errors",
    "StoreError": "impl.errors",
    "StoreInUse": "impl.errors",
    "StoredMessage": "impl.message",
    "SubscriptionGroupConfig": "impl.broker_configs",
    "TagFilter": "impl.message_filter",
    "TooManyHeldPulls": "impl.errors",
    "TopicConfig": "impl.broker_configs",
    "TopicCount": "impl.statistics",
    "WarmUp": "impl.policy",
    "WrongFileSize": "impl.errors",
    "encode_batch_body": "impl.batch",
}

__all__ = [
    "AllocationPolicy",
    "Arrival",
    "BadConfig",
    "BadDirectory",
    "BadFilter",
    "BadProgress",
    "BatchMember",
    "BloomBits",
    "BloomFilter",
    "BrokerRole",
    "BufferReleased",
    "Clock",
    "CommitPolicy",
    "ConsumerFilterData",
    "DelayLevels",
    "DiskFall",
    "ExtUnit",
    "Files",
    "FilterBitMap",
    "FilterBitMaps",
    "Finding",
    "FlushDiskType",
    "FlushPolicy",
    "FlushResult",
    "ForkedStore",
    "GetMessageResult",
    "GetResult",
    "GetStatus",
    "Host",
    "Message",
    "MessageArrivingListener",
    "MessageBatch",
    "MessageFilter",
    "MessageStore",
    "MessageStoreConfig",
    "NoSpace",
    "NotReadable",
    "Parts",
    "PropertyFilter",
    "PutLatencyBuckets",
    "PutLockKind",
    "PutResult",
    "PutStatus",
    "QueryMessageResult",
    "QueueFlushPolicy",
    "ReadBuffer",
    "ReadOnlyStore",
    "ReadRates",
    "ReadStatisticsSnapshot",
    "RecordBuffer",
    "RecordChecksum",
    "RetentionPolicy",
    "Room",
    "RunningFlag",
    "RunningFlags",
    "StatisticsSnapshot",
    "StoreClosed",
    "StoreError",
    "StoreInUse",
    "StoredMessage",
    "SubscriptionGroupConfig",
    "TagFilter",
    "TooManyHeldPulls",
    "TopicConfig",
    "TopicCount",
    "WarmUp",
    "WrongFileSize",
    "__version__",
    "encode_batch_body",
]

_MOVED = {"ReferenceStore": "tornpage.testing", "assert_store_holds": "tornpage.testing"}
"""Names that moved in 0.2.0. They go on working here, with a DeprecationWarning, for one release."""


if not TYPE_CHECKING:  # a type checker would take this for a promise that every name exists

    def __getattr__(name):
        """Load a public name from the module that defines it."""
        if name in _MOVED:
            moved = "tornpage." + name + " has moved: import it from " + _MOVED[name]
            warnings.warn(moved, DeprecationWarning, stacklevel=2)
        elif name not in _HOMES:
            raise AttributeError("module 'tornpage' has no attribute " + repr(name))
        return getattr(importlib.import_module(_HOMES.get(name) or _MOVED[name]), name)

    def __dir__():
        """Return the public names, for completion in a shell."""
        return sorted(__all__)
