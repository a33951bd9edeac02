"""Test all queues of a store: found by name, made by their first unit, as in RocketMQ."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.golden import golden, read
from tests.support.impl.queues import log_of, run_of
from tests.support.impl.stores import FaultyFiles, snapshot
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.units import Unit

TOPICS = [
    "TopicTest", "x", "%RETRY%group 1", "%DLQ%g", "with space", "percent%2F%00", "订单", "🚀topicé", "-", "~", "a\nb",
    "consumequeue", "0", "...", ".hidden", "SCHEDULE_TOPIC_XXXX", "x" * 127, "%LMQ%" + "d" * 250,
]  # fmt: skip


def queues_of(
    root: Path, *, files: OsFiles | None = None, writable: bool = True, clean_exit: bool = False, ext: bool = False
) -> ConsumeQueues:
    """Load small queues."""
    queues = ConsumeQueues(
        files or OsFiles(), str(root), file_bytes=90, writable=writable, clean_exit=clean_exit,
        ext=ext, ext_file_bytes=100,
    )  # fmt: skip
    queues.load()
    return queues


def key_of(topic: str, queue_id: int = 0) -> tuple[bytes, int]:
    return topic.encode(), queue_id


def test_store_without_queues(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    assert (queues.all(), queues.findings, queues.find("TopicTest", 0)) == ((), (), None)
    queues.flush_all()
    queues.check()
    queues.close()
    assert list(tmp_path.iterdir()) == []


def test_looking_creates_nothing(tmp_path: Path) -> None:
    """In RocketMQ a read makes the queue (RMQ-B38)."""
    queues = queues_of(tmp_path)
    queues.of(key_of("TopicTest")).append(run_of(0))
    for topic, queue_id in (("TopicTest", 1), ("Other", 0), ("\ud800", 0), ("..", 0), ("", 0), ("TopicTest", -1)):
        assert queues.find(topic, queue_id) is None
    assert [queue.key for queue in queues.all()] == [key_of("TopicTest")]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("queue_id", [0, 7, 2**31 - 1, -1])
def test_topic_is_a_directory_of_the_same_bytes(tmp_path: Path, topic: str, queue_id: int) -> None:
    queues = queues_of(tmp_path)
    key = key_of(topic, queue_id)
    queues.of(key).append(run_of(0, 3, key=key))
    assert os.listdir(os.fsencode(tmp_path / "consumequeue")) == [key[0]]
    assert os.listdir(os.path.join(os.fsencode(tmp_path / "consumequeue"), key[0])) == [str(queue_id).encode()]
    queues.close()
    again = queues_of(tmp_path)
    queue = again.find(topic, queue_id)
    assert queue is not None
    assert (queue.topic, queue.queue_id, queue.key) == (topic, queue_id, key)
    assert list(queue.units(0, 10)) == [Unit(n * 100, 99, 7) for n in range(3)]


def test_topic_that_is_no_text_is_found_by_its_bytes(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    key = (b"\xff\xfetopic", 0)
    queues.of(key).append(run_of(0, key=key))
    queues.close()
    (queue,) = queues_of(tmp_path).all()
    assert queue.key == key
    assert queues_of(tmp_path).find(queue.topic, 0) is not None


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"../../escaped", b"/etc", b"a\0b", b"x" * 256])
def test_name_that_no_directory_can_have_is_passed_and_named_once(tmp_path: Path, name: bytes) -> None:
    """No put accepts such a message; a foreign log may have it."""
    store = tmp_path / "a" / "b" / "store"
    store.mkdir(parents=True)
    queues = queues_of(store)
    for number in range(2):
        queues.of((name, 0)).append(run_of(number, key=(name, 0)))
        queues.of((name, 0)).reconcile(run_of(number, key=(name, 0)))
    assert [finding.code for finding in queues.findings] == ["impossible_queue"]
    assert queues.all() == ()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert list(store.iterdir()) == []


def test_what_is_no_queue_is_noted_and_left_alone(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    queues.of(key_of("TopicTest")).append(run_of(0))
    queues.close()
    root = tmp_path / "consumequeue"
    for path in ("stray", "TopicTest/stray", "TopicTest/0/stray"):
        (root / path).write_text("")
    for path in ("TopicTest/q", "TopicTest/01", "TopicTest/-0", "TopicTest/1", "Empty"):
        (root / path).mkdir()
    before = snapshot(tmp_path)
    queues = queues_of(tmp_path)
    assert sorted(finding.file.removeprefix(f"{root}/") for finding in queues.findings) == sorted(
        ["stray", "TopicTest/stray", "TopicTest/0/stray", "TopicTest/q", "TopicTest/01", "TopicTest/-0"]
    )
    assert {(finding.severity, finding.code) for finding in queues.findings} == {("note", "stray_file")}
    assert [queue.key for queue in queues.all()] == [key_of("TopicTest")]
    assert snapshot(tmp_path) == before


def test_queue_of_which_nothing_is_left_is_no_queue(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    for topic in ("Kept", "Gone"):
        queues.of(key_of(topic)).append(run_of(0, key=key_of(topic)))
    queues.close()
    queues = queues_of(tmp_path)
    queues.of(key_of("Kept")).reconcile(run_of(0, key=key_of("Kept")))
    assert queues.end_reconcile(0)
    assert [queue.topic for queue in queues.all()] == ["Kept"]
    assert queues.find("Gone", 0) is None
    assert [(finding.code, "Gone" in finding.file) for finding in queues.findings] == [("queue_rebuilt", True)]
    assert not queues_of(tmp_path).findings


def test_files_in_front_of_a_gap_go_when_the_log_has_units_that_the_disk_refuses(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    queue = queues.of(key_of("TopicTest"))
    queue.append(run_of(0, 11, key=queue.key))
    directory = Path(queue.directory)
    queues.close()
    (directory / f"{100:020d}").unlink()
    queues = queues_of(tmp_path)
    queues.note_unstored([run_of(9, key=key_of("Another")), run_of(10, key=key_of("TopicTest"))])
    assert [path.name[-4:] for path in directory.iterdir()] == ["0200"]
    queues.end_reconcile(1000)
    assert queues.all() == ()  # not full of expired units: the service appends from number 10 on


def test_file_size_is_rounded_up_to_whole_units(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    queues.of(key_of("TopicTest")).append(run_of(0, 6))
    directory = tmp_path / "consumequeue/TopicTest/0"
    assert [path.stat().st_size for path in directory.iterdir()] == [100, 100]


def test_flush_reaches_every_queue_and_syncs_each_name_once(tmp_path: Path) -> None:
    files = FaultyFiles()
    queues = queues_of(tmp_path, files=files)
    for number in range(40):
        key = (b"TopicTest", number)
        queues.of(key).append(run_of(0, key=key))
    files.calls.clear()
    queues.flush_all()
    synced = [path.removeprefix(f"{tmp_path}") for verb, path in files.calls if verb == "sync_directory"]
    assert len(synced) == len(set(synced)) == 43
    assert sum(verb == "sync" for verb, _ in files.calls) == 40


def test_queues_come_while_others_look(tmp_path: Path) -> None:
    queues = queues_of(tmp_path)
    done = threading.Event()
    errors: list[BaseException] = []

    def look() -> None:
        try:
            while not done.is_set():
                for queue in queues.all():
                    assert queue is queues.find(queue.topic, queue.queue_id)
        except BaseException as error:
            errors.append(error)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    for number in range(400):
        queues.of((b"TopicTest", number))
    done.set()
    for looker in lookers:
        looker.join(30)
    assert errors == []
    assert len(queues.all()) == 400


def test_thousands_of_queues_need_one_descriptor_each_at_most(tmp_path: Path) -> None:
    """This is the key that Python's mapping reserves."""
    before = len(os.listdir("/proc/self/fd"))
    queues = queues_of(tmp_path)
    for number in range(300):
        key = (b"TopicTest", number)
        queues.of(key).append(run_of(0, key=key))
    queues.flush_all()
    assert len(os.listdir("/proc/self/fd")) - before <= 300
    queues.close()
    assert len(os.listdir("/proc/self/fd")) == before


