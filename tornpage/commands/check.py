"""`tornpage check`."""

import click

from tornpage import options
from tornpage.document import Outcome, emit

__all__ = ["check_outcome", "command"]

HUNT_EXAMPLES = 10_000
"""A planted bug is there to be found."""


@click.command("check")
@click.option(
    "--examples",
    type=click.IntRange(min=1),
    default=None,
    help=f"Runs of the machines (default: the profile's; with --bug up to {HUNT_EXAMPLES:,}, until it is found).",
)
@click.option(
    "--machine",
    type=click.Choice(["all", "commit-log", "put", "flush", "queue", "retention", "delay", "consumer"]),
    default="all",
    show_default=True,
    help="Which machine; all take turns.",
)
@click.option("--profile", type=click.Choice(["quick", "deep"]), default="quick", show_default=True)
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
def command(
    examples: int | None, machine: str, profile: str, bug: str, seed: int, out: str | None, as_json: bool
) -> None:
    """Drive store and model with Hypothesis machines and compare every answer.

    \b
    tornpage check --seed 3
    tornpage check --machine put --bug RMQ-B76   (must be broken)
    """
    machines = () if machine == "all" else (machine,)
    outcome, text = check_outcome(examples, profile=profile, bug=bug, seed=seed, out=out, machines=machines)
    emit(outcome, as_json=as_json, text=text)


def check_outcome(
    examples: int | None, *, profile: str, bug: str, seed: int, out: str | None, machines: tuple[str, ...] = ()
) -> tuple[Outcome, str]:
    """Run the machines named, or all; return their outcome and its text."""
    from time import perf_counter

    from properties.check import MACHINES, PROFILES, check
    from properties.recorder.dirty import choose_tracker
    from properties.verdict import HarnessError
    from tornpage.failures import failure_finding, failure_text, save_case

    count, steps = PROFILES[profile]
    count = examples or (HUNT_EXAMPLES if bug else count)
    started = perf_counter()
    try:
        with choose_tracker("auto") as tracker, options.operations_progress("checking") as show:
            result = check(
                bug=bug,
                examples=count,
                steps=steps,
                start_seed=seed,
                tracker=tracker,
                machines=machines or tuple(MACHINES),
                progress=show,
            )
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("check", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    figures: dict[str, float | int] = {"examples": count, "seconds": perf_counter() - started}
    figures |= {f"ran_{name}": number for name, number in result.fired.items()}
    findings = []
    lines = [", ".join(f"{number:,} {name}" for name, number in sorted(result.fired.items()))]
    if result.failure is not None:
        findings.append(failure_finding(result.failure))
        lines = [failure_text(result.failure)]
        case_file = None if out is None else save_case(result.failure, out)
        if case_file is not None:
            findings[-1]["case_file"] = str(case_file)
    for name in result.silent:
        findings.append({"code": "never-happened", "severity": "vacuous", "sentence": f"{name} never happened"})
    if result.silent:
        lines.append(f"vacuous: {', '.join(result.silent)} never happened; give more examples")
    text = "\n".join([*lines, "", f"verdict: {result.verdict.value}"])
    return Outcome("check", result.verdict.value, figures, ["seconds"], findings, seed=seed), text
