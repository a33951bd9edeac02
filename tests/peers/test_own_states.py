"""Test what a crash state of a peer's own writes lacks."""

from hashlib import sha256

import pytest

from tornpage.peers.own_histories import OwnState
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.image import AcknowledgedRecord, Truth

LOG = "/store/commitlog/00000000000000016384"


def record(offset: int, stored: bytes, *, flushed: bool) -> AcknowledgedRecord:
    return AcknowledgedRecord(offset, len(stored), sha256(stored).hexdigest(), flushed)


def state(files: dict[str, bytes], *directories: str) -> OwnState:
    records = [record(16384, b"first", flushed=True), record(16389, b"second", flushed=True),
               record(16395, b"third", flushed=False)]  # fmt: skip
    truth = Truth({each.offset: each for each in records}, power_loss=True, has_copies=False)
    return OwnState(Image(frozenset({"/", "/store", *directories}), files), truth)


@pytest.mark.parametrize(
    ("content", "lost"), [(b"firstsecondthird", 0), (b"firstsecond", 0), (b"firstsecon", 1), (b"\0" * 16, 2), (b"", 2)]
)
def test_flushed_records_that_the_image_lacks_are_counted(content: bytes, lost: int) -> None:
    assert state({LOG: content}, "/store/commitlog").lost() == lost


def test_file_without_a_name_loses_its_records() -> None:
    assert state({}, "/store/commitlog").lost() == 2


@pytest.mark.parametrize(
    ("files", "directories", "is_empty"),
    [
        ({}, (), True),
        ({"/store/config/topics.json": b"{}"}, ("/store/config",), True),
        ({}, ("/store/commitlog",), False),
        ({"/store/lock": b"lock"}, (), False),
    ],
)
def test_image_without_a_sign_of_a_store_is_empty(
    files: dict[str, bytes], directories: tuple[str, ...], is_empty: bool
) -> None:
    assert state(files, *directories).is_empty is is_empty
