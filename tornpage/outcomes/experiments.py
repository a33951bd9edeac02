"""Run experiments by name, and write their tables; an interrupt keeps finished rows."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import counted_progress
from tornpage.outcomes.simulation_points import devices_of
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.sim.device.device import DeviceTimes
    from tornpage.sim.experiments.values import Experiment, Result, Row

__all__ = [
    "TABLE_PREFIX",
    "Disk",
    "catalogue",
    "chosen",
    "disk_of",
    "experiment_document",
    "experiments_outcome",
    "list_outcome",
]

TABLE_PREFIX = "experiment-"
"""Prefix of table names; `tornpage report` makes the simulation page for such tables."""


def catalogue() -> "Sequence[Experiment]":
    """Return all experiments, in the order of a page."""
    from tornpage.bench.experiments import EXPERIMENTS

    return EXPERIMENTS


def chosen(names: Sequence[str], *, everything: bool, disk: "Disk") -> "Sequence[Experiment]":
    """Return the experiments of these names, or all that the disk allows.

    Refuses unknown names, and names of experiments that the disk does not allow.
    """
    from tornpage.sim.experiments.registry import UnknownExperiment, named

    if everything == bool(names):
        refuse("name experiments, or give --all; --list prints their names")
    known = catalogue()
    try:
        if everything:
            return [one for one in known if disk.allows(one)]
        found = [named(name, known) for name in dict.fromkeys(names)]
    except UnknownExperiment as error:
        refuse(f"{error}; --list prints the question of each")
    for one in found:
        if not disk.allows(one):
            refuse(f"{one.name} changes the law of a sync, and a calibration has none; name a preset as --device")
    return found


@dataclass(frozen=True, slots=True)
class Disk:
    """The device of experiments: its times, its options, and notes on a calibration."""

    times: "DeviceTimes"
    options: str
    notes: tuple[dict[str, Any], ...] = ()

    def allows(self, experiment: "Experiment") -> bool:
        """Return whether an experiment can use these times."""
        return self.times.measured is None or not experiment.needs_law


def disk_of(name: str, *, mode: str | None = None, any_machine: bool = False) -> Disk:
    """Return a preset or a calibration; refuses unknown ones."""
    [times], notes = devices_of([name], mode=mode, any_machine=any_machine)
    given = "" if mode is None else f" --device-mode {mode}"
    return Disk(times, f"--device {shlex.quote(name)}{given}{' --any-machine' if any_machine else ''}", tuple(notes))


def list_outcome() -> tuple[Outcome, str]:
    """Return the names and questions of all experiments."""
    known = catalogue()
    rows = [
        {"name": one.name, "title": one.title, "question": one.question, "is_measured": one.is_measured}
        for one in known
    ]
    width = max(len(one.name) for one in known)
    text = "\n".join(
        f"{one.name:<{width}}  {one.question}{' (measures the real store)' if one.is_measured else ''}" for one in known
    )
    return Outcome("sim experiment", None, {"experiments": len(rows)}, extra={"experiments": rows}), text


def experiments_outcome(
    command: str,
    experiments: "Sequence[Experiment]",
    *,
    disk: Disk,
    seed: int,
    effort: float = 1.0,
    out: str | None = None,
    again: Callable[[str], str] = "sim experiment {}".format,
    elsewhere: str = "name a directory with room in TMPDIR",
) -> tuple[Outcome, str]:
    """Run experiments one after the other until one fails; return outcome and text.

    `again` tells from the name of an experiment which command, without the options shared by all, carries it out;
    `elsewhere` how to have the real store in another place.
    """
    from tornpage.impl.errors import StoreError
    from tornpage.properties.contract import HarnessError
    from tornpage.sim.experiments.values import Setup, cut_short, run_experiment

    if isnan(effort):
        refuse("--effort nan is no share; take one above 0 and up to 1")
    directory = None if out is None else prepare(out)
    setup = Setup(disk.times, seed, effort)
    results: list[Result] = []
    failed = False
    rows: dict[str, list[Row]] = {experiment.name: [] for experiment in experiments}
    interrupted, verdict, findings = False, None, [*disk.notes]
    try:
        with counted_progress("simulating", total=len(experiments), unit="experiments") as show:
            for done, experiment in enumerate(experiments):
                show(done, experiment.name)
                tell = partial(_step, show, done, experiment.name)
                results.append(run_experiment(experiment, setup, tell, rows[experiment.name].append))
    except KeyboardInterrupt:
        interrupted = True
    except HarnessError as error:
        verdict = "harness"
        findings += [{"code": "harness", "severity": "harness", "sentence": f"the harness failed: {error}"}]
    except (StoreError, OSError) as error:
        said = f"the real store cannot work here: {error}; {elsewhere}"
        if not results:
            refuse(said)
        failed = True
        findings += [{"code": "no-store", "severity": "warning", "sentence": said}]
    whole = len(results)
    results += [cut_short(each, setup, rows[each.name]) for each in experiments[whole:] if rows[each.name]]
    less = "" if effort == 1 else f" --effort {effort:g}"
    documents = {
        result.experiment.name: experiment_document(
            result,
            place,
            f"tornpage {again(result.experiment.name)}{less} {disk.options} --seed {result.seed}",
        )
        for place, result in enumerate(results)
    }
    outcome = Outcome(
        command,
        verdict,
        {"experiments": len(experiments), "experiments_done": whole},
        findings=findings,
        seed=seed,
        extra={"device": disk.times.name, "effort": effort, "results": documents},
        interrupted=interrupted,
        tables={f"{TABLE_PREFIX}{name}": document for name, document in documents.items()},
    )
    if directory is not None:
        write_run(directory, outcome)
    text = _text(results, outcome, None if outcome.unwritten else out)
    outcome.unwritten |= failed or verdict is not None
    return outcome, text


def _step(show: Callable[[float, str], None], done: int, name: str, step: str) -> None:
    show(done, f"{name}: {step}")


def experiment_document(result: "Result", place: int, command: str) -> dict[str, Any]:
    """Return the table of a result: rows, where they come from, and how they are drawn."""
    from tornpage.sim.experiments.devices import device_source

    experiment = result.experiment
    source = "simulation and measurement" if experiment.is_measured else "simulation"
    return {
        "rows": list(result.rows),
        "caption": {
            "source": f"{source}, tornpage {__version__}, device {result.device} ({device_source(result.device)})",
            "seed": result.seed,
            "command": command,
        },
        "experiment": {
            "name": experiment.name,
            "place": place,
            "title": experiment.title,
            "question": experiment.question,
            "setting": experiment.setting,
            "answer": result.caption,
            "is_measured": experiment.is_measured,
            "is_whole": result.is_whole,
            "chart": asdict(experiment.chart),
            "overlays": [asdict(overlay) for overlay in result.overlays],
        },
    }


def _text(results: "Sequence[Result]", outcome: Outcome, out: str | None) -> str:
    lines, figures = [], outcome.figures
    for result in results:
        lines += [result.experiment.title, f"  {result.experiment.question}", f"  {result.caption}", ""]
    lines += [finding["sentence"] for finding in outcome.findings]
    if outcome.interrupted or figures["experiments_done"] < figures["experiments"]:
        how = "interrupted: " if outcome.interrupted else ""
        lines.append(f"{how}{figures['experiments_done']} of {figures['experiments']} experiments are done")
    if out is not None:
        lines.append(f"tables in {out}; `tornpage report {out}` draws them")
    elif sys.stdout.isatty():
        lines.append("--out DIR keeps the rows, `tornpage report DIR` draws them")
    return "\n".join(lines).rstrip("\n")
