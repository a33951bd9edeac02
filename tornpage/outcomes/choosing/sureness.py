"""Describe how sure a choice is: noise of the calibration, seeds, validation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tornpage.cli.document import refuse
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.sim.choosing.choice import Choice
    from tornpage.sim.device.device import DeviceTimes

__all__ = ["Validated", "read_validation", "sentences"]

CASES = {"sync": "group commit", "timed": "timed", "woken": "woken", "pool": "pool"}
"""How the names of the held-out cases of each kind of policy begin (`bench/validation/cases.py`)."""


@dataclass(frozen=True, slots=True)
class Validated:
    """The scores of one kind of policy by `tornpage sim validate`.

    Errors are signed shares of the measured value.
    """

    cases: int
    missed: int
    p99_lowest: float
    """The error of the prediction that was too low by most."""
    p99_worst: float
    at_risk_lowest: float
    floor_p99: float
    """The greatest difference of the halves of the measurement at p99."""


def read_validation(directory: str) -> Mapping[str, Validated]:
    """Return the scores of `tornpage sim validate --out` by kind; refuses others."""
    path = Path(directory) / "scores.jsonl"
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found = {kind: [row for row in rows if row["case"].startswith(begin)] for kind, begin in CASES.items()}
        return {kind: _validated(rows) for kind, rows in found.items() if rows}
    except OSError as error:
        refuse(
            f"cannot read {path}: {error.strerror or error}; `tornpage sim validate DIR --out {directory}` writes it"
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        refuse(f"{path} has no scores of `tornpage sim validate --out`; name the directory of one")


def _validated(rows: Sequence[Mapping[str, float]]) -> Validated:
    errors, floors = [row["error_p99"] for row in rows], [abs(row["floor_p99"]) for row in rows]
    return Validated(
        cases=len(rows),
        missed=sum(not row["passes"] for row in rows),
        p99_lowest=min(errors),
        p99_worst=max(errors, key=abs),
        at_risk_lowest=min(row["error_at_risk"] for row in rows),
        floor_p99=max(floors),
    )


def sentences(
    choice: "Choice",
    device: "DeviceTimes",
    noise: Mapping[str, float | int] | None,
    known: Mapping[str, Validated] | None,
    *,
    is_preset: bool,
) -> list[str]:
    """Return what is known of the error of a choice, one fact a sentence."""
    from tornpage.sim.choosing.candidates import kind_of

    best = choice.best
    kind = kind_of(best.policy)
    said = [
        f"{counted(best.seeds, 'seed')} gave a put p99 of {best.put_p99_best_us / 1e3:.3g} to "
        f"{best.put_p99_us / 1e3:.3g} ms; "
        "the budget is compared with the worst seed."
    ]
    if is_preset or noise is None:
        said.append(
            f"{device.name} is a preset: another disk has other times. `--here DIR` measures the disk of a directory."
        )
    else:
        said.append(
            f"Even and odd rounds of the calibration differ at the p99 of a sync by up to {noise['noise_p99']:.0%} "
            f"(p50 {noise['noise_p50']:.0%}); no prediction is more exact."
        )
        waits = "A put that waits for such a sync takes as long" if kind == "sync" else "Such a sync lengthens the loss"
        said.append(
            f"The longest of {counted(noise['syncs'], 'measured sync')} took {noise['longest_sync_ms']:.3g} ms. "
            f"{waits}; rare "
            "syncs of that length may be missing in the simulated load."
        )
    if known is None:
        said.append(
            "The error of the prediction on this disk is unknown: `tornpage sim validate DIR --out V` measures it, and "
            "`--validation V` reads it here."
        )
    elif kind not in known:
        said.append(f"The validation has no case of this kind of policy ({kind}).")
    else:
        found = known[kind]
        said.append(
            f"On {counted(found.cases, 'validated case')} of this kind ({CASES[kind]}) the predicted p99 was off "
            "by up to "
            f"{found.p99_worst:+.0%} (noise floor {found.floor_p99:.0%}); {found.missed} of them missed. The "
            f"predicted messages at risk were too low by up to {max(-found.at_risk_lowest, 0.0):.0%}."
        )
        if found.p99_lowest <= -1:
            return said
        corrected = best.put_p99_us / (1 + min(found.p99_lowest, 0.0))
        fits = "meets" if corrected <= choice.budget.put_p99_us else "does not meet"
        said.append(f"With the largest error to the unsafe side the p99 is {corrected / 1e3:.3g} ms, which {fits} the "
                    "budget.")  # fmt: skip
    if best.policy.replica is not None:
        said.append(
            f"The link ({best.policy.replica.link.name}) was given and not measured. The slave has a disk like that of "
            "the master. A power loss of both machines is not included."
        )
    if not best.rolls:
        said.append("No log file was filled during the simulated load, so stalls at file rolls are not included.")
    return said
