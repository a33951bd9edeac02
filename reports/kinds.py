"""Name the kind of page that a directory gets, by the names of its files.

Nothing is imported that draws, so that a wrong directory is refused at once.
"""

from pathlib import Path
from typing import Literal

from tornpage.reports.errors import ReportError

__all__ = ["EXPERIMENTS", "VALIDATION", "PageKind", "has_experiments", "has_sweep", "has_validation", "page_kind"]

PageKind = Literal["run", "power-loss", "simulation"]

EXPERIMENTS = "experiment-*.json"
"""The tables of experiments, below tables/."""
VALIDATION = ("scores.jsonl", "quantiles.jsonl")
"""The files of a validation."""
_PEER_RUNS = "peer-runs.json"


def page_kind(directory: Path) -> PageKind:
    """Return the kind of the page of a directory.

    Raises ReportError if no run wrote it.
    """
    if (directory / "tables" / _PEER_RUNS).exists() or any(directory.glob(f"*/tables/{_PEER_RUNS}")):
        return "power-loss"
    if has_sweep(directory):
        return "simulation"
    if not (directory / "run.json").exists():
        what = "this is no run directory (no run.json, points.jsonl or peer runs)"
        raise ReportError(str(directory), what, "name a directory that a run wrote with --out")
    return "simulation" if has_experiments(directory) or has_validation(directory) else "run"


def has_sweep(directory: Path) -> bool:
    """Return whether a directory has points of a sweep, in one file or one file each."""
    return (directory / "points.jsonl").exists() or any((directory / "points").glob("*.json"))


def has_experiments(directory: Path) -> bool:
    """Return whether a run directory has results of experiments."""
    return any((directory / "tables").glob(EXPERIMENTS))


def has_validation(directory: Path) -> bool:
    """Return whether a run directory has rows of a validation."""
    return all((directory / name).exists() for name in VALIDATION)
