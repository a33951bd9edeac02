"""An index in which a release indexed one record twice is rebuilt for a reason.

Symptom: our killed store, opened and closed by a release, then opened with the finding `index_rebuilt`. The version
matrix called it broken.
Cause: the release keeps an index file that its checkpoint covers, deletes the next one, and indexes the last record of
the kept file again. If the two files divided the keys of that record, some have two entries.
Fix: the matrix reads the index before and after the open. It accepts the finding if the second entries of one record
are the only difference.
Found by: `tornpage peer matrix --versions 4.3.2,4.9.3,5.4.0`.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.impl.index.index_entries import put_entries
from tornpage.impl.index.index_layout import HEADER_BYTES, IndexHeader, IndexLayout
from tornpage.impl.log.loading import Finding
from tornpage.impl.message.message import Message
from tornpage.peers.matrix.answers import Answers, answers_of_ours
from tornpage.peers.matrix.held import Held, held_in
from tornpage.peers.matrix.known import OURS, Opening, Reading, known_finding
from tornpage.peers.matrix.workload import SETTINGS, config_of
from tornpage.peers.matrix.writing import open_ours, settle
from tornpage.properties.decode.index import index_hash

LAYOUT = IndexLayout(SETTINGS["maxHashSlotNum"], SETTINGS["maxIndexNum"])
RECORDS, KEYS = 203, 3
DIVIDED = (LAYOUT.entries_max - 1) // KEYS
"""The number of the record whose keys the two index files divide: two are in the first one."""
AGAIN = Reading(OURS, "killed", "4.9.3", is_stock=True, again=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """Return a store with two index files, and its answers."""
    directory = tmp_path_factory.mktemp("written") / "store"
    with open_ours(directory, config_of()) as store:
        for number in range(RECORDS):
            keys = " ".join(f"k{number}-{key}" for key in range(KEYS))
            assert store.put(Message("Topic", b"body", 0, f"KEYS\x01{keys}\x02TAGS\x01A")).stored
        settle(store)
        return directory, answers_of_ours(store)


Entry = tuple[int, int]
Change = Callable[[list[Entry]], list[Entry]]


def as_a_release_left_it(made: tuple[Path, Answers], to: Path, change: Change = lambda entries: entries) -> Path:
    """Copy a store and write its second index file as a release does after a kill.

    `change` may change the entries before.
    """
    shutil.copytree(made[0], to)
    runs = held_in(to).runs
    divided = runs[DIVIDED]
    assert len(divided.hashes) == KEYS
    assert len(set(divided.file_names)) == KEYS - 1
    entries = change([(code, run.offset) for run in runs[DIVIDED:] for code in run.hashes])
    kept, last = sorted((to / "index").iterdir())
    before = IndexHeader.decode(kept.read_bytes()[:HEADER_BYTES], entries_max=LAYOUT.entries_max)
    data = bytearray(LAYOUT.file_bytes)
    codes, offsets = [code for code, _ in entries], [offset for _, offset in entries]
    times = [before.end_timestamp] * len(entries)
    used, _, _ = put_entries(
        memoryview(data)[HEADER_BYTES : LAYOUT.entries_position], memoryview(data)[LAYOUT.entries_position :], 1,
        before.end_timestamp, codes, offsets, times, 0, len(entries), lambda mark: None,
    )  # fmt: skip
    header = IndexHeader(times[0], times[-1], offsets[0], offsets[-1], used, len(entries) + 1)
    data[:HEADER_BYTES] = header.encode()
    last.write_bytes(bytes(data))
    return to


def hashes_in(held: Held) -> list[tuple[int, tuple[int, ...]]]:
    return [(run.offset, run.hashes) for run in held.runs]


def opened_again(made: tuple[Path, Answers], left: Path) -> tuple[Finding, Opening]:
    """Open a store; return the finding about its index, and what the open found and left."""
    before = held_in(left)
    with open_ours(left, config_of()) as store:
        settle(store)
        [finding] = store.findings
    assert finding.code == "index_rebuilt"
    return finding, Opening(held_in(made[0]), before, held_in(left))


def test_a_record_with_second_entries_is_a_reason(written: tuple[Path, Answers], tmp_path: Path) -> None:
    left = as_a_release_left_it(written, tmp_path / "left")
    assert json.loads(CliRunner().invoke(cli, ["audit", str(left), "--json"]).stdout)["verdict"] == "holds"
    finding, opening = opened_again(written, left)
    assert known_finding(AGAIN, finding, opening, written[1]) == ("index-doubled",)
    assert hashes_in(opening.after) == hashes_in(opening.written)
    assert len(opening.before.runs[DIVIDED].hashes) == KEYS + KEYS - 1


def test_tags_of_a_later_release_are_another_reason(written: tuple[Path, Answers], tmp_path: Path) -> None:
    tag = index_hash("Topic", "T#A")

    def with_tags(entries: list[Entry]) -> list[Entry]:
        offsets = sorted({offset for _, offset in entries})
        return [each for offset in offsets for each in (*((c, o) for c, o in entries if o == offset), (tag, offset))]

    finding, opening = opened_again(written, as_a_release_left_it(written, tmp_path / "left", with_tags))
    later = replace(AGAIN, reader="5.4.0")
    assert known_finding(later, finding, opening, written[1]) == ("tags-indexed", "index-doubled")
    assert known_finding(AGAIN, finding, opening, written[1]) == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries[:-1],
        lambda entries: [*entries[:-1], (entries[-1][0], entries[-1][1] + 1)],
        lambda entries: [*entries[:-1], (entries[-1][0] + 1, entries[-1][1])],
        lambda entries: [*entries[:-KEYS], *entries[-KEYS:], *entries[-KEYS:]],
        lambda entries: [entries[1], *entries],
    ],
    ids=["missing", "other offset", "other key", "two records twice", "not its first keys"],
)
def test_any_other_difference_has_no_reason(written: tuple[Path, Answers], tmp_path: Path, change: Change) -> None:
    finding, opening = opened_again(written, as_a_release_left_it(written, tmp_path / "left", change))
    assert known_finding(AGAIN, finding, opening, written[1]) == ()


def test_the_reason_holds_in_its_place_only(written: tuple[Path, Answers], tmp_path: Path) -> None:
    finding, opening = opened_again(written, as_a_release_left_it(written, tmp_path / "left"))
    expected = written[1]
    kept = opening.before.runs[0].file_names[0]
    doubled = [*opening.written.runs[:DIVIDED], opening.before.runs[DIVIDED], *opening.written.runs[DIVIDED + 1 :]]
    for reading, found, seen in [
        (replace(AGAIN, ending="closed"), finding, opening),
        (replace(AGAIN, again=False, reader=OURS), finding, opening),
        (AGAIN, replace(finding, file=f"index/{kept}"), opening),
        (AGAIN, replace(finding, code="queue_rebuilt"), opening),
        (AGAIN, finding, replace(opening, written=Held(tuple(doubled)))),
        (AGAIN, finding, replace(opening, before=opening.after)),
        (AGAIN, finding, replace(opening, before=replace(opening.before, problems=("chain",)))),
        (AGAIN, finding, replace(opening, after=replace(opening.after, runs=opening.after.runs[:-1]))),
    ]:
        assert known_finding(reading, found, seen, expected) == ()
