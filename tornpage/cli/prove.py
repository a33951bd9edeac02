"""`tornpage prove`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, say, warn
from tornpage.cli.progress import step_lines
from tornpage.outcomes.proving import Step
from tornpage.run.directory import prepare, write_run

__all__ = ["command"]

_PAGES = 3
"""Counterexamples, including the canary, that get a page."""


@click.command("prove")
@click.option(
    "--out", type=click.Path(file_okay=False), default="out/prove", show_default=True, help="The run directory."
)
@options.seed_option
@options.json_option
def command(seed: int, out: str, as_json: bool) -> None:
    """Run every kind of check once, briefly (1.5 minutes), and write a report.

    Real kills, lockstep runs with the model, a crash campaign, a canary, logs of tornpage and RocketMQ read back, a
    simulation, an audit, and a campaign on Spark. Ends with a summary table, the verdict, and the path of the page.

    \b
    tornpage prove
    tornpage prove --seed 7 --out out/prove-7
    """
    from tornpage.outcomes.proving import STEPS, check_beside, combined, usual_s

    directory = prepare(out)
    started = perf_counter()
    steps: list[Step] = []
    interrupted = False
    try:
        say(f"proving takes about {sum(usual_s()):.0f} s on two idle cores")
        tell = step_lines("proving", usual_s())
        first, *others = STEPS
        interrupted = _carry_out(first, seed, steps, tell)
        if not interrupted:
            with check_beside(seed) as check:
                for run in (*others, check):
                    if _carry_out(run, seed, steps, tell):
                        interrupted = True
                        break
    except KeyboardInterrupt:
        interrupted = True
    outcome = combined(steps, seed=seed, seconds=perf_counter() - started, interrupted=interrupted)
    page = _report(directory, outcome)
    outcome.extra = {"page": page}
    emit(outcome, as_json=as_json, text=f"{_text(steps, outcome)}\n\n{page}".rstrip())


def _carry_out(run: Callable[[int], Step], seed: int, steps: list[Step], tell: Callable[[str], None]) -> bool:
    """Run a step, keep it with its time, and return whether it was interrupted."""
    tell(run.__name__.replace("_", " "))
    begin = perf_counter()
    step = run(seed)
    steps.append(replace(step, seconds=perf_counter() - begin))
    return step.outcome.interrupted


def _report(directory: Path, outcome: Outcome) -> str:
    """Write the run and its page; return the path of the page, or "" if a write fails."""
    from tornpage.outcomes.counterexamples import write_case_pages
    from tornpage.reports.errors import ReportError
    from tornpage.reports.pages.run_page import build_report

    write_run(directory, outcome)
    if outcome.unwritten:
        return ""
    try:
        write_case_pages(directory, pages_max=_PAGES)
        return str(build_report(directory))
    except (OSError, ReportError) as error:
        outcome.unwritten = True
        warn(f"page not written: {error}")
        return ""


def _text(steps: list[Step], outcome: Outcome) -> str:
    lines = [f"{step.name:<16}{step.outcome.verdict or 'skipped':<10}{step.sentence}" for step in steps]
    for finding in outcome.findings:
        lines.append(f"  {finding['step']}: {finding.get('sentence') or finding.get('message', '')}")
        if "token" in finding:
            lines.append(f"  tornpage replay {finding['token']}")
    verdict = "interrupted" if outcome.interrupted else outcome.verdict
    return "\n".join([*lines, "", f"verdict: {verdict} ({outcome.figures['seconds']:.0f} s, seed {outcome.seed})"])
