"""Test tokens and case files: they read back equal, and wrong ones are refused."""

import json
from typing import get_args

import pytest

from tornpage.model.operations import (
    AimFault,
    Call,
    CancelPull,
    ChangeRole,
    ChangeTable,
    Clean,
    ClockStep,
    Close,
    CommitOffset,
    Concurrent,
    Crash,
    Damage,
    DelayOffsetsAre,
    DeleteTopics,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Get,
    GetMessage,
    HarmDerived,
    HarmField,
    HarmNumbers,
    HarmOpen,
    HarmProgress,
    HoldBuffer,
    Member,
    OffsetByTime,
    Open,
    OpenTwice,
    Operation,
    PullHeld,
    PullWhileDispatching,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    RefuseFile,
    ReleaseBuffer,
    ReplicaIs,
    Step,
    SwitchFlag,
    TryFunctions,
    TrySettings,
    WrongClaim,
)
from tornpage.properties.program.case import BadToken, Case, Settings, describe

CASE = Case(
    Settings(file_bytes=4096, sync_flush=True, disk="journal", bug="no-crc"),
    (
        Put(topic="订单", body_bytes=7, properties="KEYS\x01k", born_v6=True),
        Flush(),
        Get(record=1, shift=-1),
        FailSync(),
        Crash(back=3, survived={"page /store/commitlog/00000000000000000000 0": (1, 2, 128), "create /store/abort": 1}),
        Crash(kill=True),
        Close(),
        Open(),
        OpenTwice(),
        Damage(kind="truncate", amount=77),
    ),
)
PUTS = Case(
    Settings(
        role="SYNC_MASTER",
        multi_dispatch=True,
        light_queues=True,
        light_queues_max=2,
        delay_levels=3,
        pool_buffers=2,
        fast_fail=True,
        files_ahead=1,
        least_pages=0,
        log_paths=2,
    ),
    (
        Put(pairs=(("KEYS", "k"), ("a\x01b", "\x02")), later=True, body_kind="none"),
        PutBatch(
            members=(Member(body_bytes=3, fill=1, properties="订\x01b", flag=-1), Member()), properties="WAIT\x01true"
        ),
        PutBatch(topic="U", queue_id=1, sys_flag=8, born_v6=True, store_v6=True, defect="cut short", later=True),
        Step(),
        Concurrent(
            first=(Put(body_bytes=9), Put(pairs=(("WAIT", "false"),))),
            second=(Put(topic="U", advance_ms=0),),
            schedule=(0, 0, 1),
            jump_step=7,
            jump_ms=2000,
        ),
        SwitchFlag(bit=4, on=False),
        DiskUsed(percent=91),
        ReplicaIs(state="behind"),
        FailAppend(),
        Step(service="commit", after_ms=200),
        FailWrite(),
        GetMessage(queue=-1, shift=3, max_msg_nums=2, tags="TagA||TagB"),
        QueryKey(key=2, max_num=1, begin_ms=5, window_ms=7),
        OffsetByTime(queue=1, record=4, shift_ms=-1),
        RefuseFile(),
        AimFault("sync-lost", "kind=log and not nth=2", seed=3),
        HarmDerived(file="index", harm="torn", number=3, amount=99),
        HoldBuffer(record=3),
        Clean(after_hours=72, manual=True, percent=88),
        ReleaseBuffer(),
        DeleteTopics(in_use=("T", "订单")),
        CommitOffset(group="订", queue=-1, behind=-3),
        ChangeTable("groups", "订", 7),
        TrySettings(part=3),
        TryFunctions(fill=7),
        QueryOffsets(group="h", queue=2),
        HarmField("queue_id", record=1, value=3),
        HarmNumbers((WrongClaim(2, "other", -1), WrongClaim(change="again")), "shifted", amount=4),
        HarmOpen("other", record=2, byte=5),
        HarmProgress(harm="both"),
        Call("batch", parts=(Call("put", "a", size_bytes=8), Call("delete", "b"))),
        ClockStep(by_ms=-3_600_000),
        DelayOffsetsAre(kind="garbage", by=-2),
        ChangeRole(role="SLAVE"),
        PullHeld(topic="订@0", queue_id=1, shift=-1, max_msg_nums=2, tags="TagA||TagB", hold_ms=0),
        CancelPull(number=3),
        PullWhileDispatching(topic="U", queue_id=1, tags="TagA", schedule=(0, 0, 1)),
    ),
)
WRITTEN_BEFORE_BATCHES = (
    "tp1-619c0123-eNptUbtuwzAM_JWAs4AoDweN9k4dOxVNYNCy7KqWJYOSDBiG_710khYZqo3HI3l3miEMhjDZ4COozxmqUE9lNSXD5VlKcQc662tQ"
    "QEYHqkFAY50DdRA8zfCQE2MDrauSXSfh7fXj_ZKllLuOW3GKZeOwBXUUkMJgNVMu-aXC_SUXh6KARcz3XQ1aV8bJ6yfI5fh1KyvUHaj946wmZJy3ZxrtaFjg"
    "zJjBZDbbmAKZLVaBEqgdi8P2D9Wh721yod3Kf95Gcg5S7MT-uqw3sR7Ra1P2bOsWB_lyPIFKlM2T_xu1D9nzvULAIzAmec2C4MGssWchsFxZtUnJ-jauqmsb"
    "2Rd8h0we3T1f8_sLR3k-cWrEwRgC1aCLZlljJL-6KjVGwx6XH0gZk9o"
)
"""A token of format 1 from before batches, replicas and light queues."""


