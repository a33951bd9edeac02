"""An exhaustive run as a document and as text, and what `tornpage exhaust` is asked turned into a plan."""

from typing import Any

from properties.contract import HarnessError
from properties.explore.exhaustive.explored import Plan
from properties.explore.exhaustive.kept import Kept, OtherPlan
from properties.explore.exhaustive.run import ExhaustResult, canary_bug, run_exhaust
from properties.explore.exhaustive.statement import figures_of, statement_of
from properties.program.case import describe
from tornpage.document import Outcome, refuse, say
from tornpage.failures import failure_finding, failure_text, save_case
from tornpage.progress import states_progress
from tornpage.run_directory import prepare

__all__ = ["exhaust_outcome", "outcome_of", "text_of"]


def exhaust_outcome(plan: Plan, *, workers: int, seconds: float | None, out: str | None) -> tuple[Outcome, str]:
    """Run a plan; return its outcome and its text. What is done is kept in `out`, and taken from there."""
    say(_command(plan, workers=workers, seconds=seconds))
    try:
        kept = None if out is None else Kept(prepare(out), plan)
        with states_progress("exhausting", total=seconds, unit="seconds") as show:
            result = run_exhaust(
                plan,
                workers=workers,
                seconds=seconds,
                kept=kept,
                progress=lambda states, spent: show(states // 64 * 64, spent),
            )
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("exhaust", "harness", {}, findings=[finding]), f"the harness is at fault: {error}"
    except OtherPlan as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot keep what is done in {error.filename or out}: {error.strerror}; name another --out directory")
    return outcome_of(result, out=out), text_of(result)


def _command(plan: Plan, *, workers: int, seconds: float | None) -> str:
    words = [f"tornpage exhaust --ops {plan.ops} --facts {plan.facts} --disk {plan.disk} --mode {plan.mode}"]
    words += [f"--file-bytes {plan.file_bytes} --check-ops {plan.check_ops} --check-facts {plan.check_facts}"]
    words += [f"--letters {','.join(plan.letter_names)}"] if plan.letter_names else []
    words += [f"--recovery {plan.recovery_facts}"] if plan.recovery_facts >= 0 else []
    words += [f"--bug {plan.bug}"] if plan.bug else []
    words += [f"--workers {workers}"] if workers > 1 else []
    words += [f"--seconds {seconds:g}"] if seconds is not None else []
    return " ".join(words)


def outcome_of(result: ExhaustResult, *, out: str | None) -> Outcome:
    """Return the outcome of a run, writing the case file if there is a place for it."""
    figures: dict[str, float | int] = {
        **figures_of(result.tally),
        "seconds": result.seconds,
        "states_per_s": result.tally.states_per_s,
        "workloads_kept": result.tally.again,
    }
    findings: list[dict[str, Any]] = []
    if result.failure is not None:
        findings.append(failure_finding(result.failure))
        case_file = None if out is None else save_case(result.failure, out)
        if case_file is not None:
            findings[-1]["case_file"] = str(case_file)
    elif not (result.canary or result.is_cut):
        sentence = f"the planted bug {canary_bug(result.tally.plan.disk)} was not caught"
        findings.append({"code": "no-canary", "severity": "vacuous", "sentence": sentence})
    alphabet = [
        {"letter": letter.name, "sentence": letter.sentence, "operations": [*map(describe, letter.operations)]}
        for letter in result.tally.plan.letters
    ]
    bound = {"statement": statement_of(result.tally), "result_hash": result.result_hash, "alphabet": alphabet}
    return Outcome(
        "exhaust",
        result.verdict.value,
        figures,
        ["seconds", "states_per_s", "workloads_kept"],
        findings,
        extra=bound,
        interrupted=result.interrupted,
    )


def text_of(result: ExhaustResult) -> str:
    """Return a run for people: the failure, or the statement and what it rests on."""
    states = sum(each.states for each in result.tally.explored)
    kept = f", {result.tally.again:,} results kept from an earlier run" if result.tally.again else ""
    spent = f"{states:,} crash states in {result.seconds:.1f} s, {result.tally.states_per_s:,.0f} a second{kept}"
    if result.failure is not None:
        before = f"{spent}; before it: {statement_of(result.tally)}"
        return f"{failure_text(result.failure)}\n\n{before}\n\nverdict: broken"
    canary = f"{result.canary} caught" if result.canary else "no planted bug was caught"
    stopped = result.is_cut
    lines = [
        statement_of(result.tally),
        "",
        spent,
        f"result hash {result.result_hash}",
        f"canary: {'not tried' if stopped else canary}",
        f"verdict: {'interrupted' if result.interrupted else result.verdict.value}",
    ]
    return "\n".join(lines)
