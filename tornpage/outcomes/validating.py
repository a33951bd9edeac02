"""Run `tornpage sim validate`: measure rounds, predict, and print verdict and table."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse, warn
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted
from tornpage.run.directory import prepare, temporary_directory, write_run

if TYPE_CHECKING:
    from tornpage.bench.validation.cases import Cases
    from tornpage.bench.validation.rounds import Round
    from tornpage.bench.validation.validation import Validation

__all__ = ["validate_outcome"]

FREE_BYTES_MIN = 1 << 30
SECONDS_PER_SLICE = 0.6


def validate_outcome(
    directory: str | None,
    *,
    seconds: float,
    out: str | None,
    seed: int,
    causes: bool = False,
    cases: "Sequence[Cases] | None" = None,
) -> tuple[Outcome, str]:
    """Measure and predict for about `seconds`, at least two rounds; return outcome and table.

    An interrupt ends the run with the rounds it has. `out` then has the rows of these rounds. With `causes` each error
    is divided among its causes. `cases`, calibrating and held out, are for tests.
    """
    from tornpage.bench.calibration.driven import real_time
    from tornpage.impl.errors import StoreError
    from tornpage.properties.contract import HarnessError

    place = _usable(directory)
    target = None if out is None else prepare(out)
    rounds: list[Round] = []
    interrupted, fault = False, ""
    with real_time() as is_first:
        try:
            _measure(place, seconds, seed, rounds, cases)
        except KeyboardInterrupt:
            interrupted = True
        except StoreError as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"cannot measure in {place}: {error.strerror or error}; name another DIRECTORY")
        except HarnessError as error:
            fault = str(error)
    if fault:
        outcome, text = _at_fault(fault, seed)
    else:
        outcome, text = _judged(rounds, place, target, seed=seed, is_first=is_first, causes=causes)
    outcome.interrupted = interrupted
    if target is not None:
        write_run(target, outcome)
    return outcome, text


def _judged(
    rounds: "Sequence[Round]", place: str, target: Path | None, *, seed: int, is_first: bool, causes: bool
) -> tuple[Outcome, str]:
    """Predict what was measured, and return the outcome and its table; rows go to `target`."""
    from tornpage.bench.calibration.snapshot import machine_snapshot
    from tornpage.bench.validation.causes import causes_of
    from tornpage.bench.validation.rows import cause_rows
    from tornpage.bench.validation.validation import ROUNDS_MIN, validate
    from tornpage.properties.contract import HarnessError
    from tornpage.sim.device.sync_table import TooFewSamples

    findings = [] if is_first else [_note("not-first", "not allowed to run before other programs: expect a high floor")]
    if len(rounds) < ROUNDS_MIN:
        few = _note("too-few-rounds", f"{counted(len(rounds), 'whole round')} measured; a floor needs {ROUNDS_MIN}")
        return _unknown(few, findings, rounds, seed)
    snapshot = machine_snapshot(place)
    try:
        validation = validate(rounds, snapshot)
        parts = cause_rows(causes_of(validation, rounds, snapshot)) if causes else []
    except HarnessError as error:
        return _at_fault(str(error), seed)
    except TooFewSamples as error:
        # seldom a matter of time: each round has to tell what it is predicted from
        why = "syncs of more than some 10 ms, or a machine that is too busy, leave nothing of it to see"
        return _unknown(
            _note("too-few-samples", f"a round does not tell enough: {error}; {why}"), findings, rounds, seed
        )
    if validation.is_noisy:
        findings.append(
            _note("noisy", "the calibrating loads differ too much from round to round: the verdict is unknown")
        )
    outcome = _outcome(validation, findings, seed, place, parts)
    if target is not None:
        _write(target, validation, rounds, outcome)
    return outcome, "\n".join([_text(validation, outcome, is_first), *_causes_text(parts)])


def _unknown(
    why: dict[str, str], findings: list[dict[str, str]], rounds: "Sequence[Round]", seed: int
) -> tuple[Outcome, str]:
    figures = {"rounds": len(rounds)}
    return Outcome("sim validate", "unknown", figures, list(figures), [*findings, why], seed=seed), why["sentence"]


def _usable(directory: str | None) -> str:
    """Return the directory to measure in; refuses unusable and meaningless ones."""
    from tornpage.bench.figures import describe_machine

    named = temporary_directory("name a DIRECTORY on the disk to be measured") if directory is None else directory
    if not os.path.isdir(named):
        refuse(f"{named!r} is no directory; name one that exists, on the disk to be measured")
    place = os.path.abspath(named)
    if not os.access(place, os.W_OK | os.X_OK):
        refuse(f"{place} cannot be written to; name another DIRECTORY, on the disk to be measured")
    machine = describe_machine(place)
    if machine.is_memory_disk:
        refuse(f"{place} lives in memory ({machine.file_system}), where a sync takes no time; name one on a disk")
    found = os.statvfs(place)
    if found.f_bavail * found.f_frsize < FREE_BYTES_MIN:
        refuse(f"{place} has less than 1 GiB free; free some, or name a DIRECTORY on another disk")
    return place


def _measure(place: str, seconds: float, seed: int, rounds: "list[Round]", cases: "Sequence[Cases] | None") -> None:
    """Add rounds until the time is over; the last round is completed."""
    from tornpage.bench.validation.cases import CALIBRATING, HELD_OUT
    from tornpage.bench.validation.rounds import SLICES, rounds_of
    from tornpage.bench.validation.validation import ROUNDS_MIN

    expected = max(round(seconds / SECONDS_PER_SLICE / SLICES), ROUNDS_MIN) * SLICES
    begun = monotonic()
    with steps_progress("validating", total=expected) as show:
        calibrating, held_out = cases or (CALIBRATING, HELD_OUT)
        for one in rounds_of(place, seed=seed, calibrating=calibrating, held_out=held_out, progress=show):
            rounds.append(one)
            if len(rounds) >= ROUNDS_MIN and monotonic() - begun >= seconds:
                return


def _note(code: str, sentence: str) -> dict[str, str]:
    return {"code": code, "severity": "note", "sentence": sentence}


def _at_fault(sentence: str, seed: int) -> tuple[Outcome, str]:
    finding = {"code": "harness", "severity": "harness", "sentence": sentence}
    return Outcome("sim validate", "harness", {}, findings=[finding], seed=seed), f"the harness failed: {sentence}"


def _outcome(
    validation: "Validation", findings: list[dict[str, str]], seed: int, place: str, causes: list[dict[str, Any]]
) -> Outcome:
    from tornpage.bench.validation.rows import score_rows

    scores = score_rows(validation)
    figures: dict[str, float | int] = {
        "rounds": validation.rounds,
        "held_out": len(scores),
        "passed": validation.passed,
        "passed_without_floor": sum(row["passes_without_floor"] for row in scores),
        "tau_p50": validation.tau_p50,
        "tau_p50_floor": validation.tau_p50_floor,
        "tau_at_risk": validation.tau_at_risk,
        "tau_at_risk_floor": validation.tau_at_risk_floor,
    }
    for name in ("p50", "p90", "p99"):
        figures[f"worst_error_{name}"] = max(abs(row[f"error_{name}"]) for row in scores)
        figures[f"worst_floor_{name}"] = max(abs(row[f"floor_{name}"]) for row in scores)
    findings += [
        _note("missed", f"the prediction of {case.name!r} is beyond bound and floor at {' and '.join(case.missed)}")
        for case in validation.cases
        if case.missed
    ]
    timings = [name for name in figures if name != "held_out"]
    extra = {"directory": place, "scores": scores, "causes": causes}
    return Outcome("sim validate", validation.verdict, figures, timings, findings, seed=seed, extra=extra)


def _write(target: Path, validation: "Validation", rounds: "Sequence[Round]", outcome: Outcome) -> None:
    from tornpage.bench.validation.rows import quantile_rows, score_rows, slice_rows

    tables: dict[str, Iterable[dict[str, Any]]] = {
        "scores": score_rows(validation),
        "quantiles": quantile_rows(validation),
        "slices": slice_rows(rounds),
        "causes": outcome.extra["causes"],
    }
    try:
        for name, rows in tables.items():
            with (target / f"{name}.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
    except OSError as error:
        outcome.unwritten = True
        warn(f"rows not written to {target}: {error.strerror or error}; name another --out directory")


def _text(validation: "Validation", outcome: Outcome, is_first: bool) -> str:
    head = f"{'held out':<34}{'messages':>9}{'p50 us':>9}" + "".join(f"{name:>19}" for name in _COLUMNS)
    lines = [
        f"{counted(validation.rounds, 'round')} at {outcome.extra['directory']}, "
        f"{'before other programs' if is_first else 'like any other program'}",
        "error of the prediction (floor: what random halves of the measurement differ by in one of ten splits)",
        "",
        head,
    ]
    for case, row in zip(validation.cases, outcome.extra["scores"], strict=True):
        cells = "".join(f"{_cell(case, name):>19}" for name in _COLUMNS)
        mark = "" if case.passes else "  missed"
        lines.append(f"{case.name:<34}{case.messages:>9,}{row['measured_p50_us']:>9,.0f}{cells}{mark}")
    lines += [
        "",
        f"{validation.passed} of {len(validation.cases)} pass; ranks agree by tau {validation.tau_p50:.2f} at p50 "
        f"(floor {validation.tau_p50_floor:.2f}), {validation.tau_at_risk:.2f} at risk "
        f"(floor {validation.tau_at_risk_floor:.2f}): {validation.verdict}",
    ]
    return "\n".join([*lines, *(finding["sentence"] for finding in outcome.findings)])


_COLUMNS = ("p50", "p90", "p99", "ks", "flushes", "at_risk")


def _cell(case: Any, name: str) -> str:
    error, floor = getattr(case.error, name), getattr(case.floor, name)
    return f"{error:.3f} ({floor:.3f})" if name == "ks" else f"{error:+.1%} ({floor:.1%})"


def _causes_text(rows: "Sequence[dict[str, Any]]") -> list[str]:
    """Return the lines of the table by cause; none without rows."""
    if not rows:
        return []
    heads = [f"{name} {figure}" for figure in ("p50", "p99") for name in ("error", "puts", "stalls", "syncs", "rest")]
    lines = ["", "parts of the error by cause", "", f"{'held out':<34}" + "".join(f"{head:>12}" for head in heads)]
    for row in rows:
        cells = (row[head.replace(" ", "_")] for head in heads)
        lines.append(f"{row['case']:<34}" + "".join(f"{'-' if each is None else f'{each:+.1%}':>12}" for each in cells))
    return lines
