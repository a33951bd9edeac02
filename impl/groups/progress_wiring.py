"""Progress of a store that opens: built from its parts, loaded, corrected and durable before the first put."""

from collections.abc import Iterable

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.persist_progress import PersistProgress
from tornpage.impl.groups.progress import Progress
from tornpage.impl.groups.progress_owner import ProgressOwner
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner

__all__ = ["open_progress"]


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
    """Return what the store remembers of progress, `owners` being others who have a state file.

    What was found joins the findings of the open. Raises OSError.
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
