"""Test the process of its own that a file of tests gets: all reports, and another process."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.own_process import OwnProcesses, reports_of

SOURCE = """
import os
import pytest

def test_holds(record_property):
    record_property("pid", os.getpid())

def test_fails():
    assert 1 == 2, "as expected"

@pytest.mark.skip(reason="for the report")
def test_is_skipped():
    pass

def test_ends_the_process():
    os._exit(3)
"""


@pytest.fixture
def tests(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "test_some.py"
    path.write_text(SOURCE)
    names = ("test_holds", "test_fails", "test_is_skipped", "test_ends_the_process")
    return {name: f"{path}::{name}" for name in names}


def test_reports_are_those_of_another_process(tests: dict[str, str], pytestconfig: pytest.Config) -> None:
    found = {name.rpartition(":")[2]: given for name, given in reports_of([*tests.values()], pytestconfig).items()}
    outcomes = {name: [(each.when, each.outcome) for each in given] for name, given in found.items()}
    assert outcomes == {
        "test_holds": [("setup", "passed"), ("call", "passed"), ("teardown", "passed")],
        "test_fails": [("setup", "passed"), ("call", "failed"), ("teardown", "passed")],
        "test_is_skipped": [("setup", "skipped"), ("teardown", "passed")],
        "test_ends_the_process": [("setup", "passed")],
    }
    [(_, pid)] = found["test_holds"][-1].user_properties
    assert pid != os.getpid()
    assert "as expected" in found["test_fails"][1].longreprtext


def test_worker_takes_whole_reports_and_runs_the_rest(tests: dict[str, str], pytestconfig: pytest.Config) -> None:
    reported: list[tuple[str, str]] = []
    hooks = SimpleNamespace(
        pytest_runtest_logstart=lambda nodeid, location: None,
        pytest_runtest_logreport=lambda report: reported.append((report.nodeid, report.outcome)),
        pytest_runtest_logfinish=lambda nodeid, location: None,
    )
    torn_down: list[object] = []
    session = SimpleNamespace(items=[], _setupstate=SimpleNamespace(teardown_exact=torn_down.append))
    for name in ("test_fails", "test_ends_the_process"):
        path = Path(tests[name].partition("::")[0])
        nodeid = f"{path.name}::{name}"
        item = SimpleNamespace(nodeid=nodeid, location=(str(path), 0, name), path=path, session=session, ihook=hooks)
        item.get_closest_marker = lambda wanted: wanted == "slow"
        item.config = SimpleNamespace(rootpath=path.parent, getoption=lambda *_: None, hook=pytestconfig.hook)
        session.items.append(item)
    processes = OwnProcesses([session.items[0].path])
    pythonpath = f"{Path(__file__).parents[2]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", pythonpath)
        taken = [
            processes.pytest_runtest_protocol(item, following)
            for item, following in zip(session.items, (*session.items[1:], None), strict=True)
        ]
    assert taken == [True, None]
    assert torn_down == [session.items[1]], "fixtures of the test before are kept for the next test only"
    assert reported == [("test_some.py::test_fails", outcome) for outcome in ("passed", "failed", "passed")]


def test_worker_runs_a_few_quick_tests_itself(tmp_path: Path) -> None:
    """The file does not exist, so a process for it would fail."""
    path = tmp_path / "test_some.py"
    session = SimpleNamespace(items=[])
    items = [SimpleNamespace(path=path, session=session, nodeid=f"test_some.py::test_{name}") for name in "ab"]
    for item in items:
        item.get_closest_marker = lambda _: None
    session.items += items
    processes = OwnProcesses([path])
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("tests.support.own_process.reports_of")
        assert [processes.pytest_runtest_protocol(item, None) for item in items] == [None, None]  # type: ignore[arg-type]


def test_worker_leaves_other_files_alone(tmp_path: Path) -> None:
    item = SimpleNamespace(path=tmp_path / "test_other.py")
    assert OwnProcesses([tmp_path / "test_some.py"]).pytest_runtest_protocol(item, None) is None  # type: ignore[arg-type]
