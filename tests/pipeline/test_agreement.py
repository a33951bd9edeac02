"""Test that driver and workers run the same code on the same packages in any installation."""

from __future__ import annotations

import pytest

from tornpage.pipeline.spark.agreement import differing, missing_module, versions


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
