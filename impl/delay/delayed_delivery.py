"""Delayed delivery of one store: the service, its saved progress, its runtime information.

A master delivers. A slave leaves delivery, and the file of its progress, to its master (RMQ-B64). A store that opens as
a master reads the file.
"""

from collections.abc import Callable
from functools import partial

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.delay.schedule import FIRST_DELAY_MS, DeliverDelayedMessages, DeliveryRounds
from tornpage.impl.delay.schedule_async import DeliverDelayedMessagesAsync
from tornpage.impl.durability import Durability
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, queue_of_level
from tornpage.impl.parts import Parts
from tornpage.impl.put.delayed_copy import copy_of
from tornpage.impl.put.put_path import PutPath
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.impl.read.read_path import ReadPath
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import Runner, ThreadRunner

__all__ = ["DelayedDelivery"]


class DelayedDelivery:
    """Builds the delivery of one store.

    In a master, `owners` holds the owner of the delay offsets.
    """

    def __init__(
        self,
        held: OpenDirectory,
        lifecycle: Lifecycle,
        *,
        files: Files,
        config: MessageStoreConfig,
        clock: Clock,
        parts: Parts,
        puts: PutPath,
        reads: ReadPath,
        durability: Durability,
    ) -> None:
        self.owners: tuple[DelayOffsets, ...] = ()
        self._service: DeliveryRounds | None = None
        self._runner: Runner | None = None
        self._queues = reads.queues
        if config.broker_role is BrokerRole.SLAVE:
            return
        offsets = parts.of(DelayOffsets)(
            parts.of(ConfigFile)(files, f"{held.directory}/config/delayOffset.json"),
            interval_ms=config.flush_delay_offset_interval,
            make_copies_durable=durability.make_all_durable,
            guard=parts.of(make_guard),
        )
        self.owners = (offsets,)
        if not config.deliver_delayed_messages:
            return
        deliver: Callable[..., DeliveryRounds] = partial(parts.of(DeliverDelayedMessages), put=puts.put_without_waiting)
        if config.enable_schedule_async_deliver:
            deliver = partial(
                parts.of(DeliverDelayedMessagesAsync),
                put=puts.put_async,
                pending_max=config.schedule_async_deliver_max_pending_limit,
            )
        self._service = deliver(
            held.derived.queues,
            reads.reader,
            parts.of(QueuedRecords)(held.dispatch),
            offsets,
            levels=config.delay_levels(),
            copy_of=parts.of(copy_of),
            clock=clock,
            may_deliver=lambda: not lifecycle.shut,
        )
        self._runner = parts.of(ThreadRunner)(self._service)
        self._service.wake = self._runner.wake
        held.derived.add_follower(self._service.note_runs)

    def start(self) -> None:
        """Start the service. Source: `ScheduleMessageService.start`."""
        if self._runner is not None:
            self._runner.start(after_ms=FIRST_DELAY_MS)

    def stop(self) -> None:
        """Stop delivery; waits for a running round. Every put must have been answered before."""
        if self._runner is not None:
            self._runner.stop()
        if self._service is not None:
            self._service.finish()

    def progress(self) -> dict[int, int]:
        """Return the number of the next message to deliver of each level, levels in order."""
        return {level: number for offsets in self.owners for level, number in offsets.by_level().items()}

    def runtime_info(self) -> dict[str, str]:
        """Return the progress of each level as a text "stored,max", and counts.

        The counts are of skipped and unconfirmed messages. Source: `ScheduleMessageService.buildRunningStats`.
        """
        info = {
            f"scheduleMessageOffset_{level}": f"{number},{self._end_of(level)}"
            for level, number in self.progress().items()
        }
        if self._service is not None:
            info["scheduleMessageSkipped"] = str(self._service.skipped)
            info["scheduleMessageUnconfirmed"] = str(self._service.unconfirmed)
        return info

    def _end_of(self, level: int) -> int:
        return self._queues.range_of(SCHEDULE_TOPIC, queue_of_level(level))[1]
