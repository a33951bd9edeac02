"""Public names of the store; each is imported at its first use.

Type checkers and editors read the imports below `TYPE_CHECKING`. At run time the import of `tornpage` loads no part of
the store. Helpers for tests of your store are in `tornpage.testing`.
"""

import importlib
import warnings

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than that of this module
if TYPE_CHECKING:
    from tornpage.front import MessageStore
    from tornpage.impl.config.message_store_config import (
        MessageStoreConfig,
        RecordChecksum,
    )
    from tornpage.impl.config.policy import (
        AllocationPolicy,
        BrokerRole,
        CommitPolicy,
        FlushDiskType,
        FlushPolicy,
        PutLockKind,
        QueueFlushPolicy,
        VerifyReads,
        WarmUp,
    )
    from tornpage.impl.config.retention_policy import (
        RetentionPolicy,
        Room,
    )
    from tornpage.impl.dispatch.arriving import (
        Arrival,
        MessageArrivingListener,
    )
    from tornpage.impl.errors import (
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
    from tornpage.impl.groups.broker_configs import (
        ConsumerFilterData,
        SubscriptionGroupConfig,
        TopicConfig,
    )
    from tornpage.impl.io.files import (
        Clock,
        Files,
    )
    from tornpage.impl.log.loading import Finding
    from tornpage.impl.message.batch import encode_batch_body
    from tornpage.impl.message.delay_levels import DelayLevels
    from tornpage.impl.message.dispatching import FilterBitMap
    from tornpage.impl.message.hosts import Host
    from tornpage.impl.message.message import (
        BatchMember,
        GetResult,
        GetStatus,
        Message,
        MessageBatch,
        PutResult,
        PutStatus,
        StoredMessage,
    )
    from tornpage.impl.parts import Parts
    from tornpage.impl.put.receiving import Received
    from tornpage.impl.queue.consume_queue_ext import ExtUnit
    from tornpage.impl.read.bloom import (
        BloomBits,
        BloomFilter,
    )
    from tornpage.impl.read.filters import (
        FilterBitMaps,
        PropertyFilter,
    )
    from tornpage.impl.read.message_filter import (
        MessageFilter,
        TagFilter,
    )
    from tornpage.impl.read.message_query import QueryMessageResult
    from tornpage.impl.read.queue_pull import GetMessageResult
    from tornpage.impl.read.read_buffer import (
        ReadBuffer,
        RecordBuffer,
    )
    from tornpage.impl.service.running_flags import (
        RunningFlag,
        RunningFlags,
    )
    from tornpage.impl.statistics.read_statistics import (
        DiskFall,
        ReadRates,
        ReadStatisticsSnapshot,
    )
    from tornpage.impl.statistics.store_statistics import (
        PutLatencyBuckets,
        StatisticsSnapshot,
        TopicCount,
    )
    from tornpage.impl.store import FlushResult

__version__ = "0.2.0"

_HOMES = {
    "AllocationPolicy": "tornpage.impl.config.policy",
    "Arrival": "tornpage.impl.dispatch.arriving",
    "BadConfig": "tornpage.impl.errors",
    "BadDirectory": "tornpage.impl.errors",
    "BadFilter": "tornpage.impl.errors",
    "BadProgress": "tornpage.impl.errors",
    "BatchMember": "tornpage.impl.message.message",
    "BloomBits": "tornpage.impl.read.bloom",
    "BloomFilter": "tornpage.impl.read.bloom",
    "BrokerRole": "tornpage.impl.config.policy",
    "BufferReleased": "tornpage.impl.errors",
    "Clock": "tornpage.impl.io.files",
    "CommitPolicy": "tornpage.impl.config.policy",
    "ConsumerFilterData": "tornpage.impl.groups.broker_configs",
    "DelayLevels": "tornpage.impl.message.delay_levels",
    "DiskFall": "tornpage.impl.statistics.read_statistics",
    "ExtUnit": "tornpage.impl.queue.consume_queue_ext",
    "Files": "tornpage.impl.io.files",
    "FilterBitMap": "tornpage.impl.message.dispatching",
    "FilterBitMaps": "tornpage.impl.read.filters",
    "Finding": "tornpage.impl.log.loading",
    "FlushDiskType": "tornpage.impl.config.policy",
    "FlushPolicy": "tornpage.impl.config.policy",
    "FlushResult": "tornpage.impl.store",
    "ForkedStore": "tornpage.impl.errors",
    "GetMessageResult": "tornpage.impl.read.queue_pull",
    "GetResult": "tornpage.impl.message.message",
    "GetStatus": "tornpage.impl.message.message",
    "Host": "tornpage.impl.message.hosts",
    "Message": "tornpage.impl.message.message",
    "MessageArrivingListener": "tornpage.impl.dispatch.arriving",
    "MessageBatch": "tornpage.impl.message.message",
    "MessageFilter": "tornpage.impl.read.message_filter",
    "MessageStore": "tornpage.front",
    "MessageStoreConfig": "tornpage.impl.config.message_store_config",
    "NoSpace": "tornpage.impl.errors",
    "NotReadable": "tornpage.impl.errors",
    "Parts": "tornpage.impl.parts",
    "PropertyFilter": "tornpage.impl.read.filters",
    "PutLatencyBuckets": "tornpage.impl.statistics.store_statistics",
    "PutLockKind": "tornpage.impl.config.policy",
    "PutResult": "tornpage.impl.message.message",
    "PutStatus": "tornpage.impl.message.message",
    "QueryMessageResult": "tornpage.impl.read.message_query",
    "QueueFlushPolicy": "tornpage.impl.config.policy",
    "ReadBuffer": "tornpage.impl.read.read_buffer",
    "ReadOnlyStore": "tornpage.impl.errors",
    "ReadRates": "tornpage.impl.statistics.read_statistics",
    "ReadStatisticsSnapshot": "tornpage.impl.statistics.read_statistics",
    "Received": "tornpage.impl.put.receiving",
    "RecordBuffer": "tornpage.impl.read.read_buffer",
    "RecordChecksum": "tornpage.impl.config.message_store_config",
    "RetentionPolicy": "tornpage.impl.config.retention_policy",
    "Room": "tornpage.impl.config.retention_policy",
    "RunningFlag": "tornpage.impl.service.running_flags",
    "RunningFlags": "tornpage.impl.service.running_flags",
    "StatisticsSnapshot": "tornpage.impl.statistics.store_statistics",
    "StoreClosed": "tornpage.impl.errors",
    "StoreError": "tornpage.impl.errors",
    "StoreInUse": "tornpage.impl.errors",
    "StoredMessage": "tornpage.impl.message.message",
    "SubscriptionGroupConfig": "tornpage.impl.groups.broker_configs",
    "TagFilter": "tornpage.impl.read.message_filter",
    "TooManyHeldPulls": "tornpage.impl.errors",
    "TopicConfig": "tornpage.impl.groups.broker_configs",
    "TopicCount": "tornpage.impl.statistics.store_statistics",
    "VerifyReads": "tornpage.impl.config.policy",
    "WarmUp": "tornpage.impl.config.policy",
    "WrongFileSize": "tornpage.impl.errors",
    "encode_batch_body": "tornpage.impl.message.batch",
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
    "Received",
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
    "VerifyReads",
    "WarmUp",
    "WrongFileSize",
    "__version__",
    "encode_batch_body",
]

_MOVED = {"ReferenceStore": "tornpage.testing", "assert_store_holds": "tornpage.testing"}
"""Names that moved in 0.2.0. They still work here for one release, with a DeprecationWarning."""


if not TYPE_CHECKING:  # with this function a type checker would accept every name

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
