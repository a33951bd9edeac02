"""Define Hypothesis strategies of the queue machine: colliding keys, queues, tags, delays."""

from typing import get_args

from hypothesis import strategies as st

from tornpage.model.operations import (
    ClaimChange,
    FieldName,
    GetMessage,
    HarmField,
    HarmNumbers,
    HarmOpen,
    OffsetByTime,
    Put,
    QueryKey,
    ReadBefore,
    UnitsHarm,
    WrongClaim,
)
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings

__all__ = [
    "field_harms",
    "key_queries",
    "number_harms",
    "open_harms",
    "pulls",
    "queued_puts",
    "settings_of_queues",
    "time_look_ups",
]

_TOPICS = ("T", "U", "%RETRY%group", "SCHEDULE_TOPIC_XXXX", "%LMQ%a", "订单")
_PROPERTIES = (
    "KEYS\x01Aa k\x02TAGS\x01TagA",
    "KEYS\x01BB\x02TAGS\x01TagB",  # "Aa" and "BB" have the same hash
    "UNIQ_KEY\x01u\x02KEYS\x01Aa",
    "TAGS\x01Aa",
    "TAGS\x01BB\x02KEYS\x01k  k",
    "TAGS\x01TagZZZ",  # a negative hash
    "",
    "KEYS\x01k Aa BB u\x02TAGS\x01TagA",
    "INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02KEYS\x01k",
    "INNER_MULTI_DISPATCH\x01U,T\x02TAGS\x01TagA",
    "DELAY\x012\x02TAGS\x01TagA\x02KEYS\x01Aa",
    "DELAY\x0199",
    "KEYS\x01polygenelubricants",  # a hash without an absolute value
    "UNIQ_KEY\x01u\x02KEYS\x01kWAIT\x01true",  # joined by a batch of 4.9.0
)


def settings_of_queues() -> st.SearchStrategy[Settings]:
    """Draw small stores with small queue and index files, so that both roll over.

    Extension and index may be off.
    """
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((16384, 4096, 65536)),
        sync_flush=st.sampled_from((False, True)),
        trailer=st.sampled_from((True, False)),
        disk=st.sampled_from(("posix-strict", "journal")),
        multi_dispatch=st.sampled_from((True, True, False)),
        light_queues=st.sampled_from((True, False)),
        delay_levels=st.sampled_from((18, 2)),
        pool_buffers=st.sampled_from((0, 0, 2)),
        queue_units=st.sampled_from((4, 1, 16, 60)),
        queue_ext=st.sampled_from((False, False, True)),
        bit_maps=st.just(True),
        index=st.sampled_from((True, True, True, False)),
        index_slots=st.sampled_from((3, 1, 50)),
        index_entries=st.sampled_from((6, 2, 24, 300)),
        verify_reads=st.sampled_from(("always", "once", "once", "never")),
        drops_joined=st.sampled_from((False, False, False, True)),
    )


def queued_puts() -> st.SearchStrategy[Put]:
    """Draw small messages, many to a file, with various keys and tags, some transactional."""
    return st.builds(
        Put,
        topic=one_of(_TOPICS),
        queue_id=st.sampled_from((0, 0, 1)),
        body_bytes=st.sampled_from((10, 0, 60, 300, 1500)),
        fill=st.integers(0, 5),
        properties=one_of(_PROPERTIES),
        sys_flag=st.sampled_from((0, 0, 0, 0, 0x08, 0x04, 0x0C)),
        born_v6=st.sampled_from((False, False, False, True)),
        later=st.sampled_from((False, False, False, True)),
        advance_ms=st.sampled_from((1, 0, 500, 3000)),
    )


def pulls() -> st.SearchStrategy[GetMessage]:
    """Draw pulls from any queue and from none, inside it and at its edges."""
    return st.builds(
        GetMessage,
        queue=st.integers(-1, 8),
        shift=st.sampled_from((0, 0, 1, 2, 5, 17, -1, 40)),
        max_msg_nums=st.sampled_from((32, 1, 3, 0, -1, 100)),
        tags=st.sampled_from(("", "", "TagA", "BB", "TagA||TagB", "TagZZZ", "nothing")),
    )


def key_queries() -> st.SearchStrategy[QueryKey]:
    """Draw queries for any key and for none, in any time window."""
    return st.builds(
        QueryKey,
        key=st.integers(-1, 12),
        max_num=st.sampled_from((32, 1, 2, 100, 0, -1, 1 << 60)),
        begin_ms=st.sampled_from((0, -1, 1, 500, 2999, 3000, 10_000)),
        window_ms=st.sampled_from((-1, -1, 0, 499, 1000, 60_000)),
    )


def time_look_ups() -> st.SearchStrategy[OffsetByTime]:
    """Draw times of messages, and times between and outside of them."""
    return st.builds(
        OffsetByTime,
        queue=st.integers(-1, 8),
        record=st.integers(0, 40),
        shift_ms=st.sampled_from((0, 0, 0, 1, -1, 100_000, -100_000)),
    )


def field_harms() -> st.SearchStrategy[HarmField]:
    """Harm to any field of any record: small numbers, and those near the limits."""
    return st.builds(
        HarmField,
        field=st.sampled_from(get_args(FieldName)),
        record=st.integers(-1, 8),
        value=one_of((0, 1, 2, 3, 5, 40, 1 << 20, 1 << 40, (1 << 63) - 1, (1 << 63) - 2, -1, -(1 << 63))),
    )


def number_harms() -> st.SearchStrategy[HarmNumbers]:
    """Draw changes of the claims of one to four records, and of the queue files."""
    change = st.builds(
        WrongClaim,
        record=st.integers(-12, -1),
        change=st.sampled_from(get_args(ClaimChange)),
        value=one_of((0, 1, 2, 3, 5, 20, 1 << 40, (1 << 63) - 1, -1, -2, -(1 << 63))),
    )
    return st.builds(
        HarmNumbers,
        changes=st.lists(change, min_size=1, max_size=4).map(tuple),
        units=st.sampled_from(get_args(UnitsHarm)),
        amount=st.integers(0, 5),
    )


def open_harms() -> st.SearchStrategy[HarmOpen]:
    """Draw changes of any byte of any record of the open store."""
    return st.builds(
        HarmOpen,
        before=st.sampled_from(get_args(ReadBefore)),
        record=st.integers(0, 8),
        byte=st.integers(0, 200),
    )
