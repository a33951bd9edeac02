"""Read a run directory as frozen values: `run.json` and the tables below `tables/`.

A missing table is None (its section of the page says what was not run). Anything malformed is a ReportError that names
the file, the place in it and a remedy. Text is kept unchanged. Pages and plots make it harmless.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from tornpage.reports.errors import ReportError
from tornpage.reports.results.crash_images import CrashImageRow, RulingRow
from tornpage.reports.results.findings import Finding, page_name
from tornpage.reports.results.mutants import MutantRow
from tornpage.reports.results.page_map_rows import FactRow, PageMapRow, PageRow, wrong_maps
from tornpage.reports.results.policy_rows import LatencyRow, RiskRow, StallRow, wrong_curves
from tornpage.reports.results.scoreboard import ScoreRow, SmallFailureRow, SurvivalRow, wrong_survival
from tornpage.reports.results.stages import StageRow
from tornpage.reports.shape import Count, Positive, Scalar, read_json, shaped

__all__ = [
    "SCHEMA",
    "ActivationRow",
    "AuditFinding",
    "AuditRow",
    "BudgetRecord",
    "Caption",
    "CrashImageRow",
    "DiscoveryRow",
    "FactRow",
    "Finding",
    "LatencyRow",
    "MutantRow",
    "PageMapRow",
    "PageRow",
    "PairsRow",
    "RiskRow",
    "RulingRow",
    "Run",
    "RunRecord",
    "StageRow",
    "StallRow",
    "StepRow",
    "Table",
    "read_run",
]

SCHEMA = 1
"""The only schema of `run.json`."""

_PAGE_NAME = re.compile(r"case-[0-9a-f]{8}\.html")
_REMEDY = "run the command that wrote it again, or take the file away"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Caption:
    """The source of a table: what made it ("simulation"), with which seed, by which command."""

    source: str = ""
    seed: int | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """The rows of one file, in its order."""

    rows: tuple[Row, ...]
    caption: Caption = Caption()


@dataclass(frozen=True, slots=True)
class BudgetRecord:
    """The limits for a policy: age of the oldest lost message (ms), and put p99 (µs)."""

    loss_ms: Positive
    put_p99_us: Positive


@dataclass(frozen=True, slots=True)
class RunRecord:
    """`run.json`: the document of the command, and where and when it ran.

    `started` is UTC, as text.
    """

    schema: int
    command: str
    verdict: str | None
    figures: dict[str, float]
    timings: tuple[str, ...]
    findings: tuple[Finding, ...]
    seed: int | None
    version: str
    arguments: str
    machine: dict[str, Scalar]
    started: str
    interrupted: bool = False
    settings: dict[str, Scalar] | None = None
    result_hash: str = ""
    budget: BudgetRecord | None = None
    how_sure: tuple[str, ...] = ()
    broker_conf: dict[str, Scalar] | None = None


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of the main job; a step that judged nothing, or was skipped, has no verdict."""

    step: str
    verdict: str | None
    sentence: str
    seconds: Positive


@dataclass(frozen=True, slots=True)
class DiscoveryRow:
    """Counts after `states` crash states: distinct disk images, distinct recovered logs."""

    states: Count
    distinct_images: Count
    distinct_recovered: Count


@dataclass(frozen=True, slots=True)
class ActivationRow:
    """How often a fault was possible, happened, and changed the image."""

    fault: str
    armed: Count
    fired: Count
    mattered: Count


