"""Test the judge of crash images: right images pass, and each number can break.

Without the facts that it needs, a number is unknown.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.properties.handmade import record
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.recovery import Recovery, RecoveryPlan
from tornpage.model.operations import Flush, Operation, Put
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.judge.golden import GoldenImage, judged_golden
from tornpage.properties.judge.image import IMAGE_BYTES_MAX, read_image, read_truth, truth_of, write_image
from tornpage.properties.judge.judgement import Judgement, judge_image
from tornpage.properties.judge.rulings import NAMES, NEVER_JUDGED, Ruling
from tornpage.properties.judge.shape import SettingsOverride, delays_of, read_override
from tornpage.properties.planted import parts_of
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
STALE_TAIL, TORN, STALE_QUEUE, KILLED = (
    GOLDEN / name
    for name in ("09-crash-stale-log-tail", "10-crash-torn-properties", "11-crash-stale-queue-tail", "08-halt-async")
)
SETTINGS = Settings(file_bytes=4096)
OPERATIONS: tuple[Operation, ...] = (
    Put(body_bytes=900, properties="KEYS\x01a b\x02TAGS\x01T"), Put(body_bytes=1500, queue_id=1), Flush(),
    Put(body_bytes=1900, properties="KEYS\x01c"), Put(body_bytes=700), Put(body_bytes=800, queue_id=1),
)  # fmt: skip


def of(judgement: Judgement, number: int) -> Ruling:
    return next(ruling for ruling in judgement.rulings if ruling.contract == number)


def judged(directory: Path, **options: Any) -> Judgement:
    return judge_image(read_image(directory), **{"samples": 0, **options})


def files_of(directory: Path) -> Mapping[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def made(tracker: DirtyTracker, tmp_path: Path) -> Callable[..., Path]:
    """Make the image of a power loss with all or no un-synced writes."""

    def make(operations: tuple[Operation, ...] = OPERATIONS, settings: Settings = SETTINGS, *, all_kept: bool) -> Path:
        trial = lockstep_of(settings, tracker=tracker)
        for operation in operations:
            trial.run(operation)
        state = disk_state(trial.files.base, trial.files.journal, len(trial.files.journal), disk="posix-strict")
        choices = {fact.name: fact.alternatives - 1 for fact in in_flight_writes(state)} if all_kept else {}
        directory = tmp_path / f"image-{all_kept}"
        write_image(compose(state, choices), directory)
        return directory

    return make


def copied(folder: Path, directory: Path) -> Path:
    shutil.copytree(folder / "store", directory / "copy", copy_function=shutil.copyfile)
    return directory / "copy"


# ---- right images ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("all_kept", [True, False])
def test_an_image_of_our_own_holds_with_nothing_told(made: Callable[..., Path], all_kept: bool) -> None:
    directory = made(all_kept=all_kept)
    before = files_of(directory)
    judgement = judged(directory, samples=3)
    assert judgement.numbers("broken") == []
    assert set(judgement.numbers("unknown")) == {2, *NEVER_JUDGED}
    assert [ruling.contract for ruling in judgement.rulings] == list(NAMES)
    assert judgement.mode == "read-write"
    assert judgement.figures["records_kept"] == (5 if all_kept else 2)
    assert judgement.figures["crashed_recoveries"] >= 3
    assert files_of(directory) == before
    again = judged(directory, samples=3)
    assert (again.rulings, again.figures, again.store_findings) == (
        judgement.rulings,
        judgement.figures,
        judgement.store_findings,
    )


@pytest.mark.parametrize("folder", [STALE_TAIL, TORN, STALE_QUEUE], ids=lambda folder: folder.name)
def test_a_golden_image_holds_with_its_truth(folder: Path) -> None:
    before = files_of(folder)
    row = judged_golden(GoldenImage(folder), samples=4)
    assert (row.numbers, row.not_judged, row.mode) == ((), (), "read-write")
    assert 0 < row.kept == row.rocketmq_kept
    assert files_of(folder) == before


def test_recovery_is_crashed_at_every_one_of_its_operations() -> None:
    judgement = judged(STALE_QUEUE / "store", samples=None, losses=2)
    crashes = judgement.crashes
    assert len(crashes.tried) == crashes.operations > 15
    assert crashes.kinds["a kill"] == crashes.operations
    assert crashes.kinds["a power loss"] > 5
    assert of(judgement, 6).verdict == "holds"


def test_records_in_front_of_the_log_are_taken_as_they_are(tmp_path: Path) -> None:
    folder = GOLDEN / "03-rollover-blanks-retention"
    judgement = judged(folder / "store")
    assert judgement.numbers("broken") == []
    assert judgement.figures["log_begin"] == 32768
    assert {of(judgement, 4).verdict, of(judgement, 5).verdict} == {"holds"}


# ---- broken numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bug", "image", "number"),
    [
        ("no-crc", GoldenImage(STALE_TAIL), 1),
        ("RMQ-B13", GoldenImage(TORN), 1),
        ("no-erase-after-cut", GoldenImage(STALE_TAIL), 3),
        ("erase-not-synced", GoldenImage(TORN), 3),
        ("RMQ-B02", GoldenImage(STALE_QUEUE), 4),
        ("stale-units-behind", GoldenImage(STALE_QUEUE), 4),
        ("index-ahead-stays", GoldenImage(STALE_QUEUE), 5),
        ("newest-index-file-dropped", GoldenImage(STALE_QUEUE), 5),
        ("erase-not-synced", GoldenImage(STALE_TAIL), 6),
        ("RMQ-B08", GoldenImage(KILLED, "zero-length-next-log-file"), 7),
        ("RMQ-B09", GoldenImage(KILLED, "short-log-file"), 7),
        ("RMQ-B78", GoldenImage(KILLED, "short-log-file"), 14),
        ("RMQ-B44", GoldenImage(STALE_TAIL), 17),
    ],
)
def test_a_planted_bug_breaks_its_number(bug: str, image: GoldenImage, number: int) -> None:
    row = judged_golden(image, components=parts_of(bug), samples=0)
    assert number in row.numbers
    ruling = of(row.judgement, number)
    assert ruling.sentence
    assert row.judgement.verdict.value == "broken"


class _CutsOneMore(Recovery):
    """The last valid record goes too."""

    def plan(self, load_findings: Any) -> RecoveryPlan:
        plan = super().plan(load_findings)
        position, end = 0, 0
        while position < plan.scan.end_offset:
            size, _ = self._check(self._log.mapped[0].view, position, limit=self._log.file_bytes, offset=position)
            end, position = position, position + size
        return replace(plan, scan=replace(plan.scan, end_offset=end), dirty_tail=True)


class _ForgetsToFlush(Recovery):
    """Recovered records do not count as flushed."""

    def carry_out(self, plan: RecoveryPlan) -> None:
        super().carry_out(plan)
        self._log.flushed_where = 0


class _CutsDamage(Recovery):
    """Damage is treated as a tear."""

    def plan(self, load_findings: Any) -> RecoveryPlan:
        plan = super().plan(load_findings)
        return replace(plan, findings=(), dirty_tail=True)


class _HalfAFloor(DurableFloor):
    """The floor has its place and the wrong checksum."""

    def start(self, offset: int) -> None:
        super().start(offset)
        assert self._file is not None
        self._files.pwrite(self._file, b"\xff\xff", 24)
        self._files.sync(self._file)


class _LeavesTheEnd(Derived):
    """An open passes its dispatched records to the service again."""

    def reconcile(self, *arguments: Any, **options: Any) -> None:
        super().reconcile(*arguments, **options)
        self._move_to(0)


@pytest.mark.parametrize(
    ("components", "number", "sentence"),
    [
        (Parts({Recovery: _CutsOneMore}), 2, "records that had to survive are missing"),
        (Parts({Recovery: _ForgetsToFlush}), 9, "watermarks"),
        (Parts({DurableFloor: _HalfAFloor}), 13, "not whole"),
        (Parts({Derived: _LeavesTheEnd}), 16, "not dispatched"),
    ],
)
def test_a_store_that_errs_breaks_the_number(components: Parts, number: int, sentence: str) -> None:
    ruling = of(judged(STALE_QUEUE / "store", components=components), number)
    assert ruling.verdict == "broken"
    assert sentence in ruling.sentence


def test_damage_has_to_be_named_and_left_alone(made: Callable[..., Path]) -> None:
    directory = made(all_kept=True)
    first = directory / "commitlog" / f"{0:020d}"
    stored = bytearray(first.read_bytes())
    stored[200] ^= 1
    first.write_bytes(stored)
    judgement = judged(directory, samples=2)
    assert (judgement.mode, judgement.numbers("broken")) == ("read-only", [])
    assert of(judgement, 7).verdict == "holds"
    assert judgement.figures["records_kept"] == 4
    assert any(said["severity"] == "damage" for said in judgement.store_findings)
    ruling = of(judged(directory, components=Parts({Recovery: _CutsDamage})), 7)
    assert (ruling.verdict, ruling.file, ruling.offset) == ("broken", f"commitlog/{0:020d}", 0)
    assert "does not notice" in ruling.sentence


def test_a_store_that_does_not_open_is_judged_and_the_rest_unknown() -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    judgement = judged(STALE_QUEUE / "store", components=Parts({Recovery: refuse}))
    assert judgement.numbers("broken") == [7]
    assert len(judgement.numbers("unknown")) == len(NAMES) - 1
    assert "RuntimeError: no" in of(judgement, 7).sentence


# ---- the truth -------------------------------------------------------------------------------------------------------


@pytest.fixture
def truth() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((STALE_TAIL / "truth.json").read_text())
    return document


def test_a_record_that_nobody_put_breaks_number_1(truth: dict[str, Any]) -> None:
    truth["records"][1]["recordSha256"] = "0" * 64
    ruling = of(judged(STALE_TAIL / "store", truth=truth_of(truth)), 1)
    assert (ruling.verdict, ruling.offset) == ("broken", truth["records"][1]["commitLogOffset"])


def test_a_killed_process_loses_nothing_that_it_had_acknowledged(truth: dict[str, Any]) -> None:
    """The image was damaged afterwards and has lost more than a kill may lose.

    No recovery can repair that.
    """
    assert of(judged(STALE_TAIL / "store", truth=truth_of(truth)), 2).verdict == "holds"
    ruling = of(judged(STALE_TAIL / "store", truth=truth_of(truth, power_loss=False)), 2)
    assert ruling.verdict == "unknown"
    assert "from 18000 on" in ruling.sentence


def test_an_acknowledged_record_that_was_there_and_is_cut_breaks_number_2(truth: dict[str, Any]) -> None:
    told = truth_of(json.loads((STALE_QUEUE / "truth.json").read_text()))
    ruling = of(judged(STALE_QUEUE / "store", truth=told, components=Parts({Recovery: _CutsOneMore})), 2)
    assert (ruling.verdict, ruling.offset) == ("broken", 0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"records": [1]}', '{"records": [{"commitLogOffset": "x"}]}'])
def test_a_file_that_is_no_truth_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "truth").write_text(text)
    with pytest.raises(InspectError, match="is not a truth") as refused:
        read_truth(str(tmp_path / "truth"))
    assert "\n" not in str(refused.value)


# ---- facts that the bytes do not show ------------------------------------------------------------------------------


def test_due_times_of_other_levels_leave_number_4_open() -> None:
    folder = GOLDEN / "05-transactions-delays-light-queues"
    judgement = judged(folder / "store")
    assert of(judgement, 4).verdict == "unknown"
    assert [finding.code for finding in judgement.findings] == ["CQ_DELAYS_UNKNOWN"]
    settings = json.loads((folder / "config.json").read_text())["store"]
    text = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}
    told = judged(folder / "store", override=read_override(text, source="settings"))
    assert (of(told, 4).verdict, told.findings, told.numbers("broken")) == ("holds", (), [])


def test_an_index_file_whose_slots_cannot_be_told_leaves_number_5_open(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (index,) = (directory / "index").iterdir()
    stored = index.read_bytes()
    index.write_bytes(stored[:36] + (3).to_bytes(4) + b"\x01" * (len(stored) - 40))
    judgement = judged(directory)
    assert of(judgement, 5).verdict == "unknown"
    assert "IX_SLOTS_UNKNOWN" in [finding.code for finding in judgement.findings]
    slots = judged(directory, override=SettingsOverride().with_numbers(maxHashSlotNum=1000))
    assert of(slots, 5).verdict == "holds"


def test_a_log_in_several_directories_is_found(made: Callable[..., Path]) -> None:
    directory = made(settings=replace(SETTINGS, log_paths=2), all_kept=True)
    assert sorted(path.name for path in (directory / "morelog").iterdir()) == [f"{4096:020d}"]
    judgement = judged(directory, samples=2)
    assert (judgement.numbers("broken"), judgement.figures["records_kept"]) == ([], 5)


def test_directories_of_rocketmq_5_are_no_log(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (directory / "timerlog").mkdir()
    (directory / "timerlog" / f"{0:020d}").write_bytes(b"\x00\x00\x00\x34" * 1000)
    (directory / "timerwheel").write_bytes(bytes(4096))
    judgement = judged(directory)
    assert (judgement.numbers("broken"), judgement.figures["records_kept"]) == ([], 1)


def test_a_record_of_a_later_format_ends_the_log(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    log = directory / "commitlog" / f"{0:020d}"
    later = record(4096).replace(bytes.fromhex("daa320a7"), bytes.fromhex("daa320a8"))
    log.write_bytes(log.read_bytes()[:4096] + later.ljust(65536 - 4096, b"\0"))
    judgement = judged(directory)
    assert (judgement.numbers("broken"), judgement.figures["log_end"]) == ([], 4096)


def test_queues_of_another_store_are_made_anew(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    shutil.copytree(STALE_TAIL / "store" / "consumequeue", directory / "consumequeue", dirs_exist_ok=True)
    (directory / "consumequeue" / "StaleTopic" / "1" / f"{0:020d}").write_bytes(b"\x01" * 100)
    judgement = judged(directory)
    assert judgement.numbers("broken") == []
    assert "CQ_MIXED_SIZES" in [finding.code for finding in judgement.findings]


def test_log_files_of_several_sizes_are_damage(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (directory / "commitlog" / f"{65536:020d}").write_bytes(bytes(100))
    judgement = judged(directory)
    assert (judgement.mode, judgement.numbers("broken")) == ("read-only", [])
    assert of(judgement, 7).verdict == "holds"


def test_of_two_sizes_that_is_taken_at_which_files_begin(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    for path in (directory / "commitlog").iterdir():
        path.unlink()
    stored = (STALE_QUEUE / "store" / "commitlog" / f"{0:020d}").read_bytes()
    (directory / "commitlog" / f"{0:020d}").write_bytes(stored[:20000])
    (directory / "commitlog" / f"{65536:020d}").write_bytes(bytes(65536))
    judgement = judged(directory)
    assert (judgement.mode, judgement.numbers("broken")) == ("read-only", [])
    assert judgement.figures["records_kept"] == 1


def test_what_a_store_leaves_alone_is_no_part_of_the_judgement(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (index,) = (directory / "index").iterdir()
    (directory / "index" / f"{7:020d}").write_bytes(index.read_bytes())
    (directory / "consumequeue" / "StaleCq" / "1" / "notes.txt").write_text("mine")
    with (directory / "checkpoint").open("ab") as checkpoint:
        checkpoint.write(b"more")
    assert judged(directory, samples=2).numbers("broken") == []


@pytest.mark.parametrize("seed", range(12))
def test_no_bytes_make_the_judge_raise(seed: int, tmp_path: Path) -> None:
    """Files are overwritten, cut, lost and copied: each image gets one ruling."""
    draw = random.Random(seed)
    directory = copied(draw.choice([STALE_TAIL, TORN, STALE_QUEUE]), tmp_path)
    for path in draw.sample(sorted(path for path in directory.rglob("*") if path.is_file()), 3):
        stored = bytearray(path.read_bytes())
        at = draw.randrange(len(stored) + 1)
        match draw.choice(["garbage", "cut", "lose", "copy", "grow"]):
            case "garbage":
                stored[at : at + 200] = draw.randbytes(len(stored[at : at + 200]))
                path.write_bytes(stored)
            case "cut":
                path.write_bytes(stored[:at])
            case "lose":
                path.unlink()
            case "copy":
                (path.parent / f"{draw.randrange(1 << 20):020d}").write_bytes(stored)
            case "grow":
                path.write_bytes(stored + draw.randbytes(50))
    first, again = judged(directory, samples=1), judged(directory, samples=1)
    assert first.rulings == again.rulings
    assert [ruling.contract for ruling in first.rulings] == list(NAMES)
    assert first.numbers("broken") == []


def test_a_torn_file_of_others_is_left_alone_and_named(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (directory / "config").mkdir(exist_ok=True)
    (directory / "config" / "consumerOffset.json").write_text('{"offsetTable":{"a@b":{0:5,')
    ruling = of(judged(directory), 13)
    assert ruling.verdict == "unknown"
    assert "consumerOffset.json" in ruling.sentence
    (directory / "config" / "consumerOffset.json.bak").write_text('{"offsetTable":{"a@b":{0:5}}}')
    assert of(judged(directory), 13).verdict == "holds"


def test_progress_beyond_the_queues_has_to_be_brought_back(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (directory / "config").mkdir(exist_ok=True)
    (directory / "config" / "consumerOffset.json").write_text('{"offsetTable":{"nobody@g":{0:5}}}')
    assert of(judged(directory), 13).verdict == "holds"
    left = parts_of("correction-left-out")
    ruling = of(judged(directory, components=left), 13)
    assert (ruling.verdict, ruling.file) == ("broken", "config/consumerOffset.json")


# ---- directories that are no image ---------------------------------------------------------------------------------


def _file(directory: Path) -> Path:
    (directory / "file").write_bytes(b"x")
    return directory / "file"


def _empty(directory: Path) -> Path:
    (directory / "empty").mkdir()
    return directory / "empty"


def _foreign(directory: Path) -> Path:
    _file(_empty(directory))
    return directory / "empty"


def _huge(directory: Path) -> Path:
    (directory / "huge" / "commitlog").mkdir(parents=True)
    with (directory / "huge" / "commitlog" / f"{0:020d}").open("wb") as file:
        file.truncate(1 << 40)
    return directory / "huge"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda directory: directory / "nowhere", "no such directory"),
        (_file, "not a directory"),
        (_empty, "empty directory"),
        (_foreign, "not a store directory"),
        (_huge, f"{IMAGE_BYTES_MAX:,} bytes"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(make: Callable[[Path], Path], words: str, tmp_path: Path) -> None:
    with pytest.raises(InspectError) as refused:
        read_image(make(tmp_path))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_image_without_room_in_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="bytes of memory and 1,000 are left"):
        read_image(STALE_QUEUE / "store", memory_bytes=1000)


def test_odd_things_in_a_directory_are_named_and_not_read(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    os.mkfifo(directory / "commitlog" / "pipe")
    judgement = judged(directory)
    assert [finding.file for finding in judgement.findings] == ["commitlog/pipe"]
    assert judgement.numbers("broken") == []


def test_links_are_followed_once(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    (directory / "commitlog").rename(tmp_path / "elsewhere")
    (directory / "commitlog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "up").symlink_to(directory)
    judgement = judged(directory)
    assert [finding.file for finding in judgement.findings] == ["commitlog/up"]
    assert (judgement.numbers("broken"), judgement.figures["records_kept"]) == ([], 1)


def test_a_queue_whose_numbers_jump_is_not_judged(tmp_path: Path) -> None:
    directory = copied(STALE_QUEUE, tmp_path)
    log = directory / "commitlog" / f"{0:020d}"
    first = record(0, topic=b"T", queue_offset=0)
    second = record(len(first), topic=b"T", queue_offset=7)
    log.write_bytes((first + second).ljust(65536, b"\0"))
    judgement = judged(directory, samples=2)
    assert judgement.numbers("broken") == []
    assert "number 7" in of(judgement, 4).sentence
    assert {of(judgement, number).verdict for number in (4, 5, 17)} == {"unknown"}


@pytest.mark.parametrize(
    "fields",
    [
        {"queue_offset": 1 << 62},
        {"queue_offset": -1},
        {"topic": b"../T"},
        {"properties": b"INNER_MULTI_DISPATCH\x01a/b\x02INNER_MULTI_QUEUE_OFFSET\x010"},
        {"properties": b"INNER_MULTI_DISPATCH\x01a\x02INNER_MULTI_QUEUE_OFFSET\x01" + b"9" * 18},
    ],
    ids=str,
)
def test_a_queue_that_no_file_can_have_is_not_judged(fields: dict[str, Any], tmp_path: Path) -> None:
    """A foreign log may name one; the store reports it and goes on."""
    log = tmp_path / "commitlog" / f"{0:020d}"
    log.parent.mkdir()
    log.write_bytes(record(0, **fields).ljust(65536, b"\0"))
    judgement = judged(tmp_path, samples=2)
    assert judgement.numbers("broken") == []
    assert "no queue file can hold" in of(judgement, 4).sentence
    assert {of(judgement, number).verdict for number in (4, 5, 17)} == {"unknown"}


@pytest.mark.parametrize("queue_id", [-1, -(2**31), 2**31 - 1])
def test_a_queue_of_any_number_is_judged(queue_id: int, tmp_path: Path) -> None:
    """RocketMQ stores negative ones.

    Their files were left out, and no queue of such a store was judged.
    """
    log = tmp_path / "commitlog" / f"{0:020d}"
    log.parent.mkdir()
    first = record(0, topic=b"T", queue_id=queue_id, properties=b"KEYS\x01k")
    log.write_bytes((first + record(len(first), topic=b"T")).ljust(65536, b"\0"))
    judgement = judged(tmp_path, samples=2)
    assert of(judgement, 4).sentence.startswith("2 units in 2 queues")
    assert {of(judgement, number).verdict for number in (4, 5, 17)} == {"holds"}


@pytest.mark.parametrize("store_timestamp", [-1, -(2**63), 2**63 - 1])
def test_any_store_time_may_stand_in_a_record(store_timestamp: int, tmp_path: Path) -> None:
    log = tmp_path / "commitlog" / f"{0:020d}"
    log.parent.mkdir()
    log.write_bytes(record(0, store_timestamp=store_timestamp, properties=b"KEYS\x01a").ljust(65536, b"\0"))
    assert judged(tmp_path, samples=2).numbers("broken") == []


def test_levels_are_parsed_as_rocketmq_writes_them() -> None:
    assert delays_of("1s 5m 2h 1d", source="x") == (1000, 300_000, 7_200_000, 86_400_000)
    for wrong in ("", "1s  5s", "-1s", "1x", "s"):
        with pytest.raises(InspectError, match="give times such as"):
            delays_of(wrong, source="x")
