"""Test `assert_store_holds` for test authors: a class, a path, and a clear error.

The path is relative to the test file.
"""

import traceback
from pathlib import Path

import pytest

from tests.properties.foreign.test_promises import Log
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.testing import assert_store_holds

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


class Forgets(Log):
    """Promises durability and forgets the last line at an open."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._lines = self._lines[:-1]


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
