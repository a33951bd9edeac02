"""The configuration of a store: RocketMQ's names in snake case, RocketMQ's units."""

import ipaddress
from dataclasses import dataclass
from typing import Literal

from impl import defaults
from impl.errors import BadConfig
from impl.policy import FlushDiskType

__all__ = ["MessageStoreConfig", "RecordChecksum"]

RecordChecksum = Literal["record", "body"]

_SMALLEST_FILE_BYTES = 256


@dataclass(frozen=True, slots=True)
class MessageStoreConfig:
    """What a store is opened with. Raises BadConfig for a value that cannot work.

    `mapped_file_size_commit_log` and `max_message_size` are bytes. `record_checksum="record"` ends each record with
    the checksum trailer of RocketMQ 5; `"body"` writes the pure records of 4.9.3.
    """

    mapped_file_size_commit_log: int = defaults.MAPPED_FILE_SIZE_COMMIT_LOG
    max_message_size: int = defaults.MAX_MESSAGE_SIZE
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    record_checksum: RecordChecksum = "record"
    store_host: tuple[str, int] = defaults.STORE_HOST

    def __post_init__(self) -> None:
        if not _SMALLEST_FILE_BYTES <= self.mapped_file_size_commit_log <= 1 << 40:
            raise BadConfig("mapped_file_size_commit_log", self.mapped_file_size_commit_log, "use 256 bytes to 1 TiB")
        if not 1 <= self.max_message_size < 1 << 31:
            raise BadConfig("max_message_size", self.max_message_size, "use 1 byte to 2 GiB - 1")
        if self.record_checksum not in ("record", "body"):
            raise BadConfig("record_checksum", self.record_checksum, 'use "record" or "body"')
        if not _is_host(self.store_host):
            raise BadConfig("store_host", self.store_host, "use a numeric IPv4 or IPv6 address and a port")
        if not isinstance(self.flush_disk_type, FlushDiskType):
            raise BadConfig("flush_disk_type", self.flush_disk_type, "use FlushDiskType.SYNC_FLUSH or ASYNC_FLUSH")


def _is_host(host: tuple[str, int]) -> bool:
    address, port = host
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return "%" not in address and 0 <= port < 1 << 31
