"""Records that the decoder found, as the model's values and as the judges' memory of the log."""

from __future__ import annotations

from collections.abc import Sequence

from tornpage.model.message import Message
from tornpage.model.state import CommitLog
from tornpage.model.state import Record as ModelRecord
from tornpage.properties.decode.record import TRAILER_BYTES, Record
from tornpage.properties.judge.ledger import Ledger

__all__ = ["ImageLedger", "is_text", "log_of", "model_record"]


class ImageLedger(Ledger):
    """The bytes of records that were found, not put: there is nothing to compare them with yet."""

    def __init__(self, records: Sequence[Record], *, file_bytes: int) -> None:
        super().__init__(file_bytes=file_bytes)
        for record in records:
            base = record.offset // file_bytes * file_bytes
            self._file(base)[record.offset - base : record.end_offset - base] = record.raw
            self.ends.append(record.end_offset)


def is_text(record: Record) -> bool:
    """Whether topic and properties are UTF-8, so that Java and Python read the same in them."""
    try:
        record.topic.decode()
        record.properties.decode()
    except UnicodeDecodeError:
        return False
    return True


def model_record(record: Record) -> ModelRecord:
    """Return a record as the model has it."""
    properties = record.properties if record.checksum is None else record.properties[:-TRAILER_BYTES]
    message = Message(
        topic=record.topic_text,
        body=record.body,
        queue_id=record.queue_id,
        properties=properties.decode("utf-8", "replace"),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )
    return ModelRecord(record.offset, record.size_bytes, record.queue_offset, record.store_timestamp, message)


def log_of(records: Sequence[Record], end_offset: int) -> CommitLog:
    """Return the model's log of these records, flushed and dispatched."""
    return CommitLog(
        records=tuple(map(model_record, records)),
        end_offset=end_offset,
        flushed_offset=end_offset,
        dispatched_offset=end_offset,
    )
