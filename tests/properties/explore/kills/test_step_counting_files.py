"""Test that each call of the file interface is one step, then the same call of the disk."""

import inspect
from collections.abc import Callable
from typing import Any, cast

import pytest

from tornpage.impl.io.files import Files
from tornpage.properties.explore.kills.step_counting_files import StepCountingFiles

VERBS = sorted(name for name, value in vars(Files).items() if inspect.isfunction(value) and not name.startswith("_"))


class Noted:
    """A disk that records the calls and returns the name of each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., str]:
        def call(*arguments: Any, **named: Any) -> str:
            self.calls.append((name, arguments, named))
            return name

        return call


@pytest.mark.parametrize("verb", VERBS)
def test_a_call_is_a_step_and_then_the_call(verb: str) -> None:
    disk, seen = Noted(), []
    counting = StepCountingFiles(cast(Files, disk), lambda: seen.append(len(disk.calls)))
    parameters = list(inspect.signature(getattr(Files, verb)).parameters.values())[1:]
    arguments = tuple(f"<{each.name}>" for each in parameters if each.kind is not each.KEYWORD_ONLY)
    named = {each.name: f"<{each.name}>" for each in parameters if each.kind is each.KEYWORD_ONLY}
    answer = getattr(counting, verb)(*arguments, **named)
    assert seen == [0], "one step, before the call"
    assert disk.calls == [(verb, arguments, named)]
    returns_something = inspect.signature(getattr(Files, verb)).return_annotation is not None
    assert answer == (verb if returns_something else None)
