"""Test `tornpage board` with small stores; those of the real catalogue are deep tests."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.outcomes.board import RowResult
from tornpage.peers.board import catalogue, places
from tornpage.peers.board.catalogue import ROWS, Row
from tornpage.peers.board.installing import install, why_not_installed
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.render.board import story

TOY = Path(__file__).resolve().parents[2] / "examples" / "toy_store.py"
REPAIR = "        os.fsync(os.open(directory, os.O_RDONLY))\n"
traced = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


class LocalRow(Row):
    """A row whose target is the whole name of a store."""

    @property
    def spec(self) -> str:
        """The target itself."""
        return self.target


def row(name: str, target: str, *, package: str = "", **more: Any) -> Row:
    about = {
        "software": name.title(),
        "mode": "default",
        "quote": "Safe once put was answered.",
        "source": "its README",
    }
    return LocalRow(
        name, ecosystem="python", package=package, target=target, **{**about, "disks": ("posix-strict",), **more}
    )


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A board of the toy store, of the repaired toy, and of a library that is not installed."""
    text = TOY.read_text()
    sync = "        os.fsync(self.file)\n\n    def message_at"
    assert text.count(sync) == 1
    (tmp_path / "toy.py").write_text(text)
    (tmp_path / "repaired.py").write_text(text.replace(sync, sync.replace("\n\n", "\n" + REPAIR + "\n")))
    programs = tmp_path / "programs"
    (programs / "reproductions").mkdir(parents=True)
    (programs / "reproductions" / "shows.py").write_text("import sys; print('seen', sys.argv[1:]); sys.exit(1)\n")
    (programs / "reproductions" / "fails.py").write_text("import no_such_module\n")
    monkeypatch.setattr(places, "SOURCES", programs)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = (
        row("toy", f"{tmp_path}/toy.py:ToyStore", reproductions=("shows.py one", "fails.py")),
        row("repaired", f"{tmp_path}/repaired.py:ToyStore"),
        row("absent", "absent:Store", package="lmdb"),
    )
    monkeypatch.setattr(catalogue, "ROWS", rows)
    monkeypatch.setattr("tornpage.peers.board.installing._python_version", lambda package: None)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["board", *arguments])


@pytest.mark.slow
@traced
def test_board_tells_broken_from_holding_and_from_absent_stores(stores: Path) -> None:
    out = ["--states", "20", "--seconds", "30", "--out", str(stores / "kept")]
    found = run(*out, "--json", "--markdown", str(stores / "board.md"), "--html", str(stores / "board.html"))
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert {each["name"]: each["verdict"] for each in document["board"]} == {
        "toy": "broken", "repaired": "holds", "absent": "skipped"
    }  # fmt: skip
    toy, repaired, absent = document["board"]
    assert toy["findings"][0]["program"] == ["put()", "crash()"]
    assert toy["first_failure_s"] > 0
    assert [(each["shows"], each["said"]) for each in toy["confirmations"]] == [
        (True, "seen ['one']"),
        (False, "ModuleNotFoundError: No module named 'no_such_module'"),
    ]
    assert repaired["power"] >= 20
    assert repaired["lossy"] > 0
    assert absent["reason"] == "not installed; run `tornpage board install absent`"
    page = (stores / "board.md").read_text()
    assert "| Toy | Python" in page
    assert "Operations: put, power loss. The crash: power loss on the disk posix-strict, at rest" in page
    assert "Confirmed without tornpage by `peers/board/reproductions/shows.py one`: seen ['one']" in page
    assert "skipped: not installed; run" in page
    assert "| repaired | Safe once put was answered. | its README |" in page
    html = (stores / "board.html").read_text()
    assert "<td>broken</td>" in html
    assert "create /messages" in html
    again = run(*out, "--resume", "--states", "60", "--json", "--only", "repaired")
    (more,) = json.loads(again.stdout)["board"]
    assert (more["parts"], more["power"] >= 60) == (repaired["parts"] + 1, True)
    assert more["states"] > repaired["states"]
    kept = json.loads(run("--kept", "--out", str(stores / "kept"), "--json").stdout)["board"]
    assert [(each["name"], each["verdict"]) for each in kept] == [
        ("toy", "broken"), ("repaired", "holds"), ("absent", "skipped")
    ]  # fmt: skip
    assert kept[1]["states"] == more["states"]


@traced
def test_a_part_that_dies_is_not_called_broken(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "ROWS", (row("wrong", f"{stores}/toy.py:NoSuchStore"),))
    found = run("--states", "5", "--json")
    (result,) = json.loads(found.stdout)["board"]
    assert (found.exit_code, result["verdict"]) == (4, "unknown")
    assert "has no 'NoSuchStore'" in result["reason"]


def test_only_absent_stores_prove_nothing(stores: Path) -> None:
    found = run("--only", "absent")
    assert found.exit_code == 3
    assert re.search(r"absent +posix-strict +skipped .*not installed", found.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "nothing"], "'nothing' is not on the board"),
        (["--only", "absent", "--disk", "ext4"], "no chosen store promises anything for ext4"),
        (["install", "nothing"], "'nothing' is not on the board"),
        (["--only", "toy", "--html", "no/such/place.html"], "there is no directory no/such"),
    ],
)
def test_misuse_is_one_line(stores: Path, arguments: list[str], said: str) -> None:
    found = run(*arguments)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr
    assert found.stderr.count("\n") == 1


