"""Test that recovery of an image on a real disk equals recovery in memory."""

import random
from pathlib import Path

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.store import MessageStore
from tornpage.model.operations import AimFault, Choice, Clean, Crash, Flush, Operation, Put, Step
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.sampling import draw
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.judge.image import write_image
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings

SETTINGS = Settings(file_bytes=16384)
OPERATIONS: tuple[Operation, ...] = (
    *[Put(body_bytes=1900, fill=n) for n in range(6)], Flush(), *[Put(body_bytes=1400, fill=n) for n in range(9)],
)  # fmt: skip


def recovered(files: object, root: str) -> tuple[int, str | None, list[tuple[int, bytes]]]:
    config = MessageStoreConfig(mapped_file_size_commit_log=SETTINGS.file_bytes)
    store = MessageStore.open(root, config, files=files, clock=lambda: 0)  # type: ignore[arg-type]
    seen = store.max_offset, store.read_only_reason, [(message.offset, message.body) for message in store.messages()]
    store.close()
    return seen


def test_a_real_disk_and_the_recorded_one_recover_alike(tracker: DirtyTracker, tmp_path: Path) -> None:
    trial = lockstep_of(SETTINGS, tracker=tracker)
    for operation in OPERATIONS:
        trial.run(operation)
    rng = random.Random(4)
    ends = set()
    for number in range(40):
        position = rng.choice(trial.files.events)
        state = disk_state(trial.files.base, trial.files.journal, position, disk="posix-strict")
        image = compose(state, draw(in_flight_writes(state), rng))
        directory = tmp_path / str(number)
        write_image(image, directory)
        on_disk = recovered(OsFiles(), str(directory))
        assert on_disk == recovered(trial.pair.new_disk(image), "/store")
        ends.add(on_disk[0])
    assert len(ends) > 5


def test_an_image_is_not_written_over_something(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        write_image(Image(frozenset({"/", "/store"}), {"/store/abort": b""}), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_page_map_tells_every_page_of_the_image(tracker: DirtyTracker) -> None:
    log = "/store/commitlog/00000000000000000000"
    survived: dict[str, Choice] = {f"page {log} 0": 1, f"page {log} 1": (0, 1, 1)}
    case = Case(SETTINGS, (Put(body_bytes=1900), Put(body_bytes=9000), Crash(survived=survived)))
    witness = Witness()
    replay(case, tracker=tracker, witness=witness)
    evidence = witness.evidence()
    assert evidence is not None
    assert witness.power_loss is not None
    shown, image = evidence.page_map, witness.power_loss.image
    assert shown is not None
    assert shown.crash == 2
    fates = {page.number: page.fate for page in shown.pages if page.file == log}
    assert fates == {0: "older", 1: "torn", 2: "lost", 3: "durable"}
    assert image.files[log][8192:] == bytes(8192)
    assert image.files[log][:4096].strip(b"\0")
    assert any(log in sentence for sentence in shown.sentences)


THREE_FILES = (*[Put(body_bytes=700)] * 3, Flush(), Step(service="reput"))
EXPIRED = Clean(after_hours=73, manual=True)
NOT_SYNCED = AimFault("directory-sync-error", "path=commitlog")


@pytest.mark.parametrize(
    ("operations", "fate"),
    [
        ((*THREE_FILES, EXPIRED, Crash()), "gone"),
        ((*THREE_FILES, NOT_SYNCED, EXPIRED, Crash(others="kept")), "gone"),
        ((*THREE_FILES, NOT_SYNCED, EXPIRED, Crash(others="lost")), "durable"),
    ],
    ids=["removed", "removal kept", "removal lost"],
)
def test_pages_of_a_file_without_a_name_are_gone(
    tracker: DirtyTracker, operations: tuple[Operation, ...], fate: str
) -> None:
    log = "/store/commitlog/00000000000000000000"
    case = Case(Settings(file_bytes=1024), operations)
    witness = Witness()
    replay(case, tracker=tracker, witness=witness)
    evidence = witness.evidence()
    assert evidence is not None
    assert witness.power_loss is not None
    shown, image = evidence.page_map, witness.power_loss.image
    assert shown is not None
    assert {page.fate for page in shown.pages if page.file == log} == {fate}
    assert (log in image.files) == (fate != "gone")
    assert evidence.account is not None
    assert (log in {page.file for page in evidence.account.hexes}) == (fate != "gone")


def test_a_case_without_a_power_loss_has_neither(tracker: DirtyTracker) -> None:
    case = Case(SETTINGS, (Put(), Crash(kill=True)))
    witness = Witness()
    replay(case, tracker=tracker, witness=witness)
    evidence = witness.evidence()
    assert evidence is not None
    assert evidence.page_map is None
    assert witness.power_loss is None
