"""Test the compiled walk over a log file: its end and reason equal those of two others.

The others are the plain walk and the walk of the judges.
"""

from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.impl.message.test_codec import WRONG
from tests.support.impl.log_files import LogFile, damaged, log_file, log_files, messages
from tornpage.impl.log import scan
from tornpage.impl.message import codec
from tornpage.impl.message.codec import RecordCheck
from tornpage.impl.message.message import Message
from tornpage.properties.decode import scan as judges_scan


@cache
def compiled() -> Any:
    """Return the twin, compiled in this process by the first test that needs it."""
    return import_module("tornpage.impl.kernels.walk")


def walked(file: LogFile, position: int = 0) -> tuple[int, str | None]:
    """Return the end of a walk after checking that all walkers agree."""
    view = memoryview(file.data)
    where: dict[str, Any] = {"file_bytes": file.file_bytes, "base_offset": file.base_offset}
    expected = scan.walk_log(view, position, **where, check=codec.check_record)
    assert compiled().walk_log(view, position, **where, check=codec.check_record) == expected
    if position == 0:
        _, end, _ = judges_scan(file.data, **where)
        assert end == file.base_offset + expected[0]
    return expected


@given(file=log_files())
def test_all_walk_to_the_end_of_whole_files(file: LogFile) -> None:
    walked(file)


@given(file=damaged(), position=st.integers(0, 300))
@example(file=LogFile(b"", 0, 0), position=0)
def test_all_stop_at_the_same_damage(file: LogFile, position: int) -> None:
    walked(file)
    walked(file, min(position, len(file.data)))


@given(data=st.binary(max_size=200), file_bytes=st.integers(0, 300), base_offset=st.integers(0, 1 << 62))
def test_all_stop_at_any_bytes(data: bytes, file_bytes: int, base_offset: int) -> None:
    walked(LogFile(data, base_offset, file_bytes))


@pytest.mark.parametrize("what", WRONG)
def test_the_kernel_takes_nothing_that_is_wrong(what: str) -> None:
    make, reason = WRONG[what]
    data = bytes(make()) + bytes(8)
    assert walked(LogFile(data, 0, len(data))) == (0, reason)


@given(message=messages(), trailer=st.booleans())
def test_good_records_need_no_plain_check(message: Any, trailer: bool) -> None:
    file = log_file([(message, trailer)] * 3)
    check, sizes = codec.check_record, []

    def counted(*arguments: Any, **named: Any) -> RecordCheck:
        sizes.append(check(*arguments, **named)[0])
        return check(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "check_record", counted)
        compiled().walk_log(
            memoryview(file.data), 0, file_bytes=file.file_bytes, base_offset=file.base_offset, check=counted
        )
    assert sizes == [0]


def test_another_check_is_asked_about_each_record() -> None:
    def refuses(view: memoryview, position: int, *, limit: int, offset: int) -> RecordCheck:
        return 0, "refused"

    file = log_file([(Message("T", b""), True)])
    assert compiled().walk_log(
        memoryview(file.data), 0, file_bytes=file.file_bytes, base_offset=file.base_offset, check=refuses
    ) == (0, "refused")


def test_the_view_can_be_released_behind_a_walk() -> None:
    view = memoryview(bytearray(log_file([]).data))
    compiled().walk_log(view, 0, file_bytes=len(view), base_offset=0, check=codec.check_record)
    view.release()
