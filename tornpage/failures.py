"""How a failure is told: one sentence, the smallest program, what was lost, why that is legal, how to run it again."""

import json
from pathlib import Path
from typing import Any

from properties.case import Crash, describe
from properties.replay import Failure
from tornpage.document import warn

__all__ = ["failure_finding", "failure_text", "save_case"]


def failure_finding(failure: Failure) -> dict[str, Any]:
    """Return a failure as a finding of the JSON document."""
    broken = failure.broken
    return {
        "code": f"contract-{broken.contract}",
        "severity": "broken",
        "sentence": broken.sentence,
        "expected": broken.expected,
        "found": broken.found,
        "program": [describe(operation) for operation in failure.case.operations],
        "settings": failure.case.document()["settings"],
        "token": failure.case.token(),
    }


def failure_text(failure: Failure) -> str:
    """Return a failure for people."""
    broken, case = failure.broken, failure.case
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", ""]
    if broken.expected or broken.found:
        lines += [f"  expected  {broken.expected}", f"  found     {broken.found}", ""]
    settings = ", ".join(f"{name}={value}" for name, value in case.document()["settings"].items()) or "defaults"
    lines += [f"  settings  {settings}", "  program"]
    lines += [f"    {number}. {describe(operation)}" for number, operation in enumerate(case.operations, 1)]
    crashes = [operation for operation in case.operations if isinstance(operation, Crash) and not operation.kill]
    if crashes:
        survived = ", ".join(f"{name} (version {choice})" for name, choice in crashes[-1].survived.items())
        lines += ["", f"  of what was not synced, this survived the last power loss: {survived or 'nothing'}"]
    return "\n".join([*lines, "", "  run it again:", f"    tornpage replay {case.token()}"])


def save_case(failure: Failure, out: str) -> Path | None:
    """Write the case file and return its path; None, and a line that says why, when the disk refuses.

    The token is printed in any case, so nothing is lost.
    """
    directory = Path(out)
    path = directory / f"case-{failure.case.token()[4:12]}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(failure.case.document(), indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {directory}: {error.strerror}; the token says the same")
        return None
    return path
