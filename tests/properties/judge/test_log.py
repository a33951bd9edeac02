"""Test that every judge refuses a recovered store with one mistake at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.model.operations import Close, Flush, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.idempotence import recovered_is_durable
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.ledgers import Ledger
from tornpage.properties.judge.log import covers_the_floor, is_a_prefix, nothing_behind_the_end, watermarks_in_order
from tornpage.properties.judge.rulings import require
from tornpage.properties.judge.small_files import checkpoint_is_not_ahead, physic_timestamp
from tornpage.properties.judge.start import opens_for_writing
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT

FIRST = f"{LOG_DIRECTORY}/{0:020d}"


@dataclass
class Harmed:
    """A right recovery, and the change of a test."""

    found: Recovered

    def store(self, **says: object) -> Recovered:
        """The store gives another answer about itself."""
        names = ("min_offset", "flushed_offset", "committed_offset", "max_offset", "read_only_reason")
        answers = {name: getattr(self.found.store, name) for name in names}
        fake: Any = SimpleNamespace(**{**answers, **says})
        return replace(self.found, store=fake)

    def live(self, change: Callable[[dict[str, bytes]], object]) -> Recovered:
        """The page cache has another content."""
        content = {path: self.found.files.peek(path, 0, 1 << 20) for path in self.found.files.paths()}
        change(content)
        fake: Any = SimpleNamespace(
            paths=lambda: sorted(content), peek=lambda path, at, size: content[path][at : at + size]
        )
        return replace(self.found, files=fake)

    def durable(self, change: Callable[[dict[str, bytes]], object]) -> Recovered:
        """The disk has another content."""
        content = dict(self.found.durable.files)
        change(content)
        return replace(self.found, durable=Image(self.found.durable.directories, content))


@pytest.fixture
def harmed(tracker: DirtyTracker) -> Harmed:
    trial = lockstep_of(Settings(file_bytes=4096), tracker=tracker)
    for operation in (Put(body_bytes=900), Put(body_bytes=900), Flush(), Put(body_bytes=3000), Put(), Close()):
        trial.run(operation)
    legal = trial.recovery.legal_between(trial.log, trial.log, kill=True)
    return Harmed(trial.recovery.judged(trial.files, legal, trial.recovery.versions_now()))


def test_a_right_recovery_passes_all(harmed: Harmed) -> None:
    for judge in JUDGES:
        require(judge(harmed.found))


def flip(path: str, at: int) -> Callable[[dict[str, bytes]], object]:
    def change(content: dict[str, bytes]) -> None:
        data = bytearray(content[path])
        data[at] ^= 1
        content[path] = bytes(data)

    return change


def test_read_only_is_no_recovery(harmed: Harmed) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 7"):
        require(opens_for_writing(harmed.store(read_only_reason="a reason")))


@pytest.mark.parametrize("at", [0, 50, 1019, 1021, 4095])
def test_a_changed_byte_is_no_prefix(harmed: Harmed, at: int) -> None:
    with pytest.raises(GuaranteeBroken, match=rf"contract 1.*offset {at}"):
        require(is_a_prefix(harmed.live(flip(FIRST, at))))


def test_a_missing_or_a_spare_file_is_no_prefix(harmed: Harmed) -> None:
    spare = f"{LOG_DIRECTORY}/{8192:020d}"
    with pytest.raises(GuaranteeBroken, match="contract 1"):
        require(is_a_prefix(harmed.live(lambda content: content.pop(FIRST))))
    with pytest.raises(GuaranteeBroken, match="contract 1"):
        require(is_a_prefix(harmed.live(lambda content: content.update({spare: bytes(4096)}))))


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0"], ids=["short", "long"])
def test_a_file_of_another_size_is_no_prefix(harmed: Harmed, change: Callable[[bytes], bytes]) -> None:
    second = f"{LOG_DIRECTORY}/{4096:020d}"
    with pytest.raises(GuaranteeBroken, match=r"contract 1: .* has the wrong size"):
        require(is_a_prefix(harmed.live(lambda content: content.update({second: change(content[second])}))))


def test_a_lost_record_is_below_the_floor(harmed: Harmed) -> None:
    ends = harmed.found.ledger.ends
    with pytest.raises(GuaranteeBroken, match="contract 2"):
        require(covers_the_floor(harmed.store(max_offset=ends[-2])))
    with pytest.raises(GuaranteeBroken, match="contract 2"):
        require(covers_the_floor(harmed.store(max_offset=ends[-1] + 1)))


@pytest.mark.parametrize("where", ["live", "durable"])
def test_a_byte_behind_the_end_can_come_back(harmed: Harmed, where: str) -> None:
    second = f"{LOG_DIRECTORY}/{4096:020d}"
    with pytest.raises(GuaranteeBroken, match=r"contract 3.*offset 8191"):
        require(nothing_behind_the_end(getattr(harmed, where)(flip(second, 4095))))


def test_a_removed_file_that_is_still_on_disk_can_come_back(harmed: Harmed) -> None:
    spare = f"{LOG_DIRECTORY}/{8192:020d}"
    with pytest.raises(GuaranteeBroken, match=r"contract 3.*offset 8192"):
        require(nothing_behind_the_end(harmed.durable(lambda content: content.update({spare: b"\1" + bytes(4095)}))))


def test_what_is_presented_must_be_on_disk(harmed: Harmed) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 6"):
        require(recovered_is_durable(harmed.durable(flip(FIRST, 7))))
    with pytest.raises(GuaranteeBroken, match="contract 6"):
        require(recovered_is_durable(harmed.durable(lambda content: content.pop(FIRST))))


@pytest.mark.parametrize(("later_ms", "ahead"), [(0, False), (1, True), (-1, False)])
def test_a_checkpoint_that_is_newer_than_the_log_is_noticed(harmed: Harmed, later_ms: int, ahead: bool) -> None:
    newest = max(record.store_timestamp for record in harmed.found.legal[harmed.found.key].records)

    def change(content: dict[str, bytes]) -> None:
        path = f"{ROOT}/checkpoint"
        assert physic_timestamp(harmed.found.durable) == newest
        content[path] = (newest + later_ms).to_bytes(8, "big") + content[path][8:]

    found = harmed.durable(change)
    if ahead:
        with pytest.raises(GuaranteeBroken, match="contract 9: the checkpoint is newer"):
            require(checkpoint_is_not_ahead(found))
    else:
        require(checkpoint_is_not_ahead(found))


def test_a_checkpoint_that_was_ahead_when_the_crash_came_is_noticed_though_recovery_set_it_back(harmed: Harmed) -> None:
    path, before = f"{ROOT}/checkpoint", harmed.found.files.base
    newest = max(record.store_timestamp for record in harmed.found.legal[harmed.found.key].records)
    later = {path: (newest + 1).to_bytes(8, "big").ljust(4096, b"\0")}
    files: Any = SimpleNamespace(base=Image(before.directories, {**before.files, **later}))
    found = replace(harmed.found, files=files)
    with pytest.raises(GuaranteeBroken, match="contract 9: the checkpoint is newer"):
        require(checkpoint_is_not_ahead(found))
    require(checkpoint_is_not_ahead(replace(found, was_corrupted=True)))


@pytest.mark.parametrize("says", [{"flushed_offset": 0}, {"min_offset": 1 << 40}, {"committed_offset": 5}])
def test_watermarks_out_of_order_are_noticed(harmed: Harmed, says: dict[str, int]) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 9"):
        require(watermarks_in_order(harmed.store(**says)))


def test_the_ledger_refuses_what_is_no_record_of_the_model(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(file_bytes=4096), tracker=tracker)
    trial.run(Put(body_bytes=40, properties="KEYS\x01k"))
    record = trial.log.records[0]

    def peek(name: str, position: int, size_bytes: int) -> bytes:
        return trial.files.peek(f"{LOG_DIRECTORY}/{name}", position, size_bytes)

    Ledger(file_bytes=4096).note(record, end_before=0, peek=peek)
    fields: dict[str, Any] = {
        "topic": "U", "queue_id": 3, "flag": 9, "properties": "KEYS\x01x", "body": b"y" * 40, "born_timestamp": 1,
        "born_host": ("192.0.2.8", 50_000), "store_host": ("192.0.2.9", 1), "sys_flag": 0x08, "reconsume_times": 2,
        "prepared_transaction_offset": 4,
    }  # fmt: skip
    for field, other in fields.items():
        wrong = replace(record, message=replace(record.message, **{field: other}))
        with pytest.raises(GuaranteeBroken, match="contract 1"):
            Ledger(file_bytes=4096).note(wrong, end_before=0, peek=peek)
    for wrong in (replace(record, queue_offset=5), replace(record, store_timestamp=5)):
        with pytest.raises(GuaranteeBroken, match="contract 1"):
            Ledger(file_bytes=4096).note(wrong, end_before=0, peek=peek)
    with pytest.raises(GuaranteeBroken, match="no valid record"):
        Ledger(file_bytes=4096).note(record, end_before=0, peek=lambda name, at, size: bytes(size))
