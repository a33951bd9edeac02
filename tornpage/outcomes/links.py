"""Run `tornpage sim link`: measure and predict a pair, and print verdict and table."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.bench.link.validation import LinkRound, LinkValidation

__all__ = ["link_outcome"]

FREE_BYTES_MIN = 1 << 30


def link_outcome(directory: str | None, *, seconds: float, out: str | None, seed: int) -> tuple[Outcome, str]:
    """Measure and predict for about `seconds`, at least two rounds; return outcome and table.

    An interrupt ends the run with the rounds it has.
    """
    from tornpage.bench.calibration.driven import real_time
    from tornpage.bench.link.validation import ROUNDS_MIN, measure_round
    from tornpage.impl.errors import StoreError

    target = None if out is None else prepare(out)
    rounds: list[LinkRound] = []
    interrupted, why = False, ""
    slice_s = min(3.0, max(0.3, seconds / 40))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tornpage-link-", dir=directory) as place,
            real_time() as is_first,
            steps_progress("measuring", total=max(ROUNDS_MIN, round(seconds / (slice_s * 10))), unit="rounds") as show,
        ):
            until = monotonic() + seconds
            while len(rounds) < ROUNDS_MIN or monotonic() < until:
                show(f"round {len(rounds) + 1}")
                rounds.append(measure_round(Path(place), number=len(rounds), seconds=slice_s, seed=seed))
    except KeyboardInterrupt:
        interrupted, is_first = True, True
    except TimeoutError as error:
        why, is_first = str(error), True
    except (OSError, StoreError) as error:
        refuse(f"cannot measure in {directory or 'a temporary directory'}: {error}; name another DIRECTORY")
    outcome, text = _judged(rounds, why, seed=seed, is_first=is_first)
    outcome.interrupted = interrupted
    if target is not None:
        write_run(target, outcome)
    return outcome, text


def _judged(rounds: "list[LinkRound]", why: str, *, seed: int, is_first: bool) -> tuple[Outcome, str]:
    """Predict what was measured, and return the outcome and its table."""
    from tornpage.bench.link.validation import validate_link

    findings = [] if is_first else [_note("not-first", "not allowed to run before other programs: expect a high floor")]
    try:
        validation = validate_link(rounds, seed=seed)
    except ValueError as error:
        findings.append(_note("too-few-rounds", why or str(error)) | {"severity": "unknown"})
        return Outcome("sim link", "unknown", {"rounds": len(rounds)}, findings=findings, seed=seed), why or str(error)
    named = [name for name in validation.__slots__ if name != "scores"]
    figures: dict[str, float | int] = {name: getattr(validation, name) for name in named}
    figures |= {
        "rounds": len(rounds),
        "loads": len(validation.scores),
        "near": sum(each.is_near for each in validation.scores),
    }
    if validation.verdict == "unknown":
        findings.append(_note("noisy", "the rounds differ too much among themselves; measure on a quieter machine"))
    rows = [asdict(each) for each in validation.scores]
    outcome = Outcome(
        "sim link", validation.verdict, figures, list(figures), findings, seed=seed, extra={"rows": rows}
    )  # fmt: skip
    return outcome, _text(validation, len(rounds))


def _note(code: str, sentence: str) -> dict[str, Any]:
    return {"code": code, "severity": "note", "sentence": sentence}


def _text(found: "LinkValidation", rounds: int) -> str:
    lines = [
        f"loopback: latency {found.latency_p50_us:.1f} us, {found.bytes_per_s / 1e6:,.0f} MB/s, "
        f"{counted(rounds, 'round')}",
        f"a turn of the threads: {found.slow_turn_p50_us:.0f} us at 50/s, {found.fast_turn_p50_us:.0f} us at 400/s",
        f"a round of appends: {found.append_p50_us:.0f} us, with its sync {found.durable_append_p50_us:.0f} us",
        "",
        f"{'predicted load':<16}{'puts':>8}{'p50 us':>9}{'p90 us':>9}{'p99 us':>9}{'p50 %':>14}{'p90 %':>14}{'KS':>7}",
    ]
    for each in found.scores:
        error, floor = each.error, each.floor
        lines.append(
            f"{each.name:<16}{each.messages:>8,}{each.p50_us:>9,.0f}{each.p90_us:>9,.0f}{each.p99_us:>9,.0f}"
            f"{f'{100 * error.p50:+.0f} ({100 * floor.p50:.0f})':>14}"
            f"{f'{100 * error.p90:+.0f} ({100 * floor.p90:.0f})':>14}"
            f"{error.ks:>7.2f}{'' if each.is_near else '  not near'}"
        )
    lines += [
        "",
        "errors of the prediction; in brackets what random halves of the rounds differ by in one of ten splits",
        f"verdict: {found.verdict}",
    ]
    return "\n".join(lines)
