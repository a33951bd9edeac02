"""Queues and index of a store that opens: built from its parts, as its settings say, and not loaded yet."""

from collections.abc import Sequence

from impl.arriving import MessageArrivingListener
from impl.config import MessageStoreConfig
from impl.consume_queue import ConsumeQueue
from impl.consume_queue_ext import ConsumeQueueExt
from impl.consume_queues import ConsumeQueues
from impl.deleted_topics import DeletedTopics
from impl.derived import Derived
from impl.dispatch_records import dispatch_records
from impl.dispatching import DispatchRules, FilterBitMap
from impl.files import Clock, Files
from impl.index_entries import PLAIN_ENTRIES
from impl.index_file import IndexFile
from impl.index_service import IndexService
from impl.multi_dispatch import MultiDispatch
from impl.parts import Parts
from impl.policy import BrokerRole

__all__ = ["derived_of"]


def derived_of(
    directory: str,
    config: MessageStoreConfig,
    *,
    files: Files,
    clock: Clock,
    parts: Parts,
    writable: bool,
    clean_exit: bool,
    deleted: DeletedTopics,
    dispatch: MultiDispatch | None,
    bit_map_of: FilterBitMap | None,
    arriving: Sequence[MessageArrivingListener],
) -> Derived:
    """Return what follows from the log of the store in a directory. A slave tells no listener of what arrives."""
    queues = parts.of(ConsumeQueues)(
        files,
        directory,
        file_bytes=config.consume_queue_file_bytes,
        writable=writable,
        clean_exit=clean_exit,
        ext=config.enable_consume_queue_ext,
        ext_file_bytes=config.mapped_file_size_consume_queue_ext,
        bit_maps=bit_map_of is not None,
        consume_queue=parts.of(ConsumeQueue),
        consume_queue_ext=parts.of(ConsumeQueueExt),
    )
    index = parts.of(IndexService)(
        files,
        f"{directory}/index",
        slots=config.max_hash_slot_num,
        entries_max=config.max_index_num,
        clock=clock,
        writable=writable,
        entries=parts.of(PLAIN_ENTRIES),
        index_file=parts.of(IndexFile),
    )
    rules = DispatchRules(
        index=config.message_index_enable,
        delay_levels=config.delay_levels(),
        multi_dispatch=dispatch,
        ext=config.enable_consume_queue_ext,
        bit_map_of=bit_map_of,
    )
    return parts.of(Derived)(
        queues,
        index if config.message_index_enable else None,
        dispatch=parts.of(dispatch_records),
        rules=rules,
        listeners=() if config.broker_role is BrokerRole.SLAVE else arriving,
        deleted=deleted,
    )
