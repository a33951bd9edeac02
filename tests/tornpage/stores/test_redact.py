"""Test `--redact`: shared output has no content of a store.

Two stores that differ only in their content look alike.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.cli.main import cli
from tornpage.properties.decode.consumequeue import java_hash
from tornpage.properties.decode.findings import Code
from tornpage.properties.inspect import VIEWS, Query, inspect_view
from tornpage.render.finding_codes import finding_codes
from tornpage.render.redacting import _COLUMNS, Redacted

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
MARK = "SECRET"
HOSTILE = (
    "\x1b]0;x\x07",
    "<b>",
    "</script>",
    "\u202e",
    "@",
    " ",
    '"',
    "'",
    "%RETRY%",
    "é",
    "🛟",
    "\x9b",
    "-->",
    "{{",
    ":",
)
NOISE = st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # each example writes stores: shrinking takes minutes
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Contents:
    """The content of a store.

    Equal places of two of these are equally long.
    """

    topics: Sequence[str]
    groups: Sequence[str]
    keys: Sequence[str]
    tags: Sequence[str]
    bodies: Sequence[bytes]
    stray: str

    def write(self, directory: Path) -> Path:
        """Make a store with all of it, damaged here and there, without a trace of the time."""
        config = MessageStoreConfig(
            mapped_file_size_commit_log=16384,
            mapped_file_size_consume_queue=20_000,
            max_hash_slot_num=1,
            max_index_num=100,
        )
        with MessageStore.open(directory, config, clock=lambda: NOW_MS) as store:
            for number, body in enumerate(self.bodies):
                key, tag = self.keys[number % len(self.keys)], self.tags[number % len(self.tags)]
                topic = self.topics[number % len(self.topics)]
                properties = {"KEYS": key, "TAGS": tag, "UNIQ_KEY": f"{key}u", tag: key}
                put = store.put(Message(topic, body, properties=properties, born_timestamp=NOW_MS))
                assert put.status.name == "PUT_OK"
        self._files_of_others(directory)
        self._damage(directory)
        for path in directory.rglob("*"):
            os.utime(path, ns=(NOW_MS * 10**6, NOW_MS * 10**6))
        return directory

    def _files_of_others(self, directory: Path) -> None:
        (directory / "config" / "derivedFloor").unlink()  # its checksums have more or fewer digits
        offsets = {"offsetTable": {f"{topic}@{group}": {"0": 99} for topic in self.topics for group in self.groups}}
        (directory / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
        for folder in ("commitlog", "consumequeue", "index", "config"):
            (directory / folder / self.stray).write_bytes(self.bodies[0])

    def _damage(self, directory: Path) -> None:
        log = directory / "commitlog" / f"{0:020}"
        stored = bytearray(log.read_bytes())
        at = stored.index(self.bodies[-1])
        stored[at] ^= 0x20
        log.write_bytes(stored)
        queue = directory / "consumequeue" / self.topics[0] / "0" / f"{0:020}"
        units = bytearray(queue.read_bytes())
        units[20:40] = (self.bodies[0] * 20)[:20]  # a unit whose numbers are pieces of a message
        queue.write_bytes(units)


@contextmanager
def stores(*each: Contents) -> Iterator[list[Path]]:
    root = Path(tempfile.mkdtemp(prefix=f"{MARK}-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield [contents.write(root / str(number) / "store") for number, contents in enumerate(each)]
    finally:
        shutil.rmtree(root)


def outputs(store: Path, topic: str, *asked: tuple[str, list[str], list[str]]) -> Iterator[str]:
    """Yield the output of the commands about a store, as text and as JSON, and their pages."""
    lines = (
        ("inspect", ["--all"], []),
        ("inspect", [], ["queues"]),
        ("inspect", [], ["queue", f"{topic}/0"]),
        ("inspect", [], ["index"]),
        ("inspect", [], ["checkpoint"]),
        ("inspect", [], ["config"]),
        ("inspect", [], ["groups"]),
        ("audit", ["--engine", "plain"], []),
        ("judge", ["--crashes", "1", "--losses", "0"], []),
        *asked,
    )
    for command, options, names in lines:
        for form in ([], ["--json"]):
            done = CliRunner().invoke(cli, [command, *options, "--redact", *form, "--", str(store), *names])
            assert done.exit_code in (0, 1, 3), (command, options, names, done.output)
            yield without_times(done.stdout)
    for line in (["inspect", str(store)], ["audit", str(store), "--engine", "plain"]):
        page = store.parent / "page.html"
        assert CliRunner().invoke(cli, [*line, "--redact", "--html", str(page)]).exit_code in (0, 1, 3)
        yield unpacked(without_times(page.read_text(encoding="utf-8")))
    run = store.parent / "run"
    line = ["judge", str(store), "--crashes", "0", "--redact", "--out", str(run)]
    assert CliRunner().invoke(cli, line).exit_code in (0, 1, 3)
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "started": "2026-01-01T00:00:00+00:00"}))  # of no second
    yield from (path.read_text() for path in sorted((run / "tables").iterdir()))
    assert CliRunner().invoke(cli, ["report", str(run)]).exit_code == 0
    yield unpacked(without_times((run / "index.html").read_text(encoding="utf-8")))


def without_times(said: str) -> str:
    """Leave out durations and their numbers of digits."""
    return re.sub(r'in [0-9.]+ s\b|"seconds": [0-9.e-]+|[0-9,]+ bytes</span></li>', "", said)


def unpacked(page: str) -> str:
    """Return a page with its downloads as saved, and its text as read."""
    parts = [page, html.unescape(page)]
    for kind, data in re.findall(r'href="data:([^,"]*),([^"]*)"', page):
        raw = base64.b64decode(unquote(data)) if kind.endswith("base64") else unquote(data).encode()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        parts.append(json.dumps(json.loads(raw), ensure_ascii=False))
        parts.append(raw.decode())
    assert len(parts) > 2
    return without_times("\n".join(re.sub(r'href="data:[^"]*"', "", part) for part in parts))


def readings(text: str) -> set[str]:
    """Return the forms of a text in a dump.

    These are the text, hexadecimal, base 64, and the numbers of its bytes.
    """
    stored = text.encode()
    pieces = [stored[at : at + size] for size in (6, 8) for at in range(len(stored) - size + 1)]
    return {
        text.lower(), stored.hex(), base64.b64encode(stored).decode().lower(),
        *(str(int.from_bytes(piece, order)) for piece in pieces for order in ("big", "little")),
    }  # fmt: skip


@st.composite
def secrets(draw: st.DrawFn) -> Contents:
    """Draw contents that all hold the mark, among hostile text."""

    def text(name: str, *, without: str = "") -> str:
        around = st.tuples(NOISE, NOISE)
        before, behind = draw(around)
        said = f"{before}{MARK}{name}{behind}"
        return "".join(character for character in said if character not in without)

    return Contents(
        topics=[text("t", without="/"), text("s", without="/")],
        groups=[text("g")],
        keys=[text("k"), text("l")],
        tags=[text("a"), text("b")],
        bodies=[text(f"body{number}").encode() * 3 for number in range(5)],
        stray=text("f", without="/"),
    )


@pytest.mark.slow
@settings(max_examples=5, deadline=None, phases=UNSHRUNK)
@given(contents=secrets())
def test_nothing_that_a_store_holds_is_in_what_is_shared(contents: Contents) -> None:
    with stores(contents) as (store,):
        key = [f"--key={contents.keys[0]}", f"--topic={contents.topics[0]}"]
        count = 0
        for said in outputs(store, contents.topics[0], ("inspect", key, []), ("inspect", key, ["index"])):
            shown = said.lower()
            assert not [reading for reading in readings(MARK) if reading in shown], said
            assert not re.search(r"secr|ecret", shown), said
            count += 1
        assert count == 26


def test_the_search_finds_what_is_not_redacted() -> None:
    """Otherwise the test above proves nothing: each output has the mark without the option."""
    contents = Contents(["SECRETt"], ["SECRETg"], ["SECRETk"], ["SECRETa"], [b"SECRETbody"] * 3, "SECRETf")
    with stores(contents) as (store,):
        for view in ("log", "queues", "config", "groups"):
            said = CliRunner().invoke(cli, ["inspect", str(store), view]).stdout
            assert MARK in said, view
        page = store.parent / "page.html"
        CliRunner().invoke(cli, ["inspect", str(store), "--html", str(page)])
        assert MARK in unpacked(page.read_text())
        assert MARK in CliRunner().invoke(cli, ["judge", str(store), "--crashes", "0"]).stdout


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def of_length(length: int) -> st.SearchStrategy[str]:
    return st.text(LETTERS, min_size=length, max_size=length)


@st.composite
def twins(draw: st.DrawFn) -> tuple[Contents, Contents]:
    """Draw the contents of two stores that differ in words only.

    Lengths, equalities and order are the same.
    """
    lengths = draw(st.lists(st.integers(2, 30), min_size=4, max_size=4))

    def contents() -> Contents:
        def words(length: int) -> list[str]:
            found = sorted(draw(st.lists(of_length(length), min_size=2, max_size=2, unique=True)))
            assume(len({java_hash(word) for word in found}) == 2)
            return found

        topics, groups, keys, tags = map(words, lengths)
        assume(not {*topics} & {"TBW102"} and not {*tags} & {*keys} and 0 not in map(java_hash, tags))
        bodies = [draw(of_length(20)).encode() for _ in range(5)]
        assume(len(set(bodies)) == 5)
        return Contents(
            topics, groups, keys, tags, bodies, stray=f"~{draw(of_length(12))}"
        )  # after all others in a list

    return contents(), contents()


@pytest.mark.slow
@settings(max_examples=5, deadline=None, phases=UNSHRUNK)
@given(pair=twins())
def test_stores_that_differ_in_what_they_hold_alone_look_alike(pair: tuple[Contents, Contents]) -> None:
    with stores(*pair) as (one, other):
        shown = zip(outputs(one, pair[0].topics[0]), outputs(other, pair[1].topics[0]), strict=True)
        for of_one, of_other in shown:
            assert of_one == of_other


def test_equal_things_have_equal_names_and_their_lengths() -> None:
    names = Redacted()
    assert [names.topic(topic) for topic in ("Orders", "Ümlaut", "Orders")] == ["topic-1:6", "topic-2:7", "topic-1:6"]
    assert names.label("consumequeue/Orders/0/00000000000000000020") == "consumequeue/topic-1:6/0/00000000000000000020"
    assert (names.topic("%RETRY%shop"), names.group("shop")) == ("%RETRY%group-1:4", "group-1:4")
    assert names.topic("SCHEDULE_TOPIC_XXXX") == "SCHEDULE_TOPIC_XXXX"
    assert names.keys("a  b a") == "key-1:1 key-2:1 key-1:1"
    assert names.host(["10.1.2.3", 10911]) == ["host-1", 0]
    assert [names.tags_code(code) for code in (0, 77, -5, 77, NOW_MS, 2**62)] == [0, 1, 2, 1, NOW_MS, -1]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("commitlog/00000000000000016384", "commitlog/00000000000000016384"),
        ("commitlog/notes.txt", "commitlog/file-1:9"),
        ("commitlog/" + "\u0661" * 20, "commitlog/file-1:40"),
        ("index/20260101000000000", "index/20260101000000000"),
        ("index/old", "index/file-1:3"),
        ("config/consumerOffset.json.bak", "config/consumerOffset.json.bak"),
        ("config/passwords", "config/file-1:9"),
        ("consumequeue/T/x", "consumequeue/topic-1:1/file-1:1"),
        ("consumequeue/T/0/1/2", "consumequeue/topic-1:1/file-1:1/file-2:1/file-3:1"),
        ("consumequeue_ext/T/3", "consumequeue_ext/topic-1:1/3"),
        ("checkpoint", "checkpoint"),
        ("mine", "file-1:4"),
        ("mine/0", "file-1:4/file-2:1"),
    ],
)
def test_only_names_of_rocketmq_are_kept_in_paths(label: str, shown: str) -> None:
    assert Redacted().label(label) == shown


def test_every_column_of_every_view_is_known() -> None:
    """An unknown one is left out.

    A new column has to be added to the list, or left out on purpose.
    """
    columns: set[str] = set()
    for store in sorted(GOLDEN.glob("*/store")):
        queues = [f"{row['topic']}/{row['queueId']}" for row in view_rows(store, "queues")]
        indexes = [row["file"].partition("/")[2] for row in view_rows(store, "index")]
        extended = [f"{row['topic']}/{row['queueId']}" for row in view_rows(store, "queues") if row["extFiles"]]
        names: dict[str, list[Any]] = {"queue": queues, "ext": extended, "index": [None, *indexes]}
        for view in VIEWS:
            for name in names.get(view, [None]):
                columns |= {column for row in view_rows(store, view, name) for column in row}
    assert len(columns) > 60
    assert columns <= set(_COLUMNS)


def view_rows(store: Path, view: str, name: str | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = inspect_view(store, view, name, Query(limit=20))["rows"]
    return rows


def test_every_code_has_a_sentence_to_stand_for_its_message() -> None:
    assert set(get_args(Code)) <= set(finding_codes())


def test_a_code_with_a_remedy_for_each_severity_has_the_one_that_fits() -> None:
    def remedy(code: str, severity: str) -> str:
        finding = {"code": code, "severity": severity, "file": "abort", "message": "SECRET", "remedy": "SECRET"}
        said = Redacted().finding(finding)["remedy"]
        assert isinstance(said, str)
        return said

    assert remedy("CL_BAD_RECORD", "tear") == "none, recovery cuts"
    assert remedy("CL_BAD_RECORD", "damage").startswith("keep a copy, cut the log")
    assert remedy("CQ_GAP", "damage") == "rebuild the queue"
    assert remedy("CL_BYTES_BEYOND_END", "note") == "the store erases them"


def test_a_document_says_that_it_is_redacted() -> None:
    store = str(GOLDEN / "01-plain-ascii" / "store")
    for line in (["inspect", store], ["audit", store, "--engine", "plain"], ["judge", store, "--crashes", "0"]):
        assert json.loads(CliRunner().invoke(cli, [*line, "--redact", "--json"]).stdout)["redacted"] is True
        assert "redacted" not in json.loads(CliRunner().invoke(cli, [*line, "--json"]).stdout)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_what_is_followed_is_redacted_too(form: list[str]) -> None:
    store = str(GOLDEN / "01-plain-ascii" / "store")
    line = ["inspect", store, "--follow", "--offset", "0", "--limit", "3"]
    assert "TopicTest" in CliRunner().invoke(cli, [*line, *form]).stdout
    said = CliRunner().invoke(cli, [*line, "--redact", *form]).stdout
    assert said.count("topic-1:9") == 3
    assert "TopicTest" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspect", ".", "--hex"], "--hex prints bytes that --redact leaves out"),
        (["audit", ".", "--repair-to", "x"], "without --repair-to"),
        (["judge", ".", "--golden"], "golden stores are public"),
    ],
)
def test_what_cannot_be_redacted_is_refused(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, [*arguments, "--redact"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
