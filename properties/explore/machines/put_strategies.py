"""Define Hypothesis strategies of the put machine: special properties, batches, schedules."""

from hypothesis import strategies as st

from tornpage.model.operations import Concurrent, Member, Put, PutBatch
from tornpage.properties.explore.machines.strategies import one_of, puts
from tornpage.properties.program.case import Settings

__all__ = ["any_puts", "batches", "concurrent_puts", "odd_batches", "settings_of_puts", "special_puts", "wide_batches"]

_TOPICS = ("T", "U", "%RETRY%group", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "%LMQ%a")
_DISPATCH = "INNER_MULTI_DISPATCH\x01"
_DELAYS = (
    "DELAY\x013\x02KEYS\x01k",
    "DELAY\x0199\x02WAIT\x01true",
    "WAIT\x01false\x02DELAY\x011\x02REAL_TOPIC\x01x",
    "DELAY\x010",
    "DELAY\x01+2",
    "DELAY\x01x",
    "DELAY\x012\x02" + _DISPATCH + "%LMQ%a",
    "k\x01" + "v" * 32_700 + "\x02DELAY\x012",
)
_PROPERTIES = (
    _DISPATCH + "%LMQ%a",
    _DISPATCH + "%LMQ%a,%LMQ%b\x02WAIT\x01false",
    "KEYS\x01k\x02" + _DISPATCH + "U,%LMQ%b",
    _DISPATCH + "%LMQ%c",
    *_DELAYS,
    _DISPATCH + "T,T",
    _DISPATCH + " ",
    _DISPATCH + "a,,b",
    _DISPATCH + "a/b",
    _DISPATCH + "%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x017",
    _DISPATCH + "%LMQ%a\x02k\x01" + "v" * 32_640,
    "",
)
_PAIRS: tuple[tuple[tuple[str, str], ...], ...] = (
    *((),) * 9,
    (("KEYS", "k"), ("DELAY", "2")),
    (("INNER_MULTI_DISPATCH", "%LMQ%a"), ("WAIT", "false")),
    (("a\x01b", "c"),),
    (("a", "b\x02c"),),
    (("a", "b\x01c"), ("__CRC32#", "\x02")),
)
_MEMBER_PROPERTIES = (
    "",
    "KEYS\x01k\x02UNIQ_KEY\x01m",
    "a\x01b\x02",
    "DELAY\x013",
    "KEYS\x01k\x02__CRC32#\x011",
)
_BATCH_PROPERTIES = ("", "WAIT\x01true\x02CLUSTER\x01C", "WAIT\x01false", "UNIQ_KEY\x01batch\x02CLUSTER\x01C")


