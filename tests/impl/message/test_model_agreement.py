"""Test that store and model decide alike about a message (contract 8).

They share no code.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.impl.records import encoder_of
from tornpage.impl.message import codec
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.message.properties_text import text_of, wait_store_msg_ok
from tornpage.model import message as model
from tornpage.model.admission import as_given, as_stored
from tornpage.model.state import Layout

NUMBERS = st.sampled_from(
    (0, 1, -1, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1, (1 << 63) - 1, 1 << 63, -1 << 63)
)
SMALL = st.sampled_from((0, 0x3F, -1, (1 << 31) - 1, 1 << 31, -(1 << 31), -(1 << 31) - 1))
ADDRESSES = st.sampled_from(
    ("1.2.3.4", "::1", "::", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "01.2.3.4",
     "1.2.3", "1.2.3.4.5", "1.2.3.256", "::1%lo", "::1%", "00001::", "fe80::g", "::1::", "", " ", "1.2.3.4 ",
     "1.2.3.4\n", "١.2.3.4", "\0", "localhost", "2001:DB8::A", "::1.2.3.4", "1::2::3", ":1", "1:", "0x1.2.3.4")
)  # fmt: skip
HOSTS = st.tuples(ADDRESSES, SMALL)
PIECES = st.sampled_from(
    ("a", "é", "\0", "\x01", "\x02", "/", ".", "__CRC32#", "WAIT", "true", "false", "\ud800", "😀")
)
TEXT = st.lists(PIECES, max_size=6).map("".join)
LONG = st.sampled_from((32_740, 32_745, 32_746, 32_747, 32_766, 32_767, 32_768)).map(lambda length: "x" * length)
PROPERTIES = TEXT | LONG | st.dictionaries(TEXT, TEXT, max_size=3)
TOPICS = TEXT | st.sampled_from(("t" * 127, "t" * 128, "é" * 63, "é" * 64, ".", "..", "..."))
NORMAL: dict[str, Any] = {
    "topic": "T",
    "body": b"b",
    "queue_id": 0,
    "properties": "",
    "flag": 0,
    "sys_flag": 0,
    "born_timestamp": 0,
    "born_host": ("127.0.0.1", 1),
    "store_host": ("127.0.0.1", 2),
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
}
ODD = {
    "topic": TOPICS,
    "body": st.binary(max_size=20),
    "queue_id": SMALL,
    "properties": PROPERTIES,
    "flag": SMALL,
    "sys_flag": SMALL,
    "born_timestamp": NUMBERS,
    "born_host": HOSTS,
    "store_host": HOSTS,
    "reconsume_times": SMALL,
    "prepared_transaction_offset": NUMBERS,
}


@st.composite
def odd_messages(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the fields of a message that is odd in one, two or three of them."""
    odd = draw(st.lists(st.sampled_from(sorted(ODD)), min_size=1, max_size=3, unique=True))
    return NORMAL | {name: draw(ODD[name]) for name in odd}


@given(fields=odd_messages(), trailer=st.booleans())
def test_store_and_model_refuse_alike(fields: dict[str, Any], trailer: bool) -> None:
    answer = encoder_of(trailer=trailer).encode(Message(**fields), now_ms=0)
    as_model = model.Message(**fields)
    layout = Layout(file_bytes=1 << 40, record_bytes_max=(1 << 31) - 1, trailer=trailer, sync_flush=False, files_max=1)
    refused = as_given(as_model) or as_stored(as_model, as_model, layout=layout)
    if isinstance(answer, PutStatus):
        assert refused is not None
        assert refused.value == answer.value
    else:
        assert refused is None
        expected = model.record_bytes(as_model, trailer=trailer)
        assert int.from_bytes(answer[:4], "big") == len(answer) + 20 * trailer == expected


@given(properties=PROPERTIES)
def test_store_and_model_wait_alike(properties: str | dict[str, str]) -> None:
    as_model = model.Message(**(NORMAL | {"properties": properties}))
    if isinstance(properties, dict) and properties.get("WAIT") == "":
        return  # tests/impl/message/test_properties_text.py has a test of its own for the empty value
    text = text_of(properties)
    assert text is None or wait_store_msg_ok(text) is model.waits_for_disk(as_model)


@given(sys_flag=st.integers(-(1 << 31), (1 << 31) - 1))
def test_store_and_model_count_alike(sys_flag: int) -> None:
    as_model = model.Message(**(NORMAL | {"sys_flag": sys_flag}))
    assert codec.has_consume_queue(sys_flag) is as_model.counts_in_its_queue
