"""Test that a mended copy audits clean, opens read-write and keeps all that can be kept."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pipeline.handmade import HandmadeStore, copied, overwrite, undamaged
from tests.support.pipeline.plants import PLANTS, plant
from tests.support.properties.handmade import golden_dirs, properties_of
from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.repairing import RepairDone, RepairRefused, carry_out, prepare_repair
from tornpage.pipeline.repairing.fillers import LOST_PROPERTY
from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import iter_items, look
from tornpage.properties.judge.shape import SettingsOverride

STORES = ("01-plain-ascii", "03-rollover-blanks-retention", "06-index-files-collisions")
LOG_FILE = "commitlog/00000000000000000000"


def mended(store: Path, target: Path) -> RepairDone:
    prepared = prepare_repair(store, target, SettingsOverride())
    return carry_out(prepared.plan, prepared.rows)


def records_of(store: Path) -> list[Record]:
    return [each.item for each in iter_items(look(store)) if isinstance(each.item, Record)]


def tree(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }


def opened(copy: Path, *, topic: str, queue_id: int = 0) -> tuple[bool, list[str]]:
    """Open a copy with the store of this project.

    Return whether the next message gets the next number, and the store's repairs.
    """
    view = look(copy)
    queue_file = next((copy / "consumequeue").rglob("0" * 18 + "*")).stat().st_size
    config = MessageStoreConfig(
        mapped_file_size_commit_log=view.file_bytes,
        mapped_file_size_consume_queue=queue_file,
        record_checksum="body",
        max_hash_slot_num=100,
        max_index_num=120,
    )
    with MessageStore.open(copy, config) as store:
        before = store.max_offset_in_queue(topic, queue_id)
        result = store.put(Message(topic, b"one more", queue_id=queue_id))
        return before > 0 and result.queue_offset == before, [finding.message for finding in store.findings]


@pytest.mark.parametrize("case", golden_dirs(), ids=lambda path: path.name)
def test_copy_of_a_store_of_java_audits_clean_and_has_its_queues(case: Path, tmp_path: Path) -> None:
    store = case / "store"
    done = mended(store, tmp_path / "copy")
    assert done.audit.verdict == "holds"
    assert [each for each in done.audit.findings if each.severity != "note"] == []
    kept = [each for each in records_of(tmp_path / "copy") if LOST_PROPERTY not in each.properties]
    assert kept == records_of(store)
    if case in undamaged():
        assert done.figures["filler_records"] == 0
    if case.name < "03" or "05" <= case.name < "07":
        queues = {name: data for name, data in tree(store).items() if name.startswith("consumequeue/")}
        assert queues == {
            name: data for name, data in tree(tmp_path / "copy").items() if name.startswith("consumequeue/")
        }


@settings(max_examples=6, deadline=None)
@given(kind=st.sampled_from(sorted(PLANTS)), name=st.sampled_from(STORES), data=st.data())
def test_everything_that_could_be_kept_is_kept(kind: str, name: str, data: st.DataObject) -> None:
    keeps_everything(kind, name, lambda below: data.draw(st.integers(0, below - 1)))


@pytest.mark.deep
@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(sorted(PLANTS)), name=st.sampled_from(STORES), seed=st.integers(0, 1 << 32))
def test_everything_that_could_be_kept_is_kept_many_times(kind: str, name: str, seed: int) -> None:
    keeps_everything(kind, name, random.Random(seed).randrange)


def keeps_everything(kind: str, name: str, pick) -> None:  # type: ignore[no-untyped-def]
    with tempfile.TemporaryDirectory() as directory:
        root = copied(name, Path(directory) / "store")
        before = records_of(root)
        plant(root, kind, pick)
        kept = records_of(root)
        as_it_was = tree(root)
        copy = Path(directory) / "copy"
        done = mended(root, copy)
        assert tree(root) == as_it_was
        assert [each for each in records_of(copy) if LOST_PROPERTY not in each.properties] == kept
        assert done.figures["filler_records"] == done.figures["lost_messages"] == len(before) - len(kept)
        assert done.audit.verdict == "holds"


def test_copy_opens_read_write_and_goes_on_where_the_queue_ended(tmp_path: Path) -> None:
    root = copied("03-rollover-blanks-retention", tmp_path / "store")
    overwrite(root / "commitlog/00000000000000098304", 300, b"damage")
    mended(root, tmp_path / "copy")
    assert opened(tmp_path / "copy", topic="RollTopic", queue_id=1) == (True, [])
    assert audit_store(tmp_path / "copy").verdict == "holds"


def test_queue_whose_records_are_all_expired_goes_on_with_its_numbers(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store", base=8192)
    store.put("T", 0, 0)
    for number in range(5):
        store.unit("Old", 0, number, 100 + number, 91)
    mended(store.write(), tmp_path / "copy")
    units = (tmp_path / "copy/consumequeue/Old/0" / ("0" * 20)).read_bytes()
    assert struct.unpack_from(">qiq", units, 80) == (104, 91, 0)
    assert opened(tmp_path / "copy", topic="Old") == (True, [])


def test_floor_of_the_copy_is_the_end_of_its_log(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=16384)) as store:
        offsets = [store.put(Message("T", b"x" * 100)).offset for _ in range(10)]
        store.flush()
    overwrite(tmp_path / "store" / LOG_FILE, offsets[6] + 95, b"\xff")
    assert audit_store(tmp_path / "store").verdict == "broken"
    mended(tmp_path / "store", tmp_path / "copy")
    assert look(tmp_path / "copy").floor == look(tmp_path / "store").floor
    with MessageStore.open(tmp_path / "copy", MessageStoreConfig(mapped_file_size_commit_log=16384)) as store:
        assert store.max_offset_in_queue("T", 0) == 10


# ---- refusals, and files left by them ---------------------------------------------------------------------------


def test_places_that_cannot_take_a_copy_are_refused(tmp_path: Path) -> None:
    root = copied("01-plain-ascii", tmp_path / "store")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)
    for target in (tmp_path / "there", tmp_path / "link", root / "copy", root, tmp_path, tmp_path / "no" / "copy"):
        with pytest.raises(RepairRefused) as caught:
            prepare_repair(root, target, SettingsOverride())
        assert "\n" not in str(caught.value)
    assert tree(tmp_path) == before


def test_live_store_is_refused(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=16384)) as store:
        store.put(Message("T", b"x"))
        with pytest.raises(RepairRefused, match="close the store first"):
            prepare_repair(tmp_path / "store", tmp_path / "copy", SettingsOverride())
    assert not (tmp_path / "copy").exists()


def test_store_that_changes_meanwhile_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    root = copied("01-plain-ascii", tmp_path / "store")
    prepared = prepare_repair(root, tmp_path / "copy", SettingsOverride())
    overwrite(root / LOG_FILE, 20_000, b"x")
    with pytest.raises(RepairRefused, match="changed"):
        carry_out(prepared.plan, prepared.rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


@pytest.mark.parametrize("step", range(4))
def test_repair_killed_in_the_middle_leaves_no_copy_and_the_next_one_begins_anew(tmp_path: Path, step: int) -> None:
    root = copied("01-plain-ascii", tmp_path / "store")

    prepared = prepare_repair(root, tmp_path / "copy", SettingsOverride())
    told: list[str] = []

    def tell(what: str) -> None:
        told.append(what)
        if len(told) == step + 1:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            carry_out(prepared.plan, prepared.rows, tell=tell)
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (tmp_path / "copy").exists()
    assert (tmp_path / "copy.unfinished").exists()
    assert mended(root, tmp_path / "copy").audit.verdict == "holds"
    assert not (tmp_path / "copy.unfinished").exists()


def test_interrupted_repair_leaves_nothing(tmp_path: Path) -> None:
    root = copied("01-plain-ascii", tmp_path / "store")
    prepared = prepare_repair(root, tmp_path / "copy", SettingsOverride())

    def tell(what: str) -> None:
        if what == "audit the copy":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(prepared.plan, prepared.rows, tell=tell)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_copy_that_would_not_audit_clean_never_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = copied("01-plain-ascii", tmp_path / "store")
    monkeypatch.setattr("tornpage.pipeline.repairing.carrying_out.write_queues", lambda *_, **__: (0, 0))
    with pytest.raises(RepairRefused, match="does not audit clean"):
        mended(root, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_record_with_a_number_that_its_queue_cannot_have_gets_its_own_again(tmp_path: Path) -> None:
    """Records of RocketMQ have no checksum of their header."""
    root = copied("01-plain-ascii", tmp_path / "store")
    right = records_of(root)
    overwrite(root / LOG_FILE, right[7].offset + 20, (1 << 50).to_bytes(8, "big"))
    assert mended(root, tmp_path / "copy").figures["corrected_records"] == 1
    assert records_of(tmp_path / "copy") == right


@pytest.mark.parametrize("name", ["../../../outside", "{}/outside", ".", "a/b"])
@pytest.mark.parametrize("is_further", [False, True], ids=["topic", "further queue"])
def test_no_name_in_a_log_leads_out_of_the_copy(tmp_path: Path, name: str, is_further: bool) -> None:
    """No put accepts these names, but a log may hold them.

    A copy once had files at `copy/consumequeue/../../…`.
    """
    name = name.format(tmp_path)
    properties = properties_of(("INNER_MULTI_DISPATCH", name), ("INNER_MULTI_QUEUE_OFFSET", "0"))
    store = HandmadeStore(tmp_path / "store")
    store.put("T", 0, 0, properties=properties if is_further else b"")
    if not is_further:
        store.put(name, 0, 0, dispatched=False)
    store.put("T", 0, 1)
    assert audit_store(store.write()).verdict == "holds"
    done = mended(tmp_path / "store", tmp_path / "copy")
    assert (done.audit.verdict, done.figures["made_queues"], done.figures["made_units"]) == ("holds", 1, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "store"]
    assert [path.name for path in (tmp_path / "copy/consumequeue").iterdir()] == ["T"]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"maxHashSlotNum": 100, "maxIndexNum": 1}, "no index file has 100 slots and 1 entry"),
        ({"maxHashSlotNum": 10**9, "maxIndexNum": 100}, "no index file has 1000000000 slots"),
        ({"mappedFileSizeConsumeQueue": 10**12}, "no queue file has 1000000000000 bytes"),
    ],
)
def test_settings_that_no_broker_takes_are_refused(tmp_path: Path, numbers: dict[str, int], said: str) -> None:
    """They ended in a traceback, or took all memory."""
    store = copied("01-plain-ascii", tmp_path / "store")
    shutil.rmtree(store / "consumequeue")
    for path in (store / "index").iterdir():
        path.unlink()
    with pytest.raises(RepairRefused, match=said) as caught:
        prepare_repair(store, tmp_path / "copy", SettingsOverride(numbers))
    assert str(caught.value).endswith("--broker-config")


def test_bit_maps_of_the_extension_are_named_queue_by_queue_and_left_out(tmp_path: Path) -> None:
    store = copied("07-queue-ext-bitmaps", tmp_path / "store")
    wanted: Counter[str] = Counter()
    for path in (store / "consumequeue").glob("*/*/*"):
        for offset, size, code in struct.iter_unpack(">qiq", path.read_bytes()):
            wanted[f"{path.parent.parent.name}/{path.parent.name}"] += offset >= 0 < size and code <= EXT_ADDRESS_MAX
    wanted = +wanted
    assert wanted
    plan = prepare_repair(store, tmp_path / "copy", SettingsOverride()).plan
    assert plan.document()["bitMapsLeftOut"] == plan.bit_maps == dict(wanted)
    [line] = [line for line in plan.lines() if "bit maps" in line]
    assert all(f"{queue} ({units})" in line for queue, units in wanted.items())
    mended(store, tmp_path / "copy")
    assert not (tmp_path / "copy/consumequeue_ext").exists()
    assert prepare_repair(tmp_path / "copy", tmp_path / "again", SettingsOverride()).plan.bit_maps == {}