def settings_of_puts() -> st.SearchStrategy[Settings]:
    """Draw small stores of every role, most with light queues and few levels."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((4096, 16384, 1024, 65536)),
        record_bytes_max=st.sampled_from((1 << 20, 2000)),
        sync_flush=st.sampled_from((True, True, False)),
        trailer=st.sampled_from((True, False)),
        files_max=st.sampled_from((1000, 1000, 3)),
        role=st.sampled_from((*("ASYNC_MASTER", "SYNC_MASTER") * 9, "ASYNC_MASTER", "SLAVE")),
        multi_dispatch=st.sampled_from((True, True, False)),
        light_queues=st.sampled_from((True, True, False)),
        light_queues_max=st.sampled_from((20_000, 2, 1)),
        delay_levels=st.sampled_from((18, 2)),
    )


def special_puts() -> st.SearchStrategy[Put]:
    """Draw messages that the put changes or refuses, including half messages."""
    half = st.builds(
        Put,
        topic=st.just("RMQ_SYS_TRANS_HALF_TOPIC"),
        properties=one_of(_DELAYS),
        sys_flag=st.sampled_from((0, 0x04)),
    )
    return half | st.builds(
        Put,
        topic=one_of(_TOPICS),
        queue_id=st.sampled_from((0, 1)),
        body_bytes=st.sampled_from((0, 40, 300)),
        fill=st.integers(0, 5),
        body_kind=st.sampled_from(("random", "random", "none")),
        properties=one_of(_PROPERTIES),
        pairs=one_of(_PAIRS),
        sys_flag=st.sampled_from((0, 0, 0, 0x04, 0x08, 0x0C)),
        store_v6=st.booleans(),
        later=st.booleans(),
        born_now=st.sampled_from((False, False, False, True)),
        advance_ms=st.sampled_from((1, 0, 2000)),
    )


def _members() -> st.SearchStrategy[Member]:
    return st.builds(
        Member,
        body_bytes=st.sampled_from((0, 30, 200, 700)),
        fill=st.integers(0, 5),
        properties=one_of(_MEMBER_PROPERTIES),
        flag=st.sampled_from((0, 7, -1)),
    )


def batches() -> st.SearchStrategy[PutBatch]:
    """Draw batches that a store with room accepts."""
    return st.builds(
        PutBatch,
        topic=one_of(_TOPICS[:3]),
        queue_id=st.sampled_from((0, 1)),
        members=st.lists(_members(), min_size=1, max_size=5).map(tuple),
        properties=one_of(_BATCH_PROPERTIES),
        born_v6=st.booleans(),
        store_v6=st.booleans(),
        later=st.booleans(),
        born_now=st.sampled_from((False, False, False, True)),
        advance_ms=st.sampled_from((1, 0, 1000)),
    )


def any_puts() -> st.SearchStrategy[Put | PutBatch]:
    """Draw messages and batches that a store with room accepts, and a few that it refuses."""
    return puts() | special_puts() | batches()


def odd_batches() -> st.SearchStrategy[PutBatch]:
    """Draw batches that are malformed, too long, or request what no batch can have."""
    large = st.builds(
        Member,
        body_bytes=st.sampled_from((0, 16_000)),
        properties=one_of(("k\x01" + "v" * 20_000, "", "n\x01\0", _DISPATCH + "a")),
    )
    return st.builds(
        PutBatch,
        topic=one_of(("T", "", "a/b", "订" * 43)),
        queue_id=st.sampled_from((0, -1)),
        members=st.lists(large | _members(), min_size=0, max_size=3).map(tuple),
        properties=one_of((*_BATCH_PROPERTIES, "DELAY\x011", "DELAY\x01?", _DISPATCH + "a", "k\x01" + "w" * 13_000)),
        sys_flag=st.sampled_from((0, 0x08, 0x30)),
        defect=st.sampled_from(
            ("", "", "no body", "empty", "cut short", "wrong total", "negative length", "bytes left over")
        ),
    )


def wide_batches() -> st.SearchStrategy[PutBatch]:
    """Draw batches whose merged properties just fit, just do not, or are far too long."""

    def batch(merged_bytes: int, own_bytes: int, members: int) -> PutBatch:
        own, common = "m\x01" + "v" * (own_bytes - 2), "b\x01" + "w" * (merged_bytes - own_bytes - 3)
        return PutBatch(members=(Member(properties=own),) * members, properties=common)

    limits = (32_767, 32_766, 32_768, 32_746, 32_747, 40_000)
    return st.builds(batch, st.sampled_from(limits), st.sampled_from((20_000, 16_384, 3)), st.just(1))


def concurrent_puts() -> st.SearchStrategy[Concurrent]:
    """Draw two producers with one to three puts each, and a schedule with some switches."""
    put = st.builds(
        Put,
        topic=one_of(("T", "U")),
        body_bytes=st.sampled_from((0, 300, 900)),
        properties=one_of((*(_DISPATCH + "%LMQ%a",) * 3, "", "WAIT\x01false", _DISPATCH + "T,%LMQ%b", "DELAY\x011")),
        advance_ms=st.just(0),
    )
    producer = st.lists(put, min_size=1, max_size=3).map(tuple)
    turns = st.lists(st.sampled_from((0, 0, 0, 1)), max_size=60).map(tuple)
    late = st.integers(0, 90).map(lambda lines: (*(0,) * lines, 1))
    jump = st.sampled_from((0, 0, 15, 20, 25, 30, 40))
    any_time = st.builds(
        Concurrent, first=producer, second=producer, schedule=late | turns, jump_step=jump, jump_ms=st.just(2000)
    )
    return any_time | st.builds(
        _comes_late,
        producer,
        producer,
        st.integers(20, 110),
        st.sampled_from((0, 0, 0, 1)),
        st.sampled_from((1001, 2000, 1000, 999)),
    )


def _comes_late(first: tuple[Put, ...], second: tuple[Put, ...], lines: int, behind: int, jump_ms: int) -> Concurrent:
    """Start the second producer after `lines` lines of the first.

    The clock jumps then, or one line later.
    """
    schedule = (*(0,) * lines, 1)
    return Concurrent(first=first, second=second, schedule=schedule, jump_step=lines + behind, jump_ms=jump_ms)
