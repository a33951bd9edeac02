"""Write a run directory: `run.json` and tables of a command, the input of reports.

Tables are JSON: `{"rows": […], "caption": {"source", "seed", "command"}}`. A directory that holds something else is
never written into.
"""

import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tornpage.cli.document import Outcome, refuse, warn
from tornpage.run.writing import refuse_store_directory

__all__ = ["IMAGES", "RUN_FILE", "machine", "prepare", "temporary_directory", "write_run"]

RUN_FILE = "run.json"
TABLES = "tables"
IMAGES = "images"
"""Crash images in which a peer broke a promise."""
_KEPT = {
    "trials.jsonl", "small.jsonl", "workloads.jsonl", "damages.jsonl", "peer-workloads.jsonl", "mutants.jsonl",
    "reach.jsonl",
}  # fmt: skip
"""Rows of finished work, from which the next run of the same plan continues."""
_MADE = {RUN_FILE, "index.html", "scores.jsonl", "quantiles.jsonl", "slices.jsonl"}
"""Results of a single run."""
SOURCES = "sources.json"
"""The digest of the sources of tornpage with which the kept rows were made."""
_OURS = {SOURCES, TABLES, IMAGES, *_KEPT, *_MADE}


def machine(directory: Path) -> dict[str, Any]:
    """Return the machine: processors, kernel, Python, file system."""
    from tornpage.outcomes.doctor import check_file_system, mounts_text

    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "file_system": check_file_system(str(directory.absolute()), mounts_text()).detail,
    }


def prepare(out: str) -> Path:
    """Return the directory of a run, empty of earlier runs; refuses foreign content.

    What an earlier run found would be taken for what this one did, should this one end early. Cases stay, and so does
    what a run goes on from.
    """
    directory = Path(out)
    refuse_store_directory(directory, option="--out")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        foreign = sorted(
            path.name for path in directory.iterdir() if path.name not in _OURS and not path.name.startswith("case-")
        )
        if foreign:
            refuse(f"{directory} holds {foreign[0]}, which is no part of a run; name a new --out directory")
        _refuse_other_sources(directory)
        for name in _MADE:
            (directory / name).unlink(missing_ok=True)
        shutil.rmtree(directory / TABLES, ignore_errors=True)
        shutil.rmtree(directory / IMAGES, ignore_errors=True)
        (directory / TABLES).mkdir()
    except OSError as error:
        refuse(f"cannot write to {error.filename or out}: {error.strerror}; name another --out directory")
    return directory


def _refuse_other_sources(directory: Path) -> None:
    """Refuse kept rows of other sources, and note the sources of new ones. Raises OSError."""
    from tornpage.properties.campaign.sources import sources_digest

    path, kept = directory / SOURCES, sorted(name for name in _KEPT if (directory / name).exists())
    mine = json.dumps({"sources": sources_digest()})
    if kept and path.exists() and path.read_text(encoding="utf-8", errors="replace") != mine:
        remedy = f"name another --out directory, or remove {', '.join(kept)}"
        refuse(f"{directory} holds results of other sources of tornpage, which new ones cannot continue; {remedy}")
    path.write_text(mine, encoding="utf-8")


def write_run(directory: Path, outcome: Outcome) -> None:
    """Write the tables of an outcome into a directory, and then `run.json`.

    A disk that refuses is said in one line and noted in the outcome: its results are printed, not lost.
    """
    arguments = " ".join(sys.argv[1:])
    run = {
        **outcome.document(),
        "arguments": arguments,
        "interrupted": outcome.interrupted,
        "machine": machine(directory),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        (directory / TABLES if outcome.tables else directory).mkdir(parents=True, exist_ok=True)
        for name, table in outcome.tables.items():
            _write(directory / TABLES / f"{name}.json", table)
        _write(directory / RUN_FILE, run)
    except OSError as error:
        outcome.unwritten = True
        warn(f"results not written to {directory}: {error.strerror}; name another --out directory")


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


# ---- temporary files -------------------------------------------------------------------------------------------------


def temporary_directory(remedy: str) -> str:
    """Return the directory for temporary files; refuses with `remedy` without one."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        refuse(f"no temporary directory can be written; free some space there, or {remedy}")
