"""`tornpage prove`."""

import sys
from time import perf_counter

import click

from tornpage import options
from tornpage.document import emit

__all__ = ["command"]


@click.command("prove")
@options.seed_option
@options.json_option
def command(seed: int, as_json: bool) -> None:
    """The main job: real kills, model check, crash exploration, canary, written and foreign logs read back.

    Ends with a summary table and one verdict.
    """
    from tornpage.proving import STEPS, Step, combined

    started = perf_counter()
    steps: list[Step] = []
    interrupted = False
    try:
        for run in STEPS:
            name = run.__name__.replace("_", " ")
            if sys.stderr.isatty():
                print(f"{name} …", file=sys.stderr, flush=True)
            steps.append(run(seed))
            interrupted = steps[-1].outcome.interrupted
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    outcome = combined(steps, seed=seed, seconds=perf_counter() - started, interrupted=interrupted)
    lines = [f"{step.name:<16}{step.outcome.verdict or '-':<10}{step.sentence}" for step in steps]
    for finding in outcome.findings:
        lines.append(f"  {finding['step']}: {finding.get('sentence') or finding.get('message', '')}")
        if "token" in finding:
            lines.append(f"  tornpage replay {finding['token']}")
    verdict = "interrupted" if interrupted else outcome.verdict
    text = "\n".join([*lines, "", f"verdict: {verdict} ({outcome.figures['seconds']:.0f} s, seed {seed})"])
    emit(outcome, as_json=as_json, text=text)
