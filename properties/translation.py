"""From the settings and messages of a case to what the store and what the model are opened and fed with."""

from dataclasses import fields

from impl.config import MessageStoreConfig
from impl.message import Message as StoreMessage
from impl.policy import FlushDiskType
from model.commitlog import Layout
from model.message import Message
from properties.case import Settings

__all__ = ["layout_of", "store_config", "store_message"]


def store_config(settings: Settings) -> MessageStoreConfig:
    """Return the configuration of the store in a case."""
    return MessageStoreConfig(
        mapped_file_size_commit_log=settings.file_bytes,
        max_message_size=settings.record_bytes_max,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if settings.sync_flush else FlushDiskType.ASYNC_FLUSH,
        record_checksum="record" if settings.trailer else "body",
    )


def layout_of(settings: Settings) -> Layout:
    """Return the model's layout of a case."""
    return Layout(
        file_bytes=settings.file_bytes,
        record_bytes_max=settings.record_bytes_max,
        trailer=settings.trailer,
        sync_flush=settings.sync_flush,
        files_max=settings.files_max,
    )


def store_message(message: Message) -> StoreMessage:
    """Return the store's message with every field of the model's."""
    return StoreMessage(**{field.name: getattr(message, field.name) for field in fields(message)})
