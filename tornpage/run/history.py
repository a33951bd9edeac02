"""Write a history of runs (`--history DIR`) as a dataset of Parquet files.

    DIR/day=2026-11-22/run-20261122T190501Z-1f3a90c2.parquet

Columns: those of `reports.results.history`, and `activation`, a list of (name, armed, fired, mattered) with an entry
per fault, rule and judge. A file appears whole or not at all, and no file is ever changed, so that runs may append at
the same time. What was interrupted is no row: it could not be compared with anything.
"""

import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.cli.document import Outcome, refuse, warn

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["append_run", "prepare_history"]

_KINDS = ("armed", "fired", "mattered")
_WRONG = ("broken", "harness")
_COPIED = ("states", "seconds", "states_per_s", "distinct_images", "distinct_recovered", "bugs", "killed")


def prepare_history(directory: str | None) -> None:
    """Make sure before a run that its row can be written; refuses in one line."""
    if directory is None:
        return
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        refuse("--history writes Parquet, and pyarrow is not installed; install it with pip: 'tornpage[spark]'")
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        refuse(f"cannot write to {directory}: {error.strerror}; name another --history directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        refuse(f"cannot write to {directory}: Permission denied; name another --history directory")


def append_run(directory: str | None, outcome: Outcome, *, started: datetime) -> Path | None:
    """Add a finished run to a history; return its file, or None after a warning."""
    if directory is None:
        return None
    if outcome.interrupted:
        warn(f"the run was interrupted: it is no row of the history {directory}")
        return None
    row = _row(outcome, started.astimezone(UTC))
    path = Path(directory, f"day={started.astimezone(UTC):%Y-%m-%d}", f"run-{row['run']}.parquet")
    try:
        _add_file(row, path)
    except OSError as error:
        outcome.unwritten = True
        warn(f"run not written to the history {directory}: {error.strerror or error}; name another --history directory")
        return None
    return path


def _row(outcome: Outcome, started: datetime) -> dict[str, Any]:
    from tornpage.reports.results.causes import without_places

    settings: Mapping[str, Any] = outcome.extra.get("settings", {})
    bug = settings.get("bug") and f"bug {settings['bug']}"
    series = (outcome.extra.get("strategy"), settings.get("disk"), settings.get("file_bytes"), bug)
    figures = outcome.figures
    wrong = [finding for finding in outcome.findings if finding.get("severity") in _WRONG]
    causes = [f"{finding['code']}: {without_places(str(finding.get('sentence', '')))}" for finding in wrong]
    if figures.get("shards_skipped"):  # its time is that of a part
        figures = {name: value for name, value in figures.items() if name not in ("seconds", "states_per_s")}
    names = sorted({name.removeprefix("armed_") for name in figures if name.startswith("armed_")})
    return {
        "run": f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}",
        "started": started.isoformat(timespec="seconds"),
        "version": __version__,
        "command": outcome.command,
        "verdict": outcome.verdict,
        "seed": outcome.seed,
        "series": " ".join(str(part) for part in series if part),
        **{name: figures.get(name) for name in _COPIED},
        "median_kill_s": figures.get("median_kill_s"),
        "causes": list(dict.fromkeys(causes)),
        "activation": [
            {"name": name, **{kind: int(figures.get(f"{kind}_{name}", 0)) for kind in _KINDS}} for name in names
        ],
    }


def _schema() -> "pa.Schema":
    """Return the schema of every file; readers use the schema of the first file for all."""
    import pyarrow as pa

    words = ("run", "started", "version", "command", "verdict", "series")
    numbers = ("seed", "states", "distinct_images", "distinct_recovered", "bugs", "killed")
    measured = ("seconds", "states_per_s", "median_kill_s")
    counted = pa.struct([("name", pa.string()), *((kind, pa.int64()) for kind in _KINDS)])
    return pa.schema(
        [
            *((name, pa.string()) for name in words),
            *((name, pa.int64()) for name in numbers),
            *((name, pa.float64()) for name in measured),
            ("causes", pa.list_(pa.string())),
            ("activation", pa.list_(counted)),
        ]
    )


def _add_file(row: dict[str, Any], path: Path) -> None:
    """Write one row; the file appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tornpage.pipeline.rows.outputs import whole

    with whole(path) as unfinished:
        pq.write_table(pa.Table.from_pylist([row], schema=_schema()), unfinished)
