"""Print the result of a command.

A JSON document or text goes to standard output, progress to standard error.
The keys of the document are an interface: schema, command, verdict, figures, timings, findings, seed, version.
`timings` lists the measured figures; without them equal seeds give equal documents.
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
    """The result of a command. `verdict` is None for commands without a verdict.

    `extra` is added to the document unchanged. `tables` go to the run directory instead, by name. `unwritten` means
    that a requested file could not be written; the results are on standard output nevertheless.
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
    """Return the outcome and the text of a command whose harness failed."""
    from tornpage.properties.findings import Finding

    finding = Finding("harness", "harness", str(error)).document()
    return Outcome(command, "harness", {}, findings=[finding], seed=seed), f"the harness failed: {error}"


def emit(outcome: Outcome, *, as_json: bool, text: str) -> NoReturn:
    """Print the outcome and exit with its code.

    A closed pipe is no error; a full disk is reported.
    """
    try:
        print(json.dumps(outcome.document(), indent=2) if as_json else text, flush=True)
    except OSError as error:
        outcome.unwritten = not_printed(error)
    if outcome.interrupted:
        say("interrupted")
    sys.exit(outcome.exit_code)


def not_printed(error: OSError) -> bool:
    """Stop printing. Return False for a closed pipe, else report the error and return True."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # drops the buffered output, also at exit
    if isinstance(error, BrokenPipeError):
        return False
    warn(f"the result was not printed: {error.strerror or error}; make room for standard output")
    return True


def say(line: str) -> None:
    """Print a line on standard error; ignore a closed standard error."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Print one line about a problem on standard error; the command continues.

    Control characters of terminals are escaped, since the line can contain names of files and settings.
    """
    from tornpage.reports.text import visible

    say(f"tornpage: {visible(message)}")


def refuse(message: str) -> NoReturn:
    """Print one line about a misuse, and exit with its code."""
    warn(message)
    sys.exit(2)
