"""Replay, shrink and promote cases of several processes.

These are clusters, consumer groups and Raft groups. `Promoted` serves the cases of one store too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from tornpage.cli.document import Outcome, refuse, warn
from tornpage.cli.progress import shrinking_progress
from tornpage.run.writing import write_whole

if TYPE_CHECKING:
    from tornpage.outcomes.counterexamples import GivenCase
    from tornpage.properties.contract import GuaranteeBroken
    from tornpage.properties.findings import Finding
    from tornpage.properties.lockstep.step_program import StepFailure, StepProgram

__all__ = [
    "CLUSTER",
    "GROUP",
    "HOLDS",
    "PROCESS_KINDS",
    "RAFT",
    "ProcessKind",
    "Promoted",
    "failure_text",
    "process_case_of",
    "promote_process_case",
    "readable_case",
    "replay_process_case",
    "save_process_case",
    "shrink_process_case",
]

HOLDS = "every guarantee holds: there is nothing to {}\n\nverdict: holds"


@dataclass(frozen=True, slots=True)
class ProcessKind:
    """Describe how one kind of case is recognized and shown.

    `name` begins the names of its case files. `prefix` begins its tokens, and `key` is a key of its case files.
    `replay` is the folder and the name of the function that a promoted test calls. `end` describes the end of a run,
    `next_steps` the commands that take a failure, and `no_image` why `replay --image` is refused.
    """

    name: str
    prefix: str
    key: str
    replay: tuple[str, str]
    heading: str
    end: str
    next_steps: str
    no_image: str

    def program(self) -> StepProgram[Any, Any]:
        """Return the program, which is imported only then."""
        match self.name:
            case "cluster":
                from tornpage.properties.cluster.replay import CLUSTERS

                return CLUSTERS
            case "group":
                from tornpage.properties.consumers.replay import CONSUMER_GROUPS

                return CONSUMER_GROUPS
            case _:
                from tornpage.properties.raft.replay import RAFT_GROUPS

                return RAFT_GROUPS

    def is_kind_of(self, text: str, *, is_token: bool) -> bool:
        """Return whether a token or a case file is of this kind."""
        return text.startswith(self.prefix) if is_token else f'"{self.key}"' in text[:400]


CLUSTER = ProcessKind(
    "cluster",
    "tc1-",
    "tornpage_cluster",
    ("cluster", "replay_cluster"),
    heading="program",
    end="then the network heals and every node restarts",
    next_steps="smaller: tornpage shrink, as a page: tornpage explain, as a test: tornpage promote",
    no_image="a case of a cluster has a disk for each node; --image goes with one store",
)
GROUP = ProcessKind(
    "group",
    "tg1-",
    "tornpage_group",
    ("consumers", "replay_group"),
    heading="program",
    end="then all faults end and the group gets time",
    next_steps="smaller: tornpage shrink, all events: tornpage explain, as a test: tornpage promote",
    no_image="a case of a consumer group has no image to write; --image goes with one store",
)
RAFT = ProcessKind(
    "raft",
    "tr1-",
    "tornpage_raft",
    ("raft", "replay_raft"),
    heading="schedule",
    end="",
    next_steps="smaller: tornpage shrink, as a test: tornpage promote",
    no_image="a case of a Raft group has a disk for each member; --image goes with one store",
)
PROCESS_KINDS = (CLUSTER, GROUP, RAFT)


def failure_text(kind: ProcessKind, failure: StepFailure[Any]) -> str:
    """Return a failure as text."""
    from tornpage.properties.program.steps import described_step

    broken, case = failure.broken, failure.case
    settings = ", ".join(f"{name}={value}" for name, value in case.document()["settings"].items()) or "defaults"
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", "", f"  {kind.heading}"]
    lines += [f"    {number}. {described_step(each)}" for number, each in enumerate(case.operations, 1)]
    lines += [f"    {kind.end}"] if kind.end else []
    lines.append(f"  settings  {settings}")
    if broken.expected or broken.found:
        lines += ["", f"  expected  {broken.expected or '(nothing)'}", f"  found     {broken.found or '(nothing)'}"]
    lines += ["", "  run it again:", f"    tornpage replay {case.token()}"]
    return "\n".join([*lines, f"  {kind.next_steps}", ""])


def save_process_case(kind: ProcessKind, failure: StepFailure[Any], finding: dict[str, Any], out: str) -> None:
    """Write the case file, and enter its path in a finding; the token is printed in any case."""
    path = Path(out) / f"{kind.name}-{finding['token'][4:12]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(failure.case.document(), indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {out}: {error.strerror}; the token has the same content")
    else:
        finding["case_file"] = str(path)


def process_case_of(kind: ProcessKind, given: GivenCase) -> Any:
    """Read a case. Raises BadToken."""
    case = kind.program().case
    return case.from_token(given.text) if given.is_token else case.from_text(given.text)


def readable_case(kind: ProcessKind, given: GivenCase) -> Any:
    """Read a case; refuses one that cannot be read."""
    from tornpage.properties.program.packing import BadToken

    try:
        return process_case_of(kind, given)
    except BadToken as error:
        given.refuse_because(error)


def replay_process_case(kind: ProcessKind, given: GivenCase) -> tuple[Outcome, str]:
    """Repeat a case. Raises BadToken and UnknownBug."""
    from tornpage.properties.disk.dirty import choose_tracker

    case = process_case_of(kind, given)
    with choose_tracker("auto") as tracker:
        failure = kind.program().replay(case, tracker=tracker)
    figures = {"operations": len(case.operations)}
    if failure is None:
        return Outcome("replay", "holds", figures), "every guarantee holds\n\nverdict: holds"
    outcome = Outcome("replay", "broken", figures, findings=[failure.finding().document()])
    return outcome, f"{failure_text(kind, failure)}\nverdict: broken"


def shrink_process_case(kind: ProcessKind, given: GivenCase, *, seconds: float, out: str | None) -> tuple[Outcome, str]:
    """Shrink a case for some seconds.

    Raises UnknownBug; refuses a case that cannot be read.
    """
    from tornpage.properties.disk.dirty import choose_tracker

    case, program = readable_case(kind, given), kind.program()
    started = perf_counter()
    with choose_tracker("auto") as tracker, shrinking_progress(seconds=seconds) as show:
        failure = program.replay(case, tracker=tracker)
        if failure is None:
            return Outcome("shrink", "holds", {"operations": len(case.operations)}), HOLDS.format("shrink")
        small = program.shrink(failure, tracker=tracker, is_over=lambda: perf_counter() - started > seconds, watch=show)
    finding = small.finding().document()
    if out is not None:
        save_process_case(kind, small, finding, out)
    figures = {"operations": len(small.case.operations), "operations_before": len(case.operations)}
    return Outcome("shrink", "broken", figures, findings=[finding]), f"{failure_text(kind, small)}\nverdict: broken"


class AnyFailure(Protocol):
    """A failure of a case of any kind."""

    @property
    def broken(self) -> GuaranteeBroken:
        """The broken guarantee."""

    def finding(self) -> Finding:
        """Return the finding."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """A case to be kept as a test module at `path`.

    `caught` is its failure with the planted bug, and `found` that of the store without a bug.
    """

    path: Path
    operations: int
    bug: str
    caught: AnyFailure | None
    found: AnyFailure | None

    def outcome(self, module_of: Callable[[str], str]) -> tuple[Outcome, str]:
        """Write the module that `module_of` makes for a symptom; return outcome and text.

        Refuses a case that does not catch its planted bug, and a place that cannot be written.
        """
        if self.bug and self.caught is None:
            refuse(f"the case does not catch {self.bug} any more, so there is nothing to keep")
        shown, found = self.found or self.caught, self.found
        try:
            write_whole(self.path, module_of("a case that was broken once" if shown is None else shown.broken.sentence))
        except OSError as error:
            refuse(f"cannot write {self.path}: {error.strerror}; name another --directory")
        verdict = "holds" if found is None else "broken"
        findings = [] if found is None else [found.finding().document()]
        outcome = Outcome("promote", verdict, {"operations": self.operations}, findings=findings)
        outcome.extra = {"test": str(self.path)}
        state = "the store holds now" if found is None else f"it fails until the store is fixed: {found.broken}"
        catches = f", and catches {self.bug}" if self.bug else ""
        return outcome, f"{self.path}\n{state}{catches}\n\nverdict: {verdict}"


def promote_process_case(kind: ProcessKind, given: GivenCase, *, path: Path) -> tuple[Outcome, str]:
    """Write a case as a test module, and run it once.

    Raises UnknownBug; refuses a case that cannot be read.
    """
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.render.counterexample import process_regression_module

    case, program = readable_case(kind, given), kind.program()
    bug = case.settings.bug
    with choose_tracker("auto") as tracker:
        caught = program.replay(case, tracker=tracker) if bug else None
        found = program.replay(case.with_bug(""), tracker=tracker)
    promoted = Promoted(path, len(case.operations), bug, caught, found)
    return promoted.outcome(lambda symptom: process_regression_module(case, symptom, replay=kind.replay))
