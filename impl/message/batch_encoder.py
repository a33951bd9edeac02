"""Encoding a batch to its records.

Fields of the whole batch are checked here, messages in `impl.message.batch`. Source: docs/statuses.md, "put of a
batch"; `CommitLog.asyncPutMessages`.
"""

from collections.abc import Callable

from tornpage.impl.message import batch as plain
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.codec import BORN_HOST_V6, STORE_HOST_V6, TRANSACTION_MASK
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, delay_level_of
from tornpage.impl.message.encoder import topic_bytes
from tornpage.impl.message.hosts import Host, host_bytes
from tornpage.impl.message.message import MessageBatch, PutStatus
from tornpage.impl.message.multi_dispatch import asks_for_dispatch
from tornpage.impl.message.properties_text import CHECKSUM_NAME, parse_pairs, text_of, without

__all__ = ["BatchEncoder"]

_UNIQUE_KEY = "UNIQ_KEY"


class BatchEncoder:
    """Encodes batches of one store.

    `encode_batch` and `place` are those of `impl.message.batch` or compiled twins.
    """

    def __init__(
        self,
        *,
        store_host: Host,
        trailer: bool,
        record_bytes_max: int,
        room_bytes_max: int,
        multi_dispatch: bool,
        encode_batch: Callable[[bytes, BatchFrame], EncodedBatch | PutStatus] = plain.encode_batch,
        place_batch: Callable[..., None] = plain.place_batch,
    ) -> None:
        self._store_host = store_host
        self._trailer = trailer
        self._record_bytes_max = record_bytes_max
        self._room_bytes_max = room_bytes_max
        self._multi_dispatch = multi_dispatch
        self._encode_batch = encode_batch
        self.place = place_batch

    def encode(self, batch: MessageBatch, *, now_ms: int) -> EncodedBatch | PutStatus:
        """Return the unplaced records of all messages, or the status that refuses the batch."""
        topic, text = topic_bytes(batch.topic), text_of(batch.properties)
        if topic is None or batch.topic == SCHEDULE_TOPIC or text is None or not batch.body:
            return PutStatus.MESSAGE_ILLEGAL
        level = delay_level_of(parse_pairs(text).get("DELAY"))
        if batch.sys_flag & TRANSACTION_MASK or level is None or level > 0:
            return PutStatus.MESSAGE_ILLEGAL
        if self._multi_dispatch and asks_for_dispatch(text):
            return PutStatus.MESSAGE_ILLEGAL
        try:
            # each message gets the properties of the batch, except the batch's own key (RMQ-B21)
            properties = without(text, _UNIQUE_KEY, CHECKSUM_NAME).encode()
        except UnicodeEncodeError:
            return PutStatus.MESSAGE_ILLEGAL
        born_host, store_host = _packed(batch.born_host), _packed(batch.store_host or self._store_host)
        sys_flag = batch.sys_flag & ~(BORN_HOST_V6 | STORE_HOST_V6)
        sys_flag |= BORN_HOST_V6 if len(born_host) == 20 else 0
        sys_flag |= STORE_HOST_V6 if len(store_host) == 20 else 0
        frame = BatchFrame(
            topic=topic,
            queue_id=batch.queue_id,
            sys_flag=sys_flag,
            born_timestamp=now_ms if batch.born_timestamp is None else batch.born_timestamp,
            born_host=born_host,
            store_host=store_host,
            reconsume_times=batch.reconsume_times,
            properties=properties,
            trailer=self._trailer,
            record_bytes_max=self._record_bytes_max,
            room_bytes_max=self._room_bytes_max,
            multi_dispatch=self._multi_dispatch,
        )
        return self._encode_batch(batch.body, frame)


def _packed(host: Host) -> bytes:
    """Return the bytes of a host; empty for an invalid one, which a later check refuses."""
    try:
        return host_bytes(host)
    except ValueError:
        return b""