def test_markdown_page_of_another_file_is_not_replaced(stores: Path) -> None:
    (stores / "mine.md").write_text("# Mine\n")
    found = run("--only", "absent", "--markdown", str(stores / "mine.md"))
    assert (found.exit_code, "mine.md exists" in found.stderr) == (2, True)


def test_installation_without_tools_gives_a_reason_per_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = [each for each in ROWS if each.name in ("bbolt", "redb", "mapdb")]
    assert install(rows, environment={"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}) == {
        "bbolt": "no go on PATH; install Go",
        "redb": "no cargo on PATH; install Rust",
        "mapdb": "no java on PATH; install a JDK",
    }
    assert why_not_installed(rows[0]) == "not installed; run `tornpage board install bbolt`"


def test_list_names_all_rows() -> None:
    found = run("list", "--json")
    rows = json.loads(found.stdout)["board"]
    assert [each["name"] for each in rows] == [each.name for each in ROWS]


# ---- the catalogue ---------------------------------------------------------------------------------------------------


def test_board_has_forty_rows_of_pinned_stores_with_a_promise_each() -> None:
    assert len({each.name for each in ROWS}) == len(ROWS) >= 40
    assert len({each.software for each in ROWS}) >= 20
    for each in ROWS:
        assert re.search(r"\d", each.version), each.name
        assert each.quote, each.name
        assert each.source, each.name
        for program in each.reproductions:
            assert (places.SOURCES / "reproductions" / program.split()[0]).is_file(), program


def test_adapters_of_the_rows_are_there() -> None:
    for each in ROWS:
        if each.ecosystem == "python":
            module, _, name = each.target.partition("(")[0].partition(":")
            assert f"class {name}(" in (places.SOURCES / "python" / f"{module}.py").read_text(), each.name
        else:
            sources = [path.read_text() for path in (places.SOURCES / each.ecosystem).rglob("*") if path.is_file()]
            assert any(f'"{each.target.split()[0]}"' in text for text in sources), each.name


def test_reproductions_do_not_import_tornpage() -> None:
    for path in (places.SOURCES / "reproductions").iterdir():
        assert not re.search(r"^\s*(import|from) tornpage", path.read_text(), re.MULTILINE), path


def test_a_failure_is_told_in_words() -> None:
    finding = {
        "sentence": "the store does not open: Error: <x>",
        "expected": "an answer",
        "found": "on standard error: bad | header",
        "program": ["put(body_bytes=8)", "open()", "crash(back=2, others='kept')"],
        "crash": [
            "crash     power loss on the disk journal, 2 events before the answer of operation 2",
            "lost      /log[0..0]",
        ],
    }
    assert story(finding) == (
        "Operations: put, close and open, power loss. The crash: power loss on the disk journal, 2 events before the "
        "answer of operation 2. Lost: /log[0..0]. Seen: the store does not open: Error: ‹x› "
        "(on standard error: bad / header)."
    )


def test_a_result_without_losses_is_vacuous() -> None:
    result = RowResult("a", "journal", "1", 0, states=10, power=10)
    assert result.verdict == "vacuous"
    result.lossy = 1
    assert result.verdict == "holds"


# ---- real stores -----------------------------------------------------------------------------------------------------


def installed(name: str) -> Row:
    (found,) = (each for each in ROWS if each.name == name)
    if reason := why_not_installed(found):
        pytest.skip(reason)
    return found


REPRODUCTIONS = sorted({(program, each.name) for each in ROWS for program in each.reproductions})


@pytest.mark.deep
@pytest.mark.parametrize(("program", "name"), REPRODUCTIONS, ids=lambda value: value.replace(" ", "-"))
def test_reproduction_shows_the_failure_without_tornpage(program: str, name: str) -> None:
    from tornpage.outcomes.board import reproduce

    installed(name)
    if program.startswith(("unsynced", "killed")) and shutil.which("strace") is None:
        pytest.skip("no strace")
    done = reproduce(program)
    assert done.shows, done.said


@pytest.mark.deep
@traced
@pytest.mark.parametrize("name", ["sqlite-wal-full", "sqlite-delete-extra", "rocksdb-sync", "pebble-sync"])
def test_durable_store_holds(name: str, tmp_path: Path) -> None:
    installed(name)
    found = run("--only", name, "--states", "40", "--seconds", "60", "--out", str(tmp_path), "--json")
    assert {each["verdict"] for each in json.loads(found.stdout)["board"]} == {"holds"}


@pytest.mark.deep
@traced
@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("leveldb-sync", 7),
        ("goleveldb-sync", 7),
        ("sled-flush", 7),
        ("zodb-filestorage", 7),
        ("tidwall-wal", 7),
        ("dque", 7),
        ("sqlitedict-commit", 2),
    ],
)
def test_known_defect_is_found_within_a_minute(name: str, contract: int, tmp_path: Path) -> None:
    installed(name)
    found = run(
        "--only", name, "--disk", "journal", "--states", "2000", "--out", str(tmp_path), "--no-confirm", "--json"
    )
    (result,) = json.loads(found.stdout)["board"]
    assert result["verdict"] == "broken"
    assert result["first_failure_s"] <= 60
    assert contract in {int(each["code"].removeprefix("contract-")) for each in result["findings"]}
