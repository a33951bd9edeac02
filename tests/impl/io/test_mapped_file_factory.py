"""Test a mapped file of the user: the store writes through it and survives its failures."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, SetClock, log_bytes, open_store, put
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts

BATCH = batch_of(b"one", b"two")
EITHER = pytest.mark.parametrize("message", [MESSAGE, BATCH], ids=["message", "batch"])
UNKNOWN = PutResult(PutStatus.UNKNOWN_ERROR)


def test_every_byte_goes_through_the_mapped_file_that_was_named(tmp_path: Path) -> None:
    written: list[int] = []
    blanks: list[int] = []

    class Counting(MappedFile):
        def append(self, record: bytearray) -> None:
            written.append(len(record))
            super().append(record)

        def append_blank(self) -> None:
            blanks.append(self.base_offset)
            super().append_blank()

    with open_store(tmp_path, parts=Parts({MappedFile: Counting})) as store:
        results = [put(store, each) for each in (MESSAGE, BATCH) * 6]
        assert written == [result.size_bytes for result in results]
        assert blanks == list(range(0, store.max_offset - 1024, 1024))
    with open_store(tmp_path) as store:
        assert store.findings == ()
        assert len(list(store.messages())) == 18


class Torn(MappedFile):
    """Writes `kept` bytes of a record or blank and then fails, unless `kept` is None."""

    kept: int | None = None
    of = "record"

    def append(self, record: bytearray) -> None:
        if Torn.kept is not None and Torn.of == "record":
            self._refuse(bytes(record))
        super().append(record)

    def append_blank(self) -> None:
        if Torn.kept is not None and Torn.of == "blank":
            self._refuse((self.size_bytes - self.written_position).to_bytes(4, "big") + b"\xcb\xd4\x31\x94")
        super().append_blank()

    def _refuse(self, data: bytes) -> None:
        data = data[: Torn.kept]
        self.view[self.written_position : self.written_position + len(data)] = data
        raise OSError(errno.EIO, "refused", self.path)


@EITHER
@pytest.mark.parametrize("kept", [0, 1, 50, 1000])
@pytest.mark.parametrize("held", [0, 1, 7, 8])
@pytest.mark.parametrize("then", ["put", "close"])
def test_refused_record_leaves_nothing_behind(
    message: Message | MessageBatch, kept: int, held: int, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes past the end looked like damage to the next open after a clean exit.

    It set the store read-only.
    """
    ours = open_store(tmp_path / "ours", clock=SetClock(), parts=Parts({MappedFile: Torn}))
    twin = open_store(tmp_path / "twin", clock=SetClock())
    with ours, twin:
        for _ in range(held):
            assert ours.put(MESSAGE) == twin.put(MESSAGE)
        monkeypatch.setattr(Torn, "kept", kept)
        for _ in range(2):
            assert put(ours, message) == UNKNOWN
            ours.check()
        monkeypatch.setattr(Torn, "kept", None)
        if then == "put":
            assert put(ours, message) == put(twin, message)
            assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")
    ours = open_store(tmp_path / "ours", clock=SetClock())
    twin = open_store(tmp_path / "twin", clock=SetClock())
    with ours, twin:
        assert (ours.findings, ours.read_only_reason) == ((), None)
        assert [stored.body for stored in ours.messages()] == [stored.body for stored in twin.messages()]
        assert put(ours, message) == put(twin, message)


@EITHER
@pytest.mark.parametrize("kept", [0, 4, 8])
@pytest.mark.parametrize("then", ["put", "small", "close"])
def test_refused_blank_leaves_no_file_behind_it(
    message: Message | MessageBatch, kept: int, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next record went into the new file without a blank before it.

    An open found damage there.
    """
    small = Message("T", b"")
    ours = open_store(tmp_path / "ours", file_bytes=256, clock=SetClock(), parts=Parts({MappedFile: Torn}))
    twin = open_store(tmp_path / "twin", file_bytes=256, clock=SetClock())
    with ours, twin:
        first = replace(MESSAGE, body=bytes(10))
        assert ours.put(first) == twin.put(first)
        monkeypatch.setattr(Torn, "kept", kept)
        monkeypatch.setattr(Torn, "of", "blank")
        for _ in range(2):
            assert put(ours, message) == UNKNOWN
            ours.check()
            assert ours.max_offset == twin.max_offset
        if then == "small":
            assert put(ours, small) == put(twin, small)
        monkeypatch.setattr(Torn, "kept", None)
        if then == "put":
            assert put(ours, message) == put(twin, message)
    assert log_bytes(tmp_path / "ours") == log_bytes(tmp_path / "twin")
    with open_store(tmp_path / "ours", file_bytes=256) as store:
        assert (store.findings, store.read_only_reason) == ((), None)
        assert put(store, message).status is PutStatus.PUT_OK


def test_factory_that_raises_is_a_file_that_cannot_be_made(tmp_path: Path) -> None:
    class Unmade(MappedFile):
        def __init__(self, *args: object, **kwargs: object) -> None:
            raise OSError(errno.ENOMEM, "no mapping")

    with open_store(tmp_path, parts=Parts({MappedFile: Unmade})) as store:
        assert store.put(MESSAGE) == PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        assert log_bytes(tmp_path) == {}
