"""The history of runs: one row per run, from a partitioned dataset of Parquet files.

Campaigns append to it. These columns are read, and others are ignored. A column with a default may be missing.
Partition directories (`version=0.1.0/day=2026-11-22/…`) count as columns.

| column | type | meaning |
|---|---|---|
| run | string | identifies the run |
| started | string or timestamp | when it began, UTC |
| version | string | of tornpage |
| command | string | explore, campaign, prove, bugs score … |
| verdict | string | holds, broken, vacuous, unknown, harness; null: judged nothing |
| seed | long | seed of the run |
| series | string | what makes runs comparable: disk, strategy, file size; empty if there is one kind only |
| states | long | crash states that counted |
| seconds | double | run time (s) |
| states_per_s | double | crash states per second of exploring |
| distinct_images | long | distinct disk images |
| distinct_recovered | long | distinct recovered logs |
| causes | list of string | what broke, one sentence per cause (`contract-3: …`) |
| bugs, killed | long | planted bugs that were searched for, and killed |
| median_kill_s | double | median seconds to a kill |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tornpage.reports.errors import ReportError
from tornpage.reports.shape import Count, Positive, shaped

__all__ = ["COLUMNS", "HistoryRow", "history_rows", "read_history"]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One run."""

    run: str
    started: str
    version: str
    command: str
    verdict: str | None = None
    seed: int | None = None
    series: str = ""
    states: Count | None = None
    seconds: Positive | None = None
    states_per_s: Positive | None = None
    distinct_images: Count | None = None
    distinct_recovered: Count | None = None
    causes: tuple[str, ...] = ()
    bugs: Count | None = None
    killed: Count | None = None
    median_kill_s: Positive | None = None

    @property
    def kind(self) -> str:
        """What makes it comparable with other runs."""
        return f"{self.command} {self.series}".strip()


COLUMNS = tuple(field.name for field in fields(HistoryRow))
_NOT_NULL = frozenset({"run", "started", "version", "command"})


def history_rows(rows: Iterable[Mapping[str, Any]], *, path: Path) -> tuple[HistoryRow, ...]:
    """Return result rows as frozen values, in the order of their times.

    Raises ReportError, which names `path`.
    """
    found = [
        shaped(HistoryRow, {name: _plain(value) for name, value in row.items() if _is_said(name, value)},
               path=path, place=f"rows[{number}]")
        for number, row in enumerate(rows)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda row: (row.started, row.run)))


def read_history(directory: Path) -> tuple[HistoryRow, ...]:
    """Return the rows of a dataset. Raises ReportError."""
    if not directory.is_dir():
        raise ReportError(str(directory), "is no directory", "name the --history directory of your runs")
    files = sorted(path for path in directory.rglob("*.parquet") if not path.name.startswith(("_", ".")))
    if not files:
        raise ReportError(str(directory), "holds no history (no Parquet files)", "name the --history directory")
    return history_rows(_rows(directory, files), path=directory)


def _rows(directory: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.dataset as ds  # type: ignore[import-untyped]
    except ImportError as error:
        raise ReportError(
            str(directory), "is Parquet, and pyarrow is not installed", "install tornpage[spark]"
        ) from error
    try:
        dataset = ds.dataset([str(file) for file in files], partitioning="hive", partition_base_dir=str(directory))
        names = [name for name in COLUMNS if name in dataset.schema.names]
        rows: list[dict[str, Any]] = dataset.to_table(columns=names).to_pylist()
    except (OSError, pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        # Arrow reads impossible times, unknown zones and invalid text; Python accepts none of them.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ReportError(str(directory), f"cannot be read: {reason}", "take the broken file away") from error
    return rows


def _is_said(name: str, value: Any) -> bool:
    """Return whether a value is given: null counts as missing for a column with a default.

    Null in a column without a default is an error.
    """
    return name in COLUMNS and (value is not None or name in _NOT_NULL)


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
