"""Test that driver and workers run the same code on the same packages in any installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.pipeline.spark.agreement import PathUnseen, differing, missing_module, require_seen, unseen, versions


@pytest.mark.parametrize(
    ("change", "said"),
    [({}, ""), ({"tornpage": "0.2.0"}, ""), ({"Python": "3.1"}, "Python 3.1, here"), ({"numpy": "1"}, "numpy 1, here")],
)
def test_code_and_packages_count_and_not_how_it_was_installed(change: dict[str, str], said: str) -> None:
    found = differing({**versions(), **change}, versions())
    assert (found is None) == (not said)
    assert said in str(found or "")


def test_what_a_worker_lacks_is_named() -> None:
    said = missing_module(RuntimeError("… ModuleNotFoundError: No module named 'pipeline'\n …"))
    assert str(said) == "workers have no module pipeline; install there what is installed here"
    assert missing_module(RuntimeError("Python worker exited unexpectedly")) is None


def test_directory_that_a_worker_does_not_see_is_named_with_its_remedy(tmp_path: Path) -> None:
    require_seen([tmp_path])
    with pytest.raises(PathUnseen, match=r"^the worker on \S+ does not see the directory .*/gone; put") as caught:
        require_seen([tmp_path, tmp_path / "gone"])
    job = RuntimeError(f"Job aborted\ntornpage.pipeline.spark.agreement.PathUnseen: {caught.value}\n\tat x.Java")
    assert str(unseen(job)) == str(caught.value)
    assert unseen(RuntimeError("Python worker exited unexpectedly")) is None