@dataclass(frozen=True, slots=True)
class PairsRow:
    """One level of a factor, with its possible pairs and those that were exercised."""

    factor: str
    level: str
    pairs: Count
    exercised: Count


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A finding of an audit: its file, and its offset in it."""

    code: str
    severity: str
    file: str | None
    offset: Count | None
    message: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """The audit of one store."""

    store: str
    what: str
    verdict: str | None
    findings: tuple[AuditFinding, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The content of a run directory; a table that was not written is None."""

    record: RunRecord
    steps: Table[StepRow] | None
    put_latency: Table[LatencyRow] | None
    at_risk: Table[RiskRow] | None
    stalls: Table[StallRow] | None
    discovery: Table[DiscoveryRow] | None
    activation: Table[ActivationRow] | None
    page_map: Table[PageMapRow] | None
    audit: Table[AuditRow] | None
    rulings: Table[RulingRow] | None = None
    crash_images: Table[CrashImageRow] | None = None
    scoreboard: Table[ScoreRow] | None = None
    survival: Table[SurvivalRow] | None = None
    small: Table[SmallFailureRow] | None = None
    stages: Table[StageRow] | None = None
    mutants: Table[MutantRow] | None = None
    pairs: Table[PairsRow] | None = None


def read_run(directory: Path) -> Run:
    """Read a run directory. Raises ReportError."""
    path = directory / "run.json"
    if not path.exists():
        raise ReportError(
            str(directory),
            "has no run.json, so it is not a run directory",
            "name a directory that a run wrote with --out",
        )
    document = read_json(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ReportError(str(path), f"has schema {schema!r}, not {SCHEMA}", "use the version that wrote it")
    record = shaped(RunRecord, document, path=path, place="run")
    pages = _pages_in(directory)
    record = replace(record, findings=tuple(_linked(finding, pages) for finding in record.findings))
    tables = directory / "tables"
    page_map = _table(tables / "page_map.json", PageMapRow, check=wrong_maps)
    if page_map is not None:
        page_map = replace(page_map, rows=tuple(_linked(row, pages) for row in page_map.rows))
    return Run(
        record,
        steps=_table(tables / "steps.json", StepRow),
        put_latency=_table(tables / "put_latency.json", LatencyRow, check=wrong_curves),
        at_risk=_table(tables / "at_risk.json", RiskRow),
        stalls=_table(tables / "stalls.json", StallRow),
        discovery=_table(tables / "discovery.json", DiscoveryRow),
        activation=_table(tables / "activation.json", ActivationRow),
        page_map=page_map,
        audit=_table(tables / "audit.json", AuditRow),
        rulings=_table(tables / "rulings.json", RulingRow),
        crash_images=_table(tables / "crash_images.json", CrashImageRow),
        scoreboard=_table(tables / "scoreboard.json", ScoreRow),
        survival=_table(tables / "survival.json", SurvivalRow, check=wrong_survival),
        small=_table(tables / "small.json", SmallFailureRow),
        stages=_table(tables / "stages.json", StageRow),
        mutants=_table(tables / "mutants.json", MutantRow),
        pairs=_table(tables / "pairs.json", PairsRow),
    )


Linked = TypeVar("Linked", Finding, PageMapRow)


def _pages_in(directory: Path) -> frozenset[str]:
    """Return the names of the pages of counterexamples beside the report."""
    return frozenset(path.name for path in directory.glob("case-*.html") if _PAGE_NAME.fullmatch(path.name))


def _linked(row: Linked, pages: frozenset[str]) -> Linked:
    """Return a row with the name of its page, if there is one.

    A page named in a file is ignored.
    """
    name = page_name(row.token or "")
    return replace(row, page=name if name in pages else "")


@dataclass(frozen=True, slots=True)
class _Document:
    """A table file with unchecked rows."""

    rows: tuple[dict[str, Any], ...]
    caption: Caption | None = None


def _table(
    path: Path, kind: type[Row], *, check: Callable[[Sequence[Row]], str | None] = lambda rows: None
) -> Table[Row] | None:
    if not path.exists():
        return None
    document = shaped(_Document, read_json(path), path=path, place="table")
    rows = tuple(shaped(kind, row, path=path, place=f"rows[{number}]") for number, row in enumerate(document.rows))
    wrong = check(rows)
    if wrong is not None:
        raise ReportError(str(path), wrong, _REMEDY)
    return Table(rows, document.caption or Caption())
