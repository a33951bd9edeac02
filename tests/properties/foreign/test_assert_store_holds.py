"""Test `assert_store_holds` for test authors: a class, a path, and a clear error.

The path is relative to the test file.
"""

import traceback
from pathlib import Path
from time import perf_counter

import pytest

from tests.properties.foreign.test_promises import Log
from tornpage.outcomes.targets import broken_promise
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.testing import assert_store_holds

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


class Forgets(Log):
    """Promises durability and forgets the last line at an open."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._lines = self._lines[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("target", [Forgets, "test_assert_store_holds.py:Forgets"], ids=["class", "path"])
def test_broken_store_fails_with_its_program(target: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=r"contract \d+ is broken") as failed:
        assert_store_holds(target, examples=12)  # type: ignore[arg-type]
    assert f"{__file__}:Forgets" in str(failed.value)
    frames = traceback.walk_tb(failed.tb)
    assert all(frame.f_locals.get("__tracebackhide__") for frame, _ in frames if "tornpage" in frame.f_code.co_filename)


def test_class_inside_a_function_is_refused() -> None:
    class Local(Log):
        pass

    with pytest.raises(TargetUnusable, match="define it at the top level of a module"):
        assert_store_holds(Local)


class Forgetful(Log):
    """Forgets the last lines at an open, as many as its argument says."""

    def __init__(self, directory: str, forgets: int = 0, *, name: str = "") -> None:
        super().__init__(directory)
        self._lines = self._lines[: len(self._lines) - forgets]


@pytest.mark.slow
def test_arguments_reach_the_store_and_its_case() -> None:
    with pytest.raises(AssertionError, match=r"contract \d+ is broken") as failed:
        assert_store_holds(Forgetful, examples=12, arguments={"forgets": 1, "name": "a, (b)"})
    assert f"{__file__}:Forgetful(forgets=1, name='a, (b)')" in str(failed.value)


@pytest.mark.parametrize(
    ("target", "arguments", "said"),
    [
        (Forgetful, {"forget": 1}, "unexpected keyword argument 'forget'"),
        (Forgetful, {"forgets": object()}, "is no literal"),
        ("test_assert_store_holds.py:Forgetful(1)", None, r"are not literals by name, as in \(sync='full', pages=3\)"),
        ("cmd:true {dir}", {"forgets": 1}, "a command takes its arguments in its own text"),
    ],
)
def test_wrong_arguments_are_refused(target: object, arguments: dict[str, object] | None, said: str) -> None:
    with pytest.raises(TargetUnusable, match=said):
        assert_store_holds(target, arguments=arguments)  # type: ignore[arg-type]


def test_time_limits_a_run() -> None:
    started = perf_counter()
    told = broken_promise(f"{__file__}:Log", seconds=2)
    assert perf_counter() - started < 60
    assert not told or told.endswith("never happened; give more seconds")
