"""Test docs/coverage.md: every name exists, and every row has a test or a reason.

A row without a test says what comes later, or why it is left out. Names are looked up in the parsed sources, which are
not run.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
HEADER = ("behaviour", "code", "tests", "model", "rules, bugs", "departs, later")
MACHINES = (
    "properties/explore/machines/machine.py",
    "properties/explore/machines/put_machine.py",
    "properties/explore/machines/flush_machine.py",
    "properties/explore/machines/queue_machine.py",
    "properties/explore/machines/retention_machine.py",
    "properties/explore/machines/consumer_machine.py",
    "properties/explore/machines/delay_machine.py",
    "properties/explore/machines/failing_disk_machine.py",
    "properties/explore/consumers/machine.py",
)
PLANTED = "properties/planted"
PAGE_BUGS = ("consumers", "delay", "groups", "index", "log", "polling", "put", "queue", "races", "read", "retention")
"""The modules of planted bugs that are about this page."""
ELSEWHERE = frozenset(
    {
        "RMQ-B08",
        "RMQ-B09",
        "index-ahead-stays",
        "index-header-believed",
        "index-kept-for-an-empty-log",
        "prefill-is-seen",
        "prefill-is-the-furthest",
        "queued-is-indexed",
    }
)
"""Bugs of those modules that are about an open of a store, which is not on this page."""
NO_BUGS = ("__init__", "lockstep", "perturb", "programs", "record", "registry")
"""Modules about planted bugs that plant none."""

_CODE = re.compile(r"`([^`]+)`")
_DEFINITION = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
_INLINE = re.compile(r"\[[^\]]+\]\(([^)]+)\)")
_SHORTCUT = re.compile(r"(?<!\])\[([a-z ]+)\](?![(:])")


@dataclass(frozen=True)
class Row:
    """One row; the fields are its cells."""

    section: str
    behaviour: str
    code: str
    tests: str
    model: str
    rules: str
    departs: str


def rows() -> list[Row]:
    """Return the rows of all tables with this header."""
    found, section, inside = [], "", False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            section = line.strip("# ")
        if not line.startswith("|"):
            inside = False
            continue
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if cells == HEADER:
            inside = True
        elif inside and not set(line) <= set("|-"):
            assert len(cells) == len(HEADER), line
            found.append(Row(section, *cells))
    return found


ROWS = rows()
TEXT = PAGE.read_text(encoding="utf-8")


@cache
def tree_of(path: str) -> ast.Module:
    """Return the parsed source of a file below the root."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), path)