def test_a_token_gives_the_case_back() -> None:
    token = CASE.token()
    assert token.isascii()
    assert token.isprintable()
    assert " " not in token
    assert Case.from_token(token) == CASE
    assert Case.from_token(f" {token}\n") == CASE
    assert Case.from_token(PUTS.token()) == PUTS


@pytest.mark.parametrize("operation", [*CASE.operations, *PUTS.operations], ids=lambda operation: operation.op)
def test_an_operation_survives_token_and_file(operation: Operation) -> None:
    case = Case(Settings(), (operation,))
    assert Case.from_token(case.token()) == case
    assert Case.from_text(json.dumps(case.document())) == case


def test_every_kind_of_operation_is_in_these_tests() -> None:
    assert {type(operation) for operation in (*CASE.operations, *PUTS.operations)} == set(get_args(Operation))


def test_a_token_from_before_batches_is_still_readable() -> None:
    old = Case.from_token(WRITTEN_BEFORE_BATCHES)
    assert old.settings == Settings(file_bytes=4096, trailer=False, disk="journal")
    assert old.operations == (
        Put(topic="订单", body_bytes=900, fill=3, body_kind="record", properties="KEYS\x01k", sys_flag=0x04),
        FailSync(),
        Flush(),
        Crash(back=2, survived={"page /store/commitlog/00000000000000000000 0": (0, 1, 2), "create /store/abort": 1}),
        Put(born_v6=True, advance_ms=0),
        Damage(kind="truncate", amount=5),
    )
    assert Case.from_token(old.token()) == old


def test_messages_inside_an_operation_say_only_what_differs_from_the_defaults() -> None:
    batch, concurrent = PUTS.document()["operations"][1], PUTS.document()["operations"][4]
    assert batch["members"] == [{"body_bytes": 3, "fill": 1, "properties": "订\x01b", "flag": -1}, {}]
    assert concurrent["second"] == [{"topic": "U", "advance_ms": 0}]


def test_a_case_file_gives_the_case_back_and_says_only_what_differs_from_the_defaults() -> None:
    document = CASE.document()
    assert Case.from_text(json.dumps(document)) == CASE
    assert document["operations"][1] == {"op": "flush"}
    assert "files_max" not in document["settings"]


def test_equal_cases_have_equal_tokens() -> None:
    assert Case(Settings(), (Put(), Flush())).token() == Case(Settings(), (Put(), Flush())).token()


@pytest.mark.parametrize("position", [0, 6, 14, 30, -1])
def test_a_changed_token_is_refused(position: int) -> None:
    token = CASE.token()
    other = "B" if token[position] != "B" else "C"
    changed = token[:position] + other + (token[position + 1 :] if position != -1 else "")
    with pytest.raises(BadToken):
        Case.from_token(changed)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_an_incomplete_token_is_refused(cut: int) -> None:
    with pytest.raises(BadToken, match=r"incomplete|changed"):
        Case.from_token(CASE.token()[:-cut])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "tornpage_case"),
        ('{"tornpage_case": 2}', "format 2, and this tornpage reads format 1"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "crash", "others": "x"}]}', "lost or kept"),
        ('{"tornpage_case": 1}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {"colour": 1}, "operations": []}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "dance"}]}', "there is no operation 'dance'"),
        ('{"tornpage_case": 1, "settings": {"disk": "tape"}, "operations": []}', "unknown disk"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "put", "pairs": [["a"]]}]}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "put_batch", "members": [7]}]}', "cannot be read"),
        ('{"tornpage_case": 1, "settings": {}, "operations": [{"op": "concurrent", "first": [[]]}]}', "cannot be read"),
    ],
)
def test_a_wrong_case_file_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(BadToken, match=said):
        Case.from_text(text)


def test_an_operation_reads_as_a_line_of_a_program() -> None:
    assert describe(Put()) == "put()"
    assert describe(Crash(kill=True, back=2)) == "crash(kill=True, back=2)"
    assert describe(SwitchFlag(bit=4)) == "switch_flag(bit=4)"
    assert describe(PutBatch(members=(Member(fill=2),))) == "put_batch(members=[{'fill': 2}])"


@pytest.mark.parametrize(
    "operation",
    [
        Put(properties="k\x01" + "v" * 32_000),
        PutBatch(members=(Member(properties="k\x01" + "v" * 20_000),) * 3),
        Concurrent(first=(Put(),), schedule=(0, 1) * 2_000),
    ],
    ids=["put", "put_batch", "concurrent"],
)
def test_a_long_value_is_cut_when_described_and_whole_in_the_token(operation: Operation) -> None:
    line = describe(operation)
    assert len(line) < 500
    assert "characters)" in line
    assert Case.from_token(Case(Settings(), (operation,)).token()).operations == (operation,)
