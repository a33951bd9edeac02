"""What every command says: one JSON document on standard output, or text for people; progress on standard error.

The document's keys are an interface: schema, command, verdict, figures, timings, findings, seed, version. `timings`
lists the figures that are measured; without them equal seeds give equal documents.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tornpage import __version__

__all__ = ["SCHEMA", "Outcome", "at_fault", "emit", "not_printed", "refuse", "say", "warn"]

SCHEMA = 1


@dataclass
class Outcome:
    """One command's result. `verdict` is None for commands that judge nothing.

    `extra` joins the document as it is; `tables` go to the run directory instead, by name. `unwritten` says that a
    file that was asked for could not be written; the results are on standard output all the same.
    """

    command: str
    verdict: str | None
    figures: Mapping[str, float | int]
    timings: Sequence[str] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unwritten: bool = False

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "schema": SCHEMA,
            "command": self.command,
            "verdict": self.verdict,
            "figures": dict(sorted(self.figures.items())),
            "timings": sorted(self.timings),
            "findings": list(self.findings),
            "seed": self.seed,
            "version": __version__,
            **self.extra,
        }

    @property
    def exit_code(self) -> int:
        """0 holds or nothing to judge, 1 broken, 3 vacuous or unknown, 4 harness, 130 interrupted."""
        if self.interrupted:
            return 130
        earned = {None: 0, "holds": 0, "broken": 1, "vacuous": 3, "unknown": 3, "harness": 4}[self.verdict]
        return earned or (2 if self.unwritten else 0)


def at_fault(command: str, error: Exception, *, seed: int | None = None) -> tuple[Outcome, str]:
    """Return the outcome and the text of a command that our own tooling made fail."""
    from tornpage.properties.findings import Finding

    finding = Finding("harness", "harness", str(error)).document()
    return Outcome(command, "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"


def emit(outcome: Outcome, *, as_json: bool, text: str) -> NoReturn:
    """Print the outcome and leave with its exit code. A closed pipe is no error; a full disk is reported."""
    try:
        print(json.dumps(outcome.document(), indent=2) if as_json else text, flush=True)
    except OSError as error:
        outcome.unwritten = not_printed(error)
    if outcome.interrupted:
        say("interrupted")
    sys.exit(outcome.exit_code)


def not_printed(error: OSError) -> bool:
    """Stop printing; report why and return True, unless the reader closed the pipe, which is no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still in the buffer goes nowhere, at exit neither
    if isinstance(error, BrokenPipeError):
        return False
    warn(f"the result was not printed: {error.strerror or error}; give standard output room")
    return True


def say(line: str) -> None:
    """Print a line on standard error; ignore a closed standard error."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Say in one line on standard error what went wrong on the way; the command goes on.

    Names of files and settings are in it, so that nothing that steers a terminal gets through.
    """
    from tornpage.reports.text import visible

    say(f"tornpage: {visible(message)}")


def refuse(message: str) -> NoReturn:
    """Say in one line what cannot be done, and leave with the exit code of misuse."""
    warn(message)
    sys.exit(2)