def names_in(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the definitions of a module or a class by name."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
    return found


def missing(dotted: str) -> str:
    """Return the missing part of `room.module.Name.member`, or nothing."""
    path, *rest = ROOT, *dotted.split(".")
    while rest and (path / rest[0]).is_dir():
        path /= rest.pop(0)
    if not rest:
        return "" if (path / "__init__.py").is_file() else f"package {path.name}"
    module = path / f"{rest.pop(0)}.py"
    if not module.is_file():
        return f"module {module.name}"
    body = tree_of(str(module.relative_to(ROOT))).body
    for name in rest:
        node = names_in(body).get(name)
        if node is None:
            return f"{name} in {module.name}"
        body = node.body if isinstance(node, ast.ClassDef) else []
    return ""


def named_tests(row: Row) -> Iterator[tuple[str, str]]:
    """Yield path and function (empty for the whole file) of each test that a row names."""
    path = ""
    for name in _CODE.findall(row.tests):
        named, _, function = name.partition("::")
        path = named or path
        yield path, function


@cache
def bugs_of(module: str) -> frozenset[str]:
    """Return the ids of the bugs that one module plants."""
    bugs = names_in(tree_of(f"{PLANTED}/{module}.py").body)["BUGS"]
    assert isinstance(bugs, ast.Assign | ast.AnnAssign)
    assert isinstance(bugs.value, ast.Tuple)
    firsts = [each.args[0] for each in bugs.value.elts if isinstance(each, ast.Call)]
    return frozenset(
        first.value for first in firsts if isinstance(first, ast.Constant) and isinstance(first.value, str)
    )


def all_bugs() -> frozenset[str]:
    """Return every planted bug."""
    modules = [path.stem for path in (ROOT / PLANTED).glob("*.py") if path.stem not in NO_BUGS]
    return frozenset().union(*map(bugs_of, modules))


@cache
def machine_rules() -> frozenset[str]:
    """Return `Machine.rule` for every method that is decorated as a rule."""
    found = set()
    for path in MACHINES:
        for name, machine in names_in(tree_of(path).body).items():
            for member in machine.body if isinstance(machine, ast.ClassDef) else []:
                for decorator in member.decorator_list if isinstance(member, ast.FunctionDef) else []:
                    match decorator:
                        case ast.Call(func=ast.Name(id="rule")):
                            assert isinstance(member, ast.FunctionDef)
                            found.add(f"{name}.{member.name}")
    return frozenset(found)


def slugs(path: Path) -> frozenset[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def named(row: Row) -> str:
    return f"{row.section}: {row.behaviour}"


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_the_page_has_its_sections() -> None:
    sections = {row.section.split(" ")[0].rstrip(".") for row in ROWS}
    assert {str(number) for number in range(2, 22)} < sections
    assert {"2.1", "2.4", "2.8", "2.9", "2.10", "2.11", "3", "4.1", "5", "6", "17"} < sections


def test_behaviours_are_named_once() -> None:
    names = [named(row) for row in ROWS]
    assert sorted(set(names)) == sorted(names)
    assert all(row.behaviour for row in ROWS)


def test_a_row_has_a_test_or_says_later() -> None:
    without = [
        named(row)
        for row in ROWS
        if not (list(named_tests(row)) and _CODE.findall(row.code))
        and re.search(r"\b(later|left out)\b", row.departs) is None
    ]
    assert without == []


# ---- names -----------------------------------------------------------------------------------------------------------


def wrong_names(row: Row) -> Iterator[str]:
    """Yield the errors in the names of a row."""
    for room, cell in (("impl", row.code), ("model", row.model)):
        for name in _CODE.findall(cell):
            if not name.startswith(f"{room}."):
                yield f"{name} is not of {room}"
            if gone := missing(name):
                yield f"{name}: no {gone}"
    for path, function in named_tests(row):
        if not path.startswith("tests/") or not (ROOT / path).is_file():
            yield f"{path}: no such test file"
        elif function and not isinstance(names_in(tree_of(path).body).get(function), ast.FunctionDef):
            yield f"{path}: no {function}"
        elif function and not function.startswith("test_"):
            yield f"{path}: {function} is no test"
    known = machine_rules() | all_bugs()
    yield from (f"no rule or bug {name}" for name in _CODE.findall(row.rules) if name not in known)


@pytest.mark.slow
def test_names_of_rows_exist() -> None:
    assert [f"{named(row)}: {wrong}" for row in ROWS for wrong in wrong_names(row)] == []


def test_a_row_with_wrong_names_is_told_of_each() -> None:
    row = Row(
        "s", "b", "`model.commitlog`", "`tests/no.py`, `tests/test_docs.py::commands_in`", "`impl.no`", "`no`", ""
    )
    assert len(list(wrong_names(row))) == 6


def test_every_planted_bug_that_the_page_is_about_is_on_it() -> None:
    on_page = {name for row in ROWS for name in _CODE.findall(row.rules)}
    assert frozenset().union(*map(bugs_of, PAGE_BUGS)) - on_page == ELSEWHERE


def test_paths_in_the_text_exist() -> None:
    paths = {name.partition("::")[0] for name in _CODE.findall(TEXT) if "/" in name and name.partition("::")[0]}
    assert [path for path in sorted(paths) if path.endswith((".py", "/")) and not (ROOT / path).exists()] == []


def test_the_checks_find_what_is_missing() -> None:
    assert (
        missing("impl.message.codec.check_record")
        == missing("impl.message.message.PutResult.stored")
        == missing("model")
        == ""
    )
    assert missing("impl.message.codec.check_records") == "check_records in codec.py"
    assert missing("impl.message.message.PutResult.kept") == "kept in message.py"
    assert missing("impl.codex") == "module codex.py"
    assert "PutMachine.put_special" in machine_rules()
    assert "PutMachine.open_store" not in machine_rules()
    assert "lying-flush" in all_bugs()


# ---- links -----------------------------------------------------------------------------------------------------------


def test_links_resolve() -> None:
    defined = dict(_DEFINITION.findall(TEXT))
    used = set(_SHORTCUT.findall(TEXT))
    assert used == set(defined)
    for target in (*_INLINE.findall(TEXT), *defined.values()):
        name, _, anchor = target.partition("#")
        page = PAGE.parent / name if name else PAGE
        assert page.is_file(), target
        assert not anchor or anchor in slugs(page), target