# ---- stores that RocketMQ wrote --------------------------------------------------------------------------------------

WHOLE = (
    "01-plain-ascii", "02-topics-unicode-limits", "03-rollover-blanks-retention", "04-hosts-and-batches",
    "05-transactions-delays-light-queues", "06-index-files-collisions", "07-queue-ext-bitmaps", "08-halt-async",
)  # fmt: skip


def golden_queues(root: Path, folder: Path, *, clean_exit: bool = True) -> ConsumeQueues:
    """Load queues with the sizes of a golden store."""
    given = read(folder / "config.json")["store"]
    queues = ConsumeQueues(
        OsFiles(),
        str(root),
        file_bytes=given["mappedFileSizeConsumeQueue"],
        writable=True,
        clean_exit=clean_exit,
        ext=given.get("enableConsumeQueueExt", False),
        ext_file_bytes=given.get("mappedFileSizeConsumeQueueExt", 0),
        bit_maps=True,
    )
    queues.load()
    return queues


def queue_bytes(root: Path) -> dict[str, bytes]:
    """Return the bytes of all files of queues and extensions by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for name in ("consumequeue", "consumequeue_ext")
        for path in sorted((root / name).rglob("*"))
        if path.is_file()
    }


def golden_store(case: str) -> Path:
    """Return a folder of a case with its queues, or skip."""
    folder = golden(case)
    if not (folder / "store" / "consumequeue").is_dir():
        pytest.skip(f"the queues of golden store {case} are not at hand: set TORNPAGE_GOLDEN")
    return folder


def in_batches(runs: list[QueueRun]) -> list[QueueRun]:
    """Join consecutive runs of one queue, as a dispatcher does in a batch of 16 records."""
    joined: list[QueueRun] = []
    for start in range(0, len(runs), 16):
        batch: dict[tuple[bytes, int], QueueRun] = {}
        for run in runs[start : start + 16]:
            before = batch.get(run.key)
            if before is not None and before.queue_offset + len(before.units) // 20 == run.queue_offset:
                run = before._replace(
                    units=before.units + run.units, end_offset=run.end_offset, ext=(*before.ext, *run.ext)
                )
            elif before is not None:
                joined.append(before)
            batch[run.key] = run
        joined += batch.values()
    return joined


@pytest.mark.parametrize("shape", [list, in_batches], ids=["single", "batches"])
@pytest.mark.parametrize("case", WHOLE)
def test_files_are_those_of_rocketmq(
    tmp_path: Path, case: str, shape: Callable[[list[QueueRun]], list[QueueRun]]
) -> None:
    folder = golden_store(case)
    queues = golden_queues(tmp_path, folder)
    for run in shape(list(log_of(folder / "store"))):
        queues.of(run.key).append(run)
    queues.check()
    assert queues.findings == ()
    assert queue_bytes(tmp_path) == queue_bytes(folder / "store")


@pytest.mark.parametrize("case", WHOLE)
def test_queues_of_rocketmq_are_proved_and_stay(tmp_path: Path, case: str) -> None:
    """Case 03 has queues whose first messages have expired.

    The end of case 07 has three extension files.
    """
    folder = golden_store(case)
    for name in ("consumequeue", "consumequeue_ext"):
        if (folder / "store" / name).exists():
            shutil.copytree(folder / "store" / name, tmp_path / name)
    for path in tmp_path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (state,) = [step["state"] for step in read(folder / "expected.json")["steps"] if step["do"] == "dump"][:1]
    log_min = state["minPhyOffset"]
    queues = golden_queues(tmp_path, folder)
    for run in log_of(folder / "store"):
        if run.end_offset > log_min:
            queues.of(run.key).reconcile(run)
    assert not queues.end_reconcile(log_min)
    queues.check()
    assert queues.findings == ()
    assert queue_bytes(tmp_path) == queue_bytes(folder / "store")
    seen = {(row["topic"], row["queueId"]): row for row in state["queues"]}
    for queue in queues.all():
        row = seen[queue.topic, queue.queue_id]
        assert (queue.min_offset, queue.max_offset) == (row["minOffset"], row["maxOffset"]), queue.key
        assert queue.max_physic_offset == row["maxPhysicOffset"]
        expected = [(entry[1], entry[2], entry[3]) for entry in row["entries"]]
        assert list(queue.units(queue.min_offset, 1 << 20)) == expected


@pytest.mark.parametrize("verb", ["unlink", "sync_directory"])
def test_a_queue_that_is_removed_is_unknown_before_its_files_go(tmp_path: Path, verb: str) -> None:
    """A reader in between would find a half removed queue.

    Its numbers start again, whichever removal fails.
    """
    files = FaultyFiles()
    queues = queues_of(tmp_path, files=files)
    queue = queues.of(key_of("T"))
    queue.append(run_of(0, 3, key=key_of("T")))
    seen = []
    files.faults["unlink"] = lambda path: seen.append(queues.find("T", 0))
    queues.remove(queue)
    queue = queues.of(key_of("T"))
    queue.append(run_of(0, 3, key=key_of("T")))
    files.fail(verb)
    with pytest.raises(OSError, match="Input/output"):
        queues.remove(queue)
    assert queues.find("T", 0) is None
    assert seen
    assert set(seen) == {None}
