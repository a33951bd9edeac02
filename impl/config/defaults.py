"""Every default of the store, with RocketMQ's name and the unit.

Source: `MessageStoreConfig` of RocketMQ 4.9.3.
"""

__all__ = [
    "ACCESS_MESSAGE_IN_MEMORY_MAX_RATIO",
    "CLEAN_RESOURCE_INTERVAL",
    "DISK_SPACE_CLEAN_FORCIBLY_RATIO",
    "DISK_SPACE_WARNING_LEVEL_RATIO",
    "FLUSH_CONSUMER_OFFSET_INTERVAL",
    "FLUSH_DELAY_OFFSET_INTERVAL",
    "HA_SLAVE_FALLBEHIND_MAX",
    "MAPPED_FILE_SIZE_COMMIT_LOG",
    "MAPPED_FILE_SIZE_CONSUME_QUEUE",
    "MAPPED_FILE_SIZE_CONSUME_QUEUE_EXT",
    "MAX_HASH_SLOT_NUM",
    "MAX_HELD_PULLS",
    "MAX_INDEX_NUM",
    "MAX_LMQ_CONSUME_QUEUE_NUM",
    "MAX_MESSAGE_SIZE",
    "MAX_MSGS_NUM_BATCH",
    "MAX_TRANSFER_BYTES_ON_MESSAGE_IN_DISK",
    "MAX_TRANSFER_BYTES_ON_MESSAGE_IN_MEMORY",
    "MAX_TRANSFER_COUNT_ON_MESSAGE_IN_DISK",
    "MAX_TRANSFER_COUNT_ON_MESSAGE_IN_MEMORY",
    "MESSAGE_DELAY_LEVEL",
    "OS_PAGE_CACHE_BUSY_TIME_OUT_MILLS",
    "POPULATE_AHEAD_BYTES",
    "ROCKETMQ_VERSION",
    "SCHEDULE_ASYNC_DELIVER_MAX_PENDING_LIMIT",
    "SHORT_POLLING_TIME_MILLS",
    "SLAVE_TIMEOUT",
    "STORE_HOST",
]

MAPPED_FILE_SIZE_COMMIT_LOG = 1 << 30
"""`mappedFileSizeCommitLog`, bytes. Allocated with the first message; examples and tests use a few KiB."""

MAX_MESSAGE_SIZE = 4 << 20
"""`maxMessageSize`, bytes of the whole encoded record."""

STORE_HOST = ("127.0.0.1", 10911)
"""Address and port written as STOREHOSTADDRESS: RocketMQ's default listen port on loopback."""

MESSAGE_DELAY_LEVEL = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""`messageDelayLevel`: the delay of each level, level 1 first."""

OS_PAGE_CACHE_BUSY_TIME_OUT_MILLS = 1_000
"""`osPageCacheBusyTimeOutMills`, ms that the put lock may be held before other puts are refused."""

MAX_LMQ_CONSUME_QUEUE_NUM = 20_000
"""`maxLmqConsumeQueueNum`, light queues."""

HA_SLAVE_FALLBEHIND_MAX = 256 << 20
"""`haSlaveFallbehindMax`, bytes that a usable replica may lag."""

SLAVE_TIMEOUT = 3_000
"""`slaveTimeout`, ms that a put waits for a replica."""

CLEAN_RESOURCE_INTERVAL = 10_000
"""`cleanResourceInterval`, ms between two checks of the disk space."""

DISK_SPACE_CLEAN_FORCIBLY_RATIO = 0.85
"""System property `rocketmq.broker.diskSpaceCleanForciblyRatio`, share of the disk.

No new log file is created on a fuller disk while another disk has room.
"""

DISK_SPACE_WARNING_LEVEL_RATIO = 0.90
"""System property `rocketmq.broker.diskSpaceWarningLevelRatio`, share of the disk: a fuller disk accepts no
messages.
"""

POPULATE_AHEAD_BYTES = 64 << 10
"""Not in RocketMQ: bytes of pages populated ahead of the records of a slowly growing log; see `log/populating`."""

TRANSIENT_STORE_POOL_SIZE = 5
"""`transientStorePoolSize`, buffers of the size of one log file."""

MAPPED_FILE_SIZE_CONSUME_QUEUE = 6_000_000
"""`mappedFileSizeConsumeQueue`, bytes: 300,000 units of 20 bytes; rounded up to whole units."""

MAPPED_FILE_SIZE_CONSUME_QUEUE_EXT = 48 << 20
"""`mappedFileSizeConsumeQueueExt`, bytes."""

MAX_HASH_SLOT_NUM = 5_000_000
"""`maxHashSlotNum`, slots of an index file, 4 bytes each."""

MAX_INDEX_NUM = 20_000_000
"""`maxIndexNum`, entries of an index file, 20 bytes each; the first is never used."""

MAX_MSGS_NUM_BATCH = 64
"""`maxMsgsNumBatch`, messages that one query by key returns at most."""

MAX_TRANSFER_BYTES_ON_MESSAGE_IN_MEMORY = 256 << 10
"""`maxTransferBytesOnMessageInMemory`, bytes of one answer whose messages are likely in memory."""

MAX_TRANSFER_COUNT_ON_MESSAGE_IN_MEMORY = 32
"""`maxTransferCountOnMessageInMemory`, messages of such an answer."""

MAX_TRANSFER_BYTES_ON_MESSAGE_IN_DISK = 64 << 10
"""`maxTransferBytesOnMessageInDisk`, bytes of one answer whose messages are likely on disk only."""

MAX_TRANSFER_COUNT_ON_MESSAGE_IN_DISK = 8
"""`maxTransferCountOnMessageInDisk`, messages of such an answer."""

ACCESS_MESSAGE_IN_MEMORY_MAX_RATIO = 40
"""`accessMessageInMemoryMaxRatio`, percent of the machine's memory that the end of the log is assumed to occupy."""

SCHEDULE_ASYNC_DELIVER_MAX_PENDING_LIMIT = 2_000
"""`scheduleAsyncDeliverMaxPendingLimit`, copies of one delay level that may be unanswered at a time."""

FLUSH_DELAY_OFFSET_INTERVAL = 10_000
"""`flushDelayOffsetInterval`, ms between two saves of the progress of delayed delivery."""

SHORT_POLLING_TIME_MILLS = 1_000
"""`shortPollingTimeMills`, ms that a pull waits where long polling is off."""

MAX_HELD_PULLS = 100_000
"""Not in RocketMQ: pulls that may wait at a time, about 230 MB of memory; RocketMQ has no limit."""

FLUSH_CONSUMER_OFFSET_INTERVAL = 5_000
"""`flushConsumerOffsetInterval` of `BrokerConfig`, ms between two saves of consumer offsets."""

ROCKETMQ_VERSION = "4.9.3"
"""Not in RocketMQ: the release whose rule parses properties of records."""
