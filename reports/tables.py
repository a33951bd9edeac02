"""A run directory as frozen values: `run.json` and the tables below `tables/`.

A missing table is None (its section of the page says what was not run). Anything malformed is a ReportError that names
the file, the place in it and a remedy. Text is kept as it was written; pages and plots make it harmless.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from reports.crash_images import CrashImageRow, RulingRow
from reports.errors import ReportError
from reports.shape import Count, Positive, Scalar, read_json, shaped

__all__ = [
    "SCHEMA",
    "ActivationRow",
    "AuditFinding",
    "AuditRow",
    "Caption",
    "CrashImageRow",
    "DiscoveryRow",
    "FactRow",
    "Finding",
    "LatencyRow",
    "PageMapRow",
    "PageRow",
    "RiskRow",
    "RulingRow",
    "Run",
    "RunRecord",
    "StallRow",
    "StepRow",
    "Table",
    "read_run",
]

SCHEMA = 1
"""The only schema of `run.json` there is."""

_FATES = frozenset({"durable", "kept", "lost", "older", "torn"})
_REMEDY = "run the command that wrote it again, or take the file away"

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Caption:
    """Where a table comes from: what made it ("simulation"), with which seed, by which command line."""

    source: str = ""
    seed: int | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """The rows of one file, in its order."""

    rows: tuple[Row, ...]
    caption: Caption = Caption()


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of the run; commands write `sentence` or `message`."""

    code: str | None = None
    severity: str | None = None
    step: str | None = None
    sentence: str | None = None
    message: str | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """`run.json`: the document of the command, and where and when it ran. `started` is UTC, as text."""

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


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of the main job; a step that judged nothing, or was skipped, has no verdict."""

    step: str
    verdict: str | None
    sentence: str
    seconds: Positive


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """A point of a put latency CDF: `fraction` of the puts took at most `latency_us`."""

    policy: str
    latency_us: Positive
    fraction: Positive


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One policy at one rate: the put latency, and how many messages a power loss would take."""

    policy: str
    rate_per_s: Positive
    put_p99_us: Positive
    at_risk_messages_mean: Positive
    at_risk_messages_p99: Positive


@dataclass(frozen=True, slots=True)
class StallRow:
    """How long puts stood still at file roll number `roll`."""

    allocation: str
    roll: Count
    stall_us: Positive


@dataclass(frozen=True, slots=True)
class DiscoveryRow:
    """What `states` crash states had shown: distinct disk images, distinct recovered logs."""

    states: Count
    distinct_images: Count
    distinct_recovered: Count


@dataclass(frozen=True, slots=True)
class ActivationRow:
    """How often a fault could have happened, happened, and changed the image."""

    fault: str
    armed: Count
    fired: Count
    mattered: Count


@dataclass(frozen=True, slots=True)
class PageRow:
    """Page `number` of `file`: versions since its last sync, and what became of it."""

    file: str
    number: Count
    versions: Count
    fate: str


@dataclass(frozen=True, slots=True)
class FactRow:
    """A name or a size that was not synced, and what became of it."""

    fact: str
    fate: str


@dataclass(frozen=True, slots=True)
class PageMapRow:
    """A counterexample; `crash` is the number, from 0, of its power loss in `operations`."""

    operations: tuple[str, ...]
    crash: Count
    disk: str
    pages: tuple[PageRow, ...]
    facts: tuple[FactRow, ...]
    sentences: tuple[str, ...]
    sentence: str
    token: str
    expected: str | None = None
    found: str | None = None
    bug: str | None = None
    settings: dict[str, Scalar] | None = None


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """What an audit found, in which file, at which offset of it."""

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
    """Everything a run directory holds. A table that was not written is None."""

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


def read_run(directory: Path) -> Run:
    """Read a run directory. Raises ReportError."""
    path = directory / "run.json"
    if not path.exists():
        raise ReportError(str(directory), "is no run directory (it has no run.json)", "name one that a run wrote")
    document = read_json(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ReportError(str(path), f"has schema {schema!r}, not {SCHEMA}", "use the version that wrote it")
    record = shaped(RunRecord, document, path=path, place="run")
    tables = directory / "tables"
    return Run(
        record,
        steps=_table(tables / "steps.json", StepRow),
        put_latency=_table(tables / "put_latency.json", LatencyRow, check=_check_curves),
        at_risk=_table(tables / "at_risk.json", RiskRow),
        stalls=_table(tables / "stalls.json", StallRow),
        discovery=_table(tables / "discovery.json", DiscoveryRow),
        activation=_table(tables / "activation.json", ActivationRow),
        page_map=_table(tables / "page_map.json", PageMapRow, check=_check_maps),
        audit=_table(tables / "audit.json", AuditRow),
        rulings=_table(tables / "rulings.json", RulingRow),
        crash_images=_table(tables / "crash_images.json", CrashImageRow),
    )


@dataclass(frozen=True, slots=True)
class _Document:
    """A table file as it lies on disk, rows not yet looked at."""

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


def _check_curves(rows: Sequence[LatencyRow]) -> str | None:
    """Return what is wrong with the curves: a fraction above 1, or one that falls while the latency grows."""
    reached: dict[str, float] = {}
    for row in sorted(rows, key=lambda row: (row.latency_us, row.fraction)):
        if row.fraction > 1:
            return f"policy {row.policy!r} has a fraction of {row.fraction}, more than 1"
        if row.fraction < reached.get(row.policy, 0.0):
            return f"the fractions of policy {row.policy!r} fall at {row.latency_us} µs: this is no CDF"
        reached[row.policy] = row.fraction
    return None


def _check_maps(rows: Sequence[PageMapRow]) -> str | None:
    for number, row in enumerate(rows):
        if row.crash >= len(row.operations):
            return f"rows[{number}].crash is {row.crash}, and there are {len(row.operations)} operations"
        for fate in (*(page.fate for page in row.pages), *(fact.fate for fact in row.facts)):
            if fate not in _FATES:
                return f"rows[{number}] has the unknown fate {fate!r}"
    return None
