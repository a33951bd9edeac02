"""The pytest plugin: a marker and a fixture that crash a store, and their options.

The parts of tornpage and Hypothesis are imported only when a test asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

__all__ = ["assert_store_holds", "pytest_addoption", "pytest_configure", "pytest_runtest_call"]

_MARKER = (
    "tornpage(store, *, seconds=None, examples=None, seed=0, disk='posix-strict', arguments=None): crash a store and "
    "fail the test unless it keeps its promises. Write store=Store for a class without further arguments. Several "
    "markers test several stores."
)
_NAMES = frozenset({"seconds", "examples", "seed", "disk", "arguments", "start"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options. Each wins over the markers and over the arguments of calls."""
    group = parser.getgroup("tornpage", "crash tests of stores")
    group.addoption("--tornpage-seconds", type=_positive_seconds, metavar="SECONDS", help="Time for each store.")
    group.addoption("--tornpage-examples", type=_positive_count, metavar="N", help="Runs of the machine per store.")
    group.addoption("--tornpage-seed", type=int, metavar="SEED", help="Seed of the runs (0).")
    group.addoption("--tornpage-out", metavar="DIRECTORY", help="Save each failure as a case file in this directory.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def assert_store_holds(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Fail the test unless a store keeps its promises.

    It takes the arguments of `tornpage.testing.assert_store_holds`, and the options of the command line win over them.
    """

    def hold(target: str | Callable[..., Any], **given: Any) -> None:
        __tracebackhide__ = True
        told = _told(request.config, request.path.parent, target, given)
        if told:
            raise AssertionError(told)

    return hold


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Test the stores of the markers before the body of the test runs."""
    for mark in reversed(list(item.iter_markers("tornpage"))):
        given = dict(mark.kwargs)
        stores = [*mark.args, *([given.pop("store")] if "store" in given else [])]
        if len(stores) != 1:
            pytest.fail("the marker tornpage takes one store: @pytest.mark.tornpage(store=Store)", pytrace=False)
        told = _told(item.config, item.path.parent, stores[0], given)
        if told:
            pytest.fail(told, pytrace=False)


def _told(config: pytest.Config, beside: Path, target: str | Callable[..., Any], given: Mapping[str, Any]) -> str:
    """Return the broken promise of a store as text, or an empty string."""
    __tracebackhide__ = True
    from tornpage.outcomes.targets import broken_promise, target_name
    from tornpage.properties.foreign.protocol import TargetUnusable

    unknown = sorted(given.keys() - _NAMES)
    if unknown:
        return f"{unknown[0]!r} is no argument of a store's test; give {', '.join(sorted(_NAMES))}"
    asked = dict(given)
    arguments = asked.pop("arguments", None)
    asked |= _of_options(config)
    if asked.get("examples") is None and asked.get("seconds") is None:
        asked["examples"] = _examples_of_profile()
    try:
        return broken_promise(target_name(target, beside, arguments), **asked)
    except TargetUnusable as error:
        return f"the store cannot be tested: {error}"


def _of_options(config: pytest.Config) -> dict[str, Any]:
    """Return the options that were given.

    A time limit replaces a number of examples, and the other way round.
    """
    named = {name: config.getoption(f"tornpage_{name}") for name in ("seconds", "examples", "seed", "out")}
    found = {name: value for name, value in named.items() if value is not None}
    if "seconds" in found or "examples" in found:
        found = {"seconds": None, "examples": None} | found
    if "out" in found:
        found["out"] = str(config.invocation_params.dir / found["out"])
    return found


def _examples_of_profile() -> int | None:
    """Return the `max_examples` of the Hypothesis profile in use.

    It is None for the default of Hypothesis itself.
    """
    from hypothesis import settings

    asked = settings().max_examples
    return None if asked == settings.get_profile("default").max_examples else asked


def _positive_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _positive_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count
