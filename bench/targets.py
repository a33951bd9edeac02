"""Measure campaigns on foreign stores: crash states/s of a Python store and of a C store.

The stores are the skeletons of `tornpage init`. Each is measured with a process for each crash state, and with
processes that open one crash state after the other (the verb `open`).
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tornpage.bench.figures import Figure, Skipped, file_system_of, scratch
from tornpage.bench.sizes import FULL, Sizes
from tornpage.outcomes.skeletons import LANGUAGES, init_outcome
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.foreign.campaign import TargetPlan, run_target_campaign
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import Settings

__all__ = [
    "target_c_open_states_per_s",
    "target_c_states_per_s",
    "target_python_open_states_per_s",
    "target_python_states_per_s",
]

NAME = "measured"


def target_python_states_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Crash states/s of a Python store, with a fork for each crash state.

    One round, seed 0. May raise Skipped.
    """
    return _measured("target_python_states_per_s", directory, "python", seconds, sizes, reuse=False)


def target_python_open_states_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """The same with processes that open one crash state after the other."""
    return _measured("target_python_open_states_per_s", directory, "python", seconds, sizes, reuse=True)


def target_c_states_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Crash states/s of a C program, with a start for each crash state.

    One round, seed 0. May raise Skipped.
    """
    return _measured("target_c_states_per_s", directory, "c", seconds, sizes, reuse=False)


def target_c_open_states_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """The same with processes that open one crash state after the other."""
    return _measured("target_c_open_states_per_s", directory, "c", seconds, sizes, reuse=True)


def _measured(name: str, directory: str, language: str, seconds: float, sizes: Sizes, *, reuse: bool) -> Figure:
    if why_untraceable():
        raise Skipped(why_untraceable())
    if language == "c" and _compiler() is None:
        raise Skipped("gcc is not installed")
    with scratch(directory) as folder, choose_tracker("auto") as tracker:
        settings = Settings(target=_target(language, Path(folder)))
        states = sizes.campaign_states
        limit = seconds if states is None else None
        plan = TargetPlan(settings, states=states, seconds=limit, reuse=reuse)
        result = run_target_campaign(plan, tracker=tracker)
    if result.interrupted:
        raise KeyboardInterrupt
    if result.verdict is Verdict.BROKEN:
        raise HarnessError(f"the campaign that was timed found a broken promise: {result.failure}")
    if not result.tally.states:
        raise Skipped(f"no crash state was counted in {seconds} s: give it more")
    rate = result.tally.states / result.seconds
    return Figure(name, rate, "states/s", (rate,), file_system_of(directory))


def _target(language: str, folder: Path) -> str:
    """Write the skeleton of a language, build it, and return its target."""
    init_outcome(NAME, language=language, directory=str(folder))
    known = LANGUAGES[language]
    file = folder / known.filled("@FILE@", NAME).replace("@NAME@", NAME)
    if language == "python":
        return f"{file}:{NAME.capitalize()}"
    program = folder / NAME
    built = subprocess.run([str(_compiler()), "-O2", "-o", program, file], capture_output=True, text=True, check=False)
    if built.returncode:
        raise Skipped(f"gcc fails: {built.stderr.strip().splitlines()[-1]}")
    return f"cmd:{program} {{dir}}"


@cache
def _compiler() -> str | None:
    return shutil.which("gcc")
