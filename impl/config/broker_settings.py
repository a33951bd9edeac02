"""Hold the names of all settings of a broker, from RocketMQ 4.9.3 to 5.4.0.

A file is lines `name=value` as in Java's properties files. A broker passes over names that it does not have and values
that it cannot read, and works with its default. A reader of such a file refuses both, since a typing error would
otherwise go unnoticed. This module imports nothing of the store.

Source: setters of `BrokerConfig`, `MessageStoreConfig`, `NettyServerConfig`, `NettyClientConfig` and `AuthConfig` in
RocketMQ 4.9.3, 4.9.8, 5.1.4 and 5.4.0. `MixAll.properties2Object` calls them.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches

__all__ = ["FRACTIONS", "KNOWN", "NUMBERS", "SWITCHES", "TEXTS", "parse_lines", "problem_of"]

_NUMBERS = """
accessMessageInMemoryHotRatio accessMessageInMemoryMaxRatio ackMessageThreadPoolNums ackThreadPoolQueueCapacity
adminBrokerThreadPoolNums adminBrokerThreadPoolQueueCapacity batchDispatchRequestThreadPoolNums
bitMapLengthConsumeQueueExt broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond brokerElectionPriority
brokerHeartbeatInterval brokerId brokerNotActiveTimeoutMillis brokerPermission cgColdReadThreshold
channelExpiredTimeout channelNotActiveInterval checkSyncStateSetPeriod cleanOfflineBrokerInterval
cleanResourceInterval cleanRocksDBDirtyCQIntervalMin cleanSwapedMapInterval clientAsyncSemaphoreValue
clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds clientManageThreadPoolNums
clientManagerThreadPoolQueueCapacity clientOnewaySemaphoreValue clientSocketRcvBufSize clientSocketSndBufSize
clientWorkerThreads combineCQMaxExtraSearchCommitLogFiles commercialBaseCount commercialBigCount commercialSizePerMsg
commercialTimerCount commercialTransCount commitCommitLogLeastPages commitCommitLogThoroughInterval
commitIntervalCommitLog commitLogForceSwapMapInterval commitLogRecoverMaxNum commitLogSwapMapInterval
commitLogSwapMapReserveFileNum compactionCqMappedFileSize compactionMappedFileSize compactionScheduleInternal
compactionThreadNum connectTimeoutMillis consumerFallbehindThreshold consumerManageThreadPoolNums
consumerManagerThreadPoolQueueCapacity consumerOffsetUpdateVersionStep controllerHeartBeatTimeoutMills
correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval defaultPopShareQueueNum defaultQueryMaxNum
defaultTopicQueueNums delayOffsetUpdateVersionStep deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval
deleteFileBatchMax destroyMapedFileIntervalForcibly disappearTimeAfterStart diskMaxUsedSpaceRatio
diskSpaceCleanForciblyRatio diskSpaceWarningLevelRatio dispatchCqCacheNum dispatchCqThreads
endTransactionPoolQueueCapacity endTransactionThreadPoolNums expectConsumerNumUseFilter fetchNamesrvAddrInterval
fileReservedTime filterDataCleanTimeSpan filterServerNums flushCommitLogLeastPages flushCommitLogThoroughInterval
flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval flushConsumerOffsetHistoryInterval
flushConsumerOffsetInterval flushDelayOffsetInterval flushIntervalCommitLog flushIntervalConsumeQueue
flushLeastPagesWhenWarmMapedFile forwardTimeout globalColdReadThreshold haHousekeepingInterval haListenPort
haMaxGapNotInSync haMaxTimeSlaveNotCatchup haSendHeartbeatInterval haSlaveFallbehindMax haTransferBatchSize
heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity inSyncReplicas listenPort litePullMessageThreadPoolNums
litePullThreadPoolQueueCapacity loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums
loadBalanceThreadPoolQueueCapacity logicQueueForceSwapMapInterval logicQueueSwapMapInterval
logicQueueSwapMapReserveFileNum mappedFileSizeCommitLog mappedFileSizeConsumeQueue mappedFileSizeConsumeQueueExt
mappedFileSizeTimerLog mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests maxBatchDeleteFilesNum
maxChecksumRange maxConsumeQueueScan maxDelayTime maxErrorRateOfBloomFilter maxFilterMessageSize
maxHaTransferByteInSecond maxHashSlotNum maxIndexNum maxLmqConsumeQueueNum maxMessageSize maxMsgsNumBatch
maxOffsetMapSize maxPopPollingSize maxReconnectIntervalTimeSeconds maxRecoveryCommitlogFiles maxRocksDBIndexQueryDays
maxSlaveResendLength maxStatsIdleTimeInMinutes maxTopicLength maxTransferBytesOnMessageInDisk
maxTransferBytesOnMessageInMemory maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory
memTableFlushInterval memTableFlushIntervalMs metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills
metricLoggingExporterIntervalInMills metricsOtelCardinalityLimit metricsPromExporterPort minInSyncReplicas
osPageCacheBusyTimeOutMills popCkMaxBufferSize popCkOffsetMaxQueueSize popCkStayBufferTime popCkStayBufferTimeOut
popFromRetryProbability popFromRetryProbabilityForPriority popInflightMessageThreshold
popLongPollingForceNotifyInterval popPollingMapExpireTimeSeconds popPollingMapSize popPollingSize popReviveConcurrency
popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead printChannelGroupsMinNum processReplyMessageThreadPoolNums
pullBatchMaxMessageCount pullMessageThreadPoolNums pullThreadPoolQueueCapacity putMessageFutureThreadPoolNums
putMessageTimeout putMsgIndexHightWater putThreadPoolQueueCapacity queryMessageThreadPoolNums
queryThreadPoolQueueCapacity recoverThreadPoolNums redeleteHangedFileInterval registerBrokerTimeoutMills
registerNameServerPeriod replicasPerDiskPartition replyThreadPoolQueueCapacity reviveAckWaitMs reviveInterval
reviveMaxSlow reviveQueueNum reviveScanTime rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold
sampleCountThreshold sampleSteps scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked
sendHeartbeatTimeoutMillis sendMessageThreadPoolNums sendThreadPoolQueueCapacity serverAsyncSemaphoreValue
serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverOnewaySemaphoreValue serverSelectorThreads
serverSocketBacklog serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads sharedByteBufferNum
shortPollingTimeMills shutdownWaitTimeSeconds slaveTimeout spinLockCollisionRetreatOptimalDegree splitMetadataSize
splitRegistrationSize startAcceptSendRequestTimeStamp statRocksDBCQIntervalSec subscriptionExpiredTimeout
syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod syncControllerMetadataPeriod syncFlushTimeout
timerColdDataCheckIntervalMs timerCongestNumEachSlot timerFlushIntervalMs timerGetMessageThreadNum timerMaxDelaySec
timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs timerPutMessageThreadNum timerRocksDBPrecisionMs
timerRocksDBRollIntervalHours timerRocksDBRollRangeHours timerRollWindowSlot timerWheelSnapshotIntervalMs
topicQueueLockNum totalReplicas transactionCheckInterval transactionCheckMax transactionMetricFlushInterval
transactionOpBatchInterval transactionOpMsgMaxSize transactionTimeOut transientStorePoolSize
travelCqFileNumWhenGetMessage updateNameServerAddrPeriod waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue
waitTimeMillsInHeartbeatQueue waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue
waitTimeMillsInTransactionQueue writeBufferHighWaterMark writeBufferLowWaterMark
"""
NUMBERS = frozenset(_NUMBERS.split())
"""Settings that are whole numbers."""

_FRACTIONS = """
logicalDiskSpaceCleanForciblyThreshold timerRocksDBRollMaxTps timerRocksDBTimeExpiredMaxTps
"""
FRACTIONS = frozenset(_FRACTIONS.split())
"""Settings that are numbers with a fraction."""

_SWITCHES = """
accountStatsEnable accountStatsPrintZeroValues aclEnable allAckInSyncStateSet allowRecallWhenBrokerNotWriteable
appendAckAsync appendCkAsync appendTopicForTimerDeleteKey asyncLearner asyncSendEnable autoCreateSubscriptionGroup
autoCreateTopicEnable autoDeleteUnusedStats autoMessageVersionOnTopicLen brokerFastFailureEnable brokerTopicEnable
checkCRCOnRecover cleanFileForciblyEnable clearRetryTopicWhenDeleteTopic clientCloseSocketIfTimeout
clientPooledByteBufAllocatorEnable clusterTopicEnable coldCtrStrategyEnable coldDataFlowControlEnable
coldDataScanEnable combineCQEnableCheckSelf commercialEnable compatibleWithOldNameSrv compressedRegister
dataReadAheadEnable debugLockEnable disableCallbackExecutor disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup
diskFallRecorded dispatchFromSenderThread duplicationEnable enableAcceleratedRecovery enableAsyncReput
enableAutoInSyncReplicas enableBatchPush enableBroadcastOffsetStore enableBuildConsumeQueueConcurrently
enableCalcFilterBitMap enableCleanExpiredOffset enableCompaction enableConnectionMetrics enableConsumeQueueExt
enableControllerMode enableCreateSysGroup enableDLegerCommitLog enableDetailStat enableFastChannelEventProcess
enableLagAndDlqMetrics enableLmq enableLmqStats enableLogConsumeQueueRepeatedlyBuildWhenRecover
enableMessageStoreMetrics enableMixedMessageType enableMultiDispatch enableNetWorkFlowControl
enableNotifyAfterPopOrderLockRelease enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge
enablePopLog enablePopMessageThreshold enablePopMetrics enablePropertyFilter enableReconnectForGoAway
enableRegisterProducer enableRemoteEscape enableRemotingMetrics enableRequestMetrics enableRetryTopicV2
enableRocksDBLog enableRunningFlagsInFlush enableScheduleAsyncDeliver enableScheduleMessageStats
enableShutdownGracefully enableSingleTopicRegister enableSkipLongAwaitingAck enableSlaveActingMaster
enableSplitMetadata enableSplitRegistration enableStatsMetrics enableTransactionMetrics enabledAppendPropCRC
estimateAccumulation fastFailIfNoBufferInStorePool fetchControllerAddrByDnsLookup fetchNameSrvAddrByDnsLookup
fetchNamesrvAddrByAddressServer filterSupportRetry flushCommitLogTimed forceRegister forceVerifyPropCRC
haFlowControlEnable highSpeedMode indexFileReadEnable indexFileWriteEnable indexRocksDBEnable
initPopOffsetByCheckMsgInMem isolateLogEnable litePullMessageEnable lockInStrictMode longPollingEnable
mappedFileSwapEnable messageIndexEnable messageIndexSafe metricsInDelta notifyConsumerIdsChangedEnable
offsetCheckInSlave popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit
popConsumerKVServiceLog popResponseReturnActualRetryTopic printChannelGroups priorityOrderAsc
putConsumeQueueDataByFileChannel readUnCommitted realTimeNotifyConsumerChange realTimePersistRocksDBConfig
recallMessageEnable recheckReputOffsetFromCq recoverConcurrently rejectPullConsumerEnable rejectTransactionMessage
retrieveMessageFromPopRetryTopicV1 rocksdbCQDoubleWriteEnable scanAvailableNameSrv searchBcqByCacheEnable
serverLoadBalancerEnable serverNettyWorkerGroupEnable serverPooledByteBufAllocatorEnable skipPreOnline
skipWhenCKRePutReachMaxTimes slaveReadEnable storeReplyMessageEnable syncFromLastFile syncMasterFlushOffsetWhenStartup
timerEnableCheckMetrics timerEnableRetryUntilSuccess timerInterceptDelayLevel timerRecallToTimeWheelEnable
timerRecallToTimelineEnable timerRocksDBEnable timerRocksDBStopScan timerSkipUnknownError timerStopEnqueue
timerWheelEnable timerWheelSnapshotFlush traceOn traceTopicEnable transRocksDBEnable transWriteOriginTransHalfEnable
transferMsgByHeap transientStorePoolEnable useABSLock useEpollNativeSelector usePIDColdCtrStrategy
useReentrantLockWhenPutMessage useSeparateRetryQueue useServerSideResetOffset useSingleRocksDBForAllConfigs
useStaticSubscription useTLS validateSystemTopicWhenUpdateTopic wakeCommitWhenPutMessage wakeFlushWhenPutMessage
warmMapedFileEnable writeWithoutMmap
"""
SWITCHES = frozenset(_SWITCHES.split())
"""Settings that are true or false."""

_TEXTS = """
bindAddress bottomMostCompressionTypeForConsumeQueueStore brokerClusterName brokerConfigPath brokerIP1 brokerIP2
brokerName brokerRole combineAssignOffsetCQType combineCQLoadingCQTypes combineCQPreferCQType configBlackList
configManagerVersion controllerAddr dLegerGroup dLegerPeers dLegerSelfId defaultMessageRequestMode deleteWhen
flushDiskType haMasterAddress messageDelayLevel messageStorePlugIn metricsExporterType metricsGrpcExporterHeader
metricsGrpcExporterTarget metricsLabel metricsPromExporterHost msgTraceTopicName namesrvAddr preferredLeaderId
readOnlyCommitLogStorePaths regionId rocketmqHome rocksdbCompressionType socksProxyConfig storePathBrokerIdentity
storePathCommitLog storePathDLedgerCommitLog storePathEpochFile storePathRootDir storeType
"""
TEXTS = frozenset(_TEXTS.split())
"""Settings that are texts."""

KNOWN = NUMBERS | FRACTIONS | SWITCHES | TEXTS
CHOICES: Mapping[str, tuple[str, ...]] = {
    "flushDiskType": ("ASYNC_FLUSH", "SYNC_FLUSH"),
    "brokerRole": ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"),
}
"""Settings with few values."""

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_FRACTION = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,19})?")
_PAIR = re.compile(r"((?:[^=:\s\\]|\\.)+)\s*[=:\s]\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SHOWN = 60


def parse_lines(text: str) -> tuple[dict[str, str], str | None]:
    """Return the settings of a file, and the problem of its first malformed line.

    Comments begin with # or !. A backslash at the end of a line continues it. The last of equal names counts.
    """
    settings: dict[str, str] = {}
    pending = ""
    for number, each in enumerate(text.splitlines(), 1):
        line = pending + each.strip()
        if not pending and line[:1] in ("", "#", "!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        pair = _PAIR.fullmatch(line)
        if pair is None or not line.isprintable() or "\N{REPLACEMENT CHARACTER}" in line:
            return settings, f"line {number} is no name=value: {line[:_SHOWN]!r}"
        settings[_ESCAPE.sub(r"\1", pair[1])] = _ESCAPE.sub(r"\1", pair[2]).strip()
    return settings, None


def problem_of(settings: Mapping[str, str]) -> str | None:
    """Return what is wrong with the first setting that no broker takes: its name or its value."""
    for name, value in settings.items():
        if name not in KNOWN:
            near = get_close_matches(name, sorted(KNOWN), n=3, cutoff=0.6)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            return f"unknown broker setting {name!r}{hint}"
        if name in NUMBERS and not _NUMBER.fullmatch(value):
            return f"{name} is {value[:_SHOWN]!r}; it has to be a whole number"
        if name in FRACTIONS and not _FRACTION.fullmatch(value):
            return f"{name} is {value[:_SHOWN]!r}; it has to be a number"
        if name in SWITCHES and value.lower() not in ("true", "false"):
            return f"{name} is {value[:_SHOWN]!r}; it has to be true or false"
        if name in CHOICES and value not in CHOICES[name]:
            return f"{name} is {value[:_SHOWN]!r}; it has to be {' or '.join(CHOICES[name])}"
    return None
