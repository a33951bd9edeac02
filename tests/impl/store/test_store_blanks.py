"""Test the end of a file: the rest is a blank of exactly its size.

It is written before messages and before batches.
"""

from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, log_bytes, open_store, put
from tornpage.impl.message.message import Message, MessageBatch, PutStatus

FILE_BYTES = 1024
BLANK_MAGIC = bytes.fromhex("cbd43194")
FOLLOWERS: dict[str, tuple[Message | MessageBatch, bool]] = {
    "message": (Message("T", b"x" * 100, queue_id=1), False),
    "message, put_async": (Message("T", b"x" * 100, queue_id=1), True),
    "batch": (batch_of(b"one", b"two"), False),
    "batch of one": (batch_of(b"x" * 100), True),
}


@pytest.mark.parametrize("follower", FOLLOWERS)
@pytest.mark.parametrize("trailer", [True, False])
def test_every_rest_of_a_file_becomes_a_blank_of_its_size(follower: str, trailer: bool, tmp_path: Path) -> None:
    """Fill file after file up to a rest of 8 to 200 bytes, then put a larger record."""
    message, later = FOLLOWERS[follower]
    overhead = 120 if trailer else 100
    rests: list[int] = []
    fillers: list[int] = []
    with open_store(tmp_path, file_bytes=FILE_BYTES, trailer=trailer) as store:
        needed = put(store, message).size_bytes + 8
        for rest in range(8, 201):
            body_bytes = FILE_BYTES - store.max_offset % FILE_BYTES - rest - overhead
            filled = store.put(Message("TopicTest", bytes(body_bytes), born_host=MESSAGE.born_host))
            assert FILE_BYTES - store.max_offset % FILE_BYTES == rest, rest
            fillers.append(filled.offset)
            result = store.put_async(message).result(timeout=0) if later else put(store, message)
            assert result.status is PutStatus.PUT_OK
            if rest >= needed:
                assert result.offset == filled.offset + filled.size_bytes
                rests.append(rest - needed + 8)
                assert store.put(Message("T", bytes(400))).offset % FILE_BYTES == 0
            else:
                assert result.offset % FILE_BYTES == 0
                rests.append(rest)
        records = 2 if isinstance(message, MessageBatch) and follower == "batch" else 1
        expected = [stored.offset for stored in store.messages()]
        assert len(expected) == len(fillers) + records * (len(fillers) + 1) + sum(r >= needed for r in range(8, 201))
    files = log_bytes(tmp_path)
    for number, rest in enumerate(rests):
        data = files[f"{number * FILE_BYTES:020d}"]
        assert data[-rest:] == (rest.to_bytes(4, "big") + BLANK_MAGIC).ljust(rest, b"\0"), rest
    with open_store(tmp_path, file_bytes=FILE_BYTES, trailer=trailer) as store:
        assert store.findings == ()
        assert [stored.offset for stored in store.messages()] == expected


@pytest.mark.parametrize("missing_bytes", [0, 1], ids=["just fits", "one byte too long"])
@pytest.mark.parametrize("trailer", [True, False])
def test_a_batch_stays_where_exactly_eight_bytes_are_left_behind_it(
    missing_bytes: int, trailer: bool, tmp_path: Path
) -> None:
    batch, other = batch_of(b"one", b"two"), batch_of(b"x")
    with open_store(tmp_path, file_bytes=FILE_BYTES, trailer=trailer) as store:
        needed = put(store, batch).size_bytes
        overhead = put(store, other).size_bytes - 1
        body_bytes = FILE_BYTES - store.max_offset - overhead - needed - 8 + missing_bytes
        put(store, batch_of(bytes(body_bytes)))
        end = store.max_offset
        assert end == FILE_BYTES - needed - 8 + missing_bytes
        result = put(store, batch)
        assert result.status is PutStatus.PUT_OK
        assert result.offset == (FILE_BYTES if missing_bytes else end)
        assert store.max_offset == (FILE_BYTES + needed if missing_bytes else FILE_BYTES - 8)
