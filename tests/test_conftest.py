"""Test which tests are slow by their fixtures, and which files share a worker."""

from typing import Any

import pytest
from xdist.remote import Producer

from tests.conftest import TESTS, TOGETHER, pytest_itemcollected, pytest_xdist_make_scheduler


class Collected:
    """A collected test with fixtures."""

    def __init__(self, path: str, *fixtures: str) -> None:
        self.path = TESTS / path
        self.fixturenames = [*fixtures]
        self.marks: list[str] = []

    def add_marker(self, mark: Any) -> None:
        """Note the name of a mark."""
        self.marks.append(mark.name)


@pytest.mark.parametrize(
    ("path", "fixture", "marks"),
    [
        ("pipeline/test_some.py", "spark", ["slow"]),
        ("reports/kinds/test_some.py", "browser", ["slow"]),
        ("peers/test_some.py", "client", ["slow"]),
        ("impl/consumer/test_some.py", "client", []),
        ("pipeline/test_some.py", "tmp_path", []),
    ],
)
def test_tests_that_start_a_runtime_are_slow(path: str, fixture: str, marks: list[str]) -> None:
    item: Any = Collected(path, "tmp_path", fixture)
    pytest_itemcollected(item)
    assert item.marks == marks


def test_files_that_share_something_share_a_worker(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "dist", "loadfile")
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    scheduler = pytest_xdist_make_scheduler(pytestconfig, Producer("test", enabled=False))
    assert scheduler is not None
    for name, partner in TOGETHER.items():
        assert scheduler._split_scope(f"tests/{name}::test_some[a/b::c]") == f"tests/{partner}"
    assert scheduler._split_scope("tests/test_other.py::test_some") == "tests/test_other.py"
    monkeypatch.setattr(pytestconfig.option, "dist", "load")
    assert pytest_xdist_make_scheduler(pytestconfig, Producer("test", enabled=False)) is None
