"""Test stores in processes: promises, concurrent callers, evidence for a verdict."""

import importlib.util
import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.model.operations import Call, Close, Crash, Flush, Operation
from tornpage.properties.campaign.replay import Failure, replay, shrink
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.foreign import campaign
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.shapes.registry import SHAPES
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import BadToken, Case, Settings, describe

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


def example(name: str) -> ModuleType:
    """Return a module of the folder examples."""
    path = Path(__file__).resolve().parents[3] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"_example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


KeyValue: Any = example("key_value").KeyValue


class Unsynced(KeyValue):  # type: ignore[misc]
    """Syncs nothing but at a flush."""

    def write(self, *change: Any) -> None:
        text = json.dumps(change).encode() + b"\n"
        line = b"%08x %s" % (example("key_value").zlib.crc32(text), text)
        os.pwrite(self.file, line, self.end)
        self.end += len(line)
        self.apply(*change)


class NotDurable(Unsynced):
    promises: ClassVar[dict[str, Any]] = {"durable": "nothing", "kill": "put", "batch": "atomic", "ordered": True}


class FlushAlone(Unsynced):
    promises: ClassVar[dict[str, Any]] = {**NotDurable.promises, "durable": ["flush"]}


class FlushOrClose(Unsynced):
    promises: ClassVar[dict[str, Any]] = {**NotDurable.promises, "durable": "flush"}


class KillsOnly(Unsynced):
    promises: ClassVar[dict[str, Any]] = {"consistent": "kill", "kill": "put", "batch": "atomic"}


class HalfBatches(KeyValue):  # type: ignore[misc]
    """Writes each change of a batch by itself."""

    def batch(self, changes: Any) -> None:
        for change in changes:
            super().batch([change])


class Callers(KeyValue):  # type: ignore[misc]
    """Takes several calls at the same time."""

    promises: ClassVar[dict[str, Any]] = {**KeyValue.promises, "ordered": True, "callers": 4}

    def __init__(self, directory: str) -> None:
        self.lock = threading.Lock()
        super().__init__(directory)

    def write(self, *change: Any) -> None:
        with self.lock:
            super().write(*change)


class ForgetsOneOfTwoCallers(Callers):
    """Acknowledges a call that another one was to write, and no one does."""

    def put(self, key: str, value: bytes) -> None:
        if key == "b":
            self.apply([[key, value.hex()]])
        else:
            super().put(key, value)


def run(store: str, *operations: Operation) -> Failure | None:
    with choose_tracker("auto") as tracker:
        return replay(Case(Settings(target=f"{__file__}:{store}"), operations), tracker=tracker)


def contract(store: str, *operations: Operation) -> int:
    found = run(store, *operations)
    return 0 if found is None else found.broken.contract


def explore(store: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explore", "target", f"{__file__}:{store}", *arguments])


A, B = Call("put", "a", size_bytes=8), Call("put", "b", size_bytes=8)


@watched
@pytest.mark.parametrize(
    ("store", "operations", "number"),
    [
        ("Unsynced", (A, Crash()), 2),
        ("NotDurable", (A, Crash()), 0),
        ("NotDurable", (A, Flush(), Crash()), 0),
        ("NotDurable", (A, B, Crash(survived={"page /log 0": 0}, others="kept")), 0),
        ("FlushAlone", (A, Close(), Crash()), 0),
        ("FlushOrClose", (A, Close(), Crash()), 2),
        ("HalfBatches", (Call("batch", parts=(A, B)), Crash(kill=True, back=3)), 1),
        ("KeyValue", (Call("batch", parts=(A, B)), Crash(kill=True, back=3)), 0),
        ("Callers", (Call("together", parts=(A, B)), Crash(back=3)), 0),
        ("Callers", (Call("together", parts=(A, B)), Crash()), 0),
        ("ForgetsOneOfTwoCallers", (Call("together", parts=(A, B)), Crash(kill=True)), 2),
    ],
)
def test_promise_is_judged(store: str, operations: tuple[Operation, ...], number: int) -> None:
    assert contract(store, *operations) == number


@watched
def test_no_promise_after_a_power_loss_asks_for_kills_only() -> None:
    with pytest.raises(TargetUnusable, match="promises nothing after a power loss"):
        run("KillsOnly", A, Crash())
    held = explore("KillsOnly", "--states", "12", "--seed", "1")
    assert held.exit_code == 0, held.output
    assert "only process kills were asked for" in held.stdout
    assert "no promise after a power loss, safe from a kill after put" in held.stderr


@pytest.mark.slow
@watched
def test_failure_is_shrunk_to_calls_of_one_key() -> None:
    batch = Call("batch", parts=(replace(A, size_bytes=900), replace(B, size_bytes=40), Call("delete", "c")))
    found = run("Unsynced", replace(B, size_bytes=300), batch, Call("get", "b"), Flush(), batch, Crash())
    assert found is not None
    with choose_tracker("auto") as tracker:
        small = shrink(found, tracker=tracker, tries_max=150)
    assert describe(small.case.operations[0]) in ("put(b, 8 bytes)", "put(a, 8 bytes)")
    assert len(small.case.operations) == 2
    again = Case.from_token(small.case.token())
    assert again == small.case


@watched
def test_without_a_caught_canary_nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    tame = {**SHAPES, "key-value": replace(SHAPES["key-value"], canary=f"{__file__}:NotDurable")}
    monkeypatch.setattr(campaign, "SHAPES", MappingProxyType(tame))
    found = explore("KeyValue", "--states", "12", "--seed", "1")
    assert (found.exit_code, "canary" in found.stdout) == (3, True), found.output


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "messages"])
def test_canary_of_each_shape_is_caught(shape: str) -> None:
    entry = SHAPES[shape]
    first = entry.run(entry.promises()).first_write
    with choose_tracker("auto") as tracker:
        found = replay(Case(Settings(target=entry.canary), (first, Crash(kill=True))), tracker=tracker)
    assert found is not None
    assert found.broken.contract == 2
    assert isinstance(first, Call)
    assert first.verb == entry.write


def test_call_of_a_case_is_checked() -> None:
    for part in ({"verb": 7}, {"size_bytes": "8"}):
        text = json.dumps({"tornpage_case": 1, "settings": {}, "operations": [{"op": "call", "parts": [part]}]})
        with pytest.raises(BadToken, match="a call has a value of another kind"):
            Case.from_text(text)
