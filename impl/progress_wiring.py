"""Progress of a store that opens: built from its parts, loaded, corrected and durable before the first put."""

from collections.abc import Iterable

from impl.components import Components
from impl.config import MessageStoreConfig
from impl.files import Clock, Files
from impl.lifecycle import Lifecycle
from impl.opening import OpenDirectory
from impl.progress import Progress
from impl.progress_owner import ProgressOwner

__all__ = ["open_progress"]


def open_progress(
    held: OpenDirectory,
    lifecycle: Lifecycle,
    *,
    config: MessageStoreConfig,
    files: Files,
    clock: Clock,
    components: Components,
    owners: Iterable[ProgressOwner] = (),
) -> Progress:
    """Return what the store remembers of progress, `owners` being others who have a state file.

    What was found joins the findings of the open. Raises OSError.
    """
    progress = components.progress(
        config,
        config_file=lambda name: components.config_file(files, f"{held.directory}/config/{name}"),
        consumer_offsets=components.consumer_offsets,
        config_table=components.config_table,
        service=components.persist_progress,
        runner=components.runner,
        guard=components.guard,
        clock=clock,
        lifecycle=lifecycle,
    )
    for owner in owners:
        progress.add(owner)
    held.findings += progress.open(held.range_of)
    return progress
