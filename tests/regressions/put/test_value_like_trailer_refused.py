"""A property value that ends like a trailer is refused.

Symptom: a put was answered PUT_OK, its record could not be read, and the store opened read-only afterwards.
Cause: in a store without checksum trailers every reader takes a property value whose last 20 bytes begin with
`__CRC32#` and 01 for a trailer, and its digits are wrong.
Fix: such a message is refused (docs/statuses.md, properties with a NUL byte).
Found by: a review that fuzzed store and model.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import open_store
from tornpage.impl.kernels.compiled import compiled_batch_encoder
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutStatus
from tornpage.impl.parts import Parts

ENDS_LIKE_ONE = ("A__CRC32#\x0112345678901", "k\x01__CRC32#\x0112345678901", "A__CRC32#\x011234567890\x02")


def batch(properties: str, member: str) -> MessageBatch:
    return MessageBatch("T", encode_batch_body([BatchMember(b"x", member)]), properties=properties)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("text", ENDS_LIKE_ONE)
def test_store_without_trailers_refuses_it(text: str, compiled: bool, tmp_path: Path) -> None:
    parts = Parts({BatchEncoder: compiled_batch_encoder}) if compiled else Parts()
    with open_store(tmp_path, trailer=False, parts=parts) as store:
        for answer in (
            store.put(Message("T", b"x", properties=text)),
            store.put_batch(batch(text, "")),
            store.put_batch(batch("", text)),
        ):
            assert (answer.status, store.max_offset) == (PutStatus.MESSAGE_ILLEGAL, 0)


@pytest.mark.parametrize("text", ENDS_LIKE_ONE)
def test_store_with_trailers_keeps_it(text: str, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        put = store.put(Message("T", b"x", properties=text))
        assert put.status is PutStatus.PUT_OK
        assert store.get(put.offset).message is not None
    with open_store(tmp_path) as store:
        assert store.read_only_reason is None
