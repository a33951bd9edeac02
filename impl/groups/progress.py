"""The progress of one store: loading, correcting and saving its state files.

An open loads them after the queues are recovered, lowers offsets past the end of a queue, and makes all of it durable
before the first put. Otherwise messages put at numbers that a saved offset has passed would be skipped after a crash. A
damaged or read-only store writes none of them.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import FILTERS, GROUPS, TOPICS, ConfigTable
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.persist_progress import PersistProgress
from tornpage.impl.groups.progress_owner import ProgressOwner, QueueRange
from tornpage.impl.guards import MakeGuard, make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.log.loading import Finding
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import RunnerFactory, ThreadRunner

__all__ = ["Progress", "open_progress"]


class Progress:
    """Builds the parts of progress; `config_file` returns the file of a name below `config/`.

    `add` adds an owner before `open`. `start` runs the service, `stop` ends it, and `save_all` is for a close.
    """

    def __init__(
        self,
        config: MessageStoreConfig,
        *,
        config_file: Callable[[str], ConfigFile],
        consumer_offsets: Callable[..., ConsumerOffsets],
        config_table: Callable[..., ConfigTable[Any]],
        service: Callable[..., PersistProgress],
        runner: RunnerFactory,
        guard: MakeGuard,
        clock: Clock,
        lifecycle: Lifecycle,
    ) -> None:
        self._lifecycle = lifecycle
        self._owners: list[ProgressOwner] = []
        self.offsets = consumer_offsets(
            config_file("lmqConsumerOffset.json" if config.enable_lmq else "consumerOffset.json"),
            light=config.enable_lmq,
            interval_ms=config.flush_consumer_offset_interval,
            guard=guard,
        )
        self.topics: ConfigTable[TopicConfig] = config_table(
            config_file(TOPICS.file_name), TOPICS, clock=clock, guard=guard
        )
        self.groups: ConfigTable[SubscriptionGroupConfig] = config_table(
            config_file(GROUPS.file_name), GROUPS, clock=clock, guard=guard
        )
        self.filters: ConfigTable[ConsumerFilterData] = config_table(
            config_file(FILTERS.file_name), FILTERS, clock=clock, guard=guard
        )
        for owner in (self.offsets, self.topics, self.groups, self.filters):
            self.add(owner)
        self._service = service(self._owners, may_save=lambda: not lifecycle.shut)
        self._runner = runner(self._service)

    def add(self, owner: ProgressOwner) -> None:
        """Add an owner of a state file."""
        self._owners.append(owner)

    def open(self, range_of: QueueRange) -> tuple[Finding, ...]:
        """Load all state files, correct them and make them durable; return the findings.

        Raises OSError.
        """
        for owner in self._owners:
            owner.load()
            if not self._lifecycle.shut:
                owner.make_durable()
                owner.correct(range_of)
                owner.save()
        return tuple(finding for owner in self._owners for finding in owner.findings)

    def start(self) -> None:
        """Start the service."""
        first_ms = self._service.first_ms
        if first_ms is not None:
            self._runner.start(after_ms=first_ms)

    def stop(self) -> None:
        """Stop periodic saves; waits for a running one."""
        self._runner.stop()

    def save_all(self) -> None:
        """Save all changes. Raises the first OSError after all owners were saved."""
        failure: OSError | None = None
        for owner in self._owners:
            try:
                owner.save()
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> AbstractContextManager[Callable[[], None]]:
        """Reset the progress in queues whose numbers restart at 0.

        See `ConsumerOffsets.restart_numbers`.
        """
        return self.offsets.restart_numbers(is_selected)


def open_progress(
    held: OpenDirectory,
    lifecycle: Lifecycle,
    *,
    config: MessageStoreConfig,
    files: Files,
    clock: Clock,
    parts: Parts,
    owners: Iterable[ProgressOwner] = (),
) -> Progress:
    """Return the progress of a store; `owners` are further owners of state files.

    The findings are added to those of the open. Raises OSError.
    """
    progress = parts.of(Progress)(
        config,
        config_file=lambda name: parts.of(ConfigFile)(files, f"{held.directory}/config/{name}"),
        consumer_offsets=parts.of(ConsumerOffsets),
        config_table=parts.of(ConfigTable),
        service=parts.of(PersistProgress),
        runner=parts.of(ThreadRunner),
        guard=parts.of(make_guard),
        clock=clock,
        lifecycle=lifecycle,
    )
    for owner in owners:
        progress.add(owner)
    held.findings += progress.open(held.range_of)
    return progress
