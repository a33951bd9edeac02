"""Test `inspect --html` and `audit --html` on stores full of hostile text.

The text has no effect on pages and terminals.
"""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result

from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.cli.audit import command as audit
from tornpage.cli.inspect import command as inspect
from tornpage.cli.report import command as report

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "08-halt-async" / "store"
NASTY = "\x1b]0;x\x07\u202e<script>alert(1)</script>\x9b2J\r'\"&"


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of RocketMQ with a clean exit and damage.

    One page of the log and three queue units are zeroed.
    """
    store = tmp_path_factory.mktemp("damaged") / "store"
    shutil.copytree(GOLDEN, store, copy_function=shutil.copyfile)
    (store / "abort").unlink()
    for path, begin, size in ((f"commitlog/{0:020}", 20480, 4096), (f"consumequeue/TopicHalt/0/{0:020}", 200, 60)):
        data = bytearray((store / path).read_bytes())
        data[begin : begin + size] = bytes(size)
        (store / path).write_bytes(data)
    return store


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of this project with hostile topics, keys, tags and bodies."""
    directory = tmp_path_factory.mktemp("hostile") / "store"
    config = MessageStoreConfig(mapped_file_size_commit_log=16384, max_hash_slot_num=50, max_index_num=100)
    with MessageStore.open(directory, config) as store:
        topic = NASTY.replace("/", "")
        for number in range(3):
            message = Message(topic, NASTY.encode(), properties={"KEYS": NASTY, "TAGS": NASTY, NASTY: NASTY})
            assert store.put(message).status.name == "PUT_OK", number
    (directory / "config").mkdir(exist_ok=True)
    offsets = {"offsetTable": {f"{topic}@{NASTY}": {"0": 99}}}
    (directory / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    (directory / "commitlog" / NASTY.replace("/", "")).write_text("a stray file")
    return directory


def invoke(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("command", [inspect, audit], ids=["inspect", "audit"])
def test_the_page_of_a_damaged_store_has_its_findings_in_place(command: object, damaged: Path, tmp_path: Path) -> None:
    page = tmp_path / "store.html"
    plain = () if command is inspect else ("--engine", "plain")
    done = invoke(command, str(damaged), "--html", str(page), *plain)
    assert done.exit_code == 1, done.output
    assert str(page) in done.stdout.splitlines()
    text = page.read_text(encoding="utf-8")
    assert '<p class="verdict">damaged</p>' in text
    assert "no record can be read" in text
    assert "CL_BAD_RECORD" in text
    assert ("CQ_MISSING" in text) is (command is audit)
    assert f"--html {page}" in text
    assert text.count('<path class="f-red" transform=') >= 1


@pytest.mark.parametrize(
    "arguments",
    [("queues",), ("--key", "k"), ("--hex",), ("--offset", "7"), ("--follow",)],
    ids=lambda arguments: arguments[0],
)
def test_a_page_is_of_the_whole_store(damaged: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = invoke(inspect, str(damaged), *arguments, "--html", str(tmp_path / "x.html"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--html shows the whole store" in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_an_audit_has_a_page_for_one_store_only(damaged: Path, tmp_path: Path) -> None:
    done = invoke(audit, str(damaged), str(damaged), "--engine", "plain", "--html", str(tmp_path / "x.html"))
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize("command", [inspect, audit], ids=["inspect", "audit"])
def test_a_page_that_cannot_be_written_is_told_in_a_line(command: object, damaged: Path, tmp_path: Path) -> None:
    plain = () if command is inspect else ("--engine", "plain")
    done = invoke(command, str(damaged), "--html", str(tmp_path / "no" / "x.html"), *plain)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert f"there is no directory {tmp_path / 'no'}" in done.stderr


def test_hostile_text_neither_steers_a_terminal_nor_becomes_markup(hostile: Path, tmp_path: Path) -> None:
    page = tmp_path / "store.html"
    topic = NASTY.replace("/", "")
    runs: list[tuple[Command, list[str]]] = [
        (inspect, ["--all", "--hex"]),
        (inspect, ["queues"]),
        (inspect, ["queue", f"{topic}/0"]),
        (inspect, ["index"]),
        (inspect, ["config"]),
        (inspect, ["groups"]),
        (inspect, ["--key", NASTY, "--topic", topic]),
        (inspect, ["--html", str(page)]),
        (audit, ["--engine", "plain"]),
    ]
    seen = 0
    for command, arguments in runs:
        done = invoke(command, str(hostile), *arguments)
        assert done.exit_code in (0, 1, 3), (arguments, done.output)
        said = done.stdout + done.stderr
        seen += "alert(1)" in said
        assert not [c for c in said if not c.isprintable() and c != "\n"], arguments
    assert seen > 5
    assert Tags(page.read_text(encoding="utf-8")).names.count("script") == 1


def test_a_refusal_does_not_steer_a_terminal_either(tmp_path: Path) -> None:
    done = invoke(report, str(tmp_path / "\x1b]0;x\x07"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert not [c for c in done.stderr if not c.isprintable() and c != "\n"]
    assert r"\x1b]0;x\x07" in done.stderr


def test_the_check_above_sees_a_terminal_that_is_steered() -> None:
    assert [c for c in NASTY if not c.isprintable() and c != "\n"]
