"""Run `tornpage audit`: choose the engine, read the stores, and print the findings."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, at_fault, refuse, warn
from tornpage.cli.progress import bytes_progress, tasks_progress
from tornpage.outcomes.inspecting import time_text
from tornpage.properties.judge.rulings import counted
from tornpage.render.redacting import AS_IT_IS, Showing

if TYPE_CHECKING:
    from tornpage.pipeline.audit.audit import StoreAudit
    from tornpage.pipeline.audit.stores import StorePlan
    from tornpage.pipeline.repairing import Prepared, RepairDone
    from tornpage.properties.judge.shape import SettingsOverride

__all__ = ["ENGINES", "Asked", "audit_outcome", "engine_for", "rebuild_outcome", "repair_outcome"]

ENGINES = ("auto", "plain", "tasks", "joins")
_OPEN = ("CL_RECORDS_AT_RISK",)
_ROWS_SHOWN = 10
"""Queues and topics on the first screen."""
_TIMINGS = ("seconds", "start_s", "read_s", "join_s")
_PLAIN_BYTES = 4 << 30
"""Bytes of log and queues of all stores below which the start of Spark costs more than the audit."""

_ARRAY_BYTES = 2 << 30
"""Largest store that is held as arrays, in this process or a worker; some 500 bytes a record (ADR 43)."""

_PARTITION_BYTES = 256 << 20
"""Bytes of log and queues in a part of a join; with less than one part Spark starts in a quick mode."""


@dataclass(frozen=True)
class Asked:
    """Options of an audit; `work` is the directory for rows, None for a temporary one."""

    engine: str = "auto"
    master: str = "local[2]"
    broker_config: str | None = None
    rocketmq_version: str | None = None
    file_bytes: int | None = None
    work: str | None = None
    resume: bool = False
    overwrite: bool = False


def audit_outcome(stores: Sequence[str], asked: Asked = Asked(), show: Showing = AS_IT_IS) -> tuple[Outcome, str]:
    """Audit stores; return the outcome and its text. The verdict is the worst one of a store."""
    from tornpage.pipeline.audit.advice import advice_of
    from tornpage.pipeline.audit.stores import plan_store
    from tornpage.pipeline.audit.work import WorkError
    from tornpage.pipeline.spark.session import JavaMissing, JobFailed, PysparkMissing, SparkUnavailable
    from tornpage.properties.inspect import InspectError

    started = perf_counter()
    try:
        given = _given(asked)
        sizes = {
            "file_bytes": given.numbers.get("mappedFileSizeCommitLog"),
            "slots": given.numbers.get("maxHashSlotNum"),
        }
        plans = [
            plan_store(number, store, **sizes, drops_joined=given.drops_joined) for number, store in enumerate(stores)
        ]
        engine = _engine(asked, plans)
        audits, figures = _audits(plans, engine, asked)
    except JobFailed as error:
        return at_fault("audit", error)
    except (JavaMissing, PysparkMissing) as error:
        without = "" if asked.work is None else " without --work"
        refuse(f"{error}; or give --engine plain{without}, which needs neither Java nor Spark")
    except (InspectError, SparkUnavailable, WorkError) as error:
        refuse(str(error))
    audits = [_shown(audited, show) for audited in audits]
    figures = {"stores": len(audits), "seconds": perf_counter() - started, **figures}
    for audited in audits:
        for name, count in audited.figures.items():
            figures[name] = figures.get(name, 0) + count
    verdicts = [audited.verdict for audited in audits]
    verdict = next((worst for worst in ("broken", "unknown") if worst in verdicts), "holds")
    findings = [
        asdict(finding) | advice_of(finding.code)._asdict() for audited in audits for finding in audited.findings
    ]
    stores_shown = [_summed(audited, show) for audited in audits]
    extra = {"stores": stores_shown, "engine": engine}
    extra |= show.extra
    timings = [name for name in _TIMINGS if name in figures]
    text = _text(audits, verdict, figures, stores_shown)
    return Outcome("audit", verdict, figures, timings, findings, extra=extra), text


def repair_outcome(
    store: str,
    target: str,
    asked: Asked,
    *,
    only_plan: bool,
    with_quarantine: bool = False,
    log_file_bytes: int | None = None,
) -> tuple[Outcome, str]:
    """Audit a store, plan the repair of a copy and, unless `only_plan`, write the copy."""
    from tornpage.pipeline.repairing import RepairRefused, carry_out, prepare_repair
    from tornpage.properties.inspect import InspectError

    started = perf_counter()
    try:
        with bytes_progress("auditing") as show:
            prepared = prepare_repair(
                store,
                Path(target),
                _given(asked),
                with_quarantine=with_quarantine,
                log_file_bytes=log_file_bytes,
                progress=show,
            )
        if only_plan:
            return _planned(prepared, perf_counter() - started)
        for line in prepared.plan.lines():
            warn(f"plan: {_printable(line)}")
        done = carry_out(prepared.plan, prepared.rows, tell=lambda what: warn(_printable(what)))
    except (InspectError, RepairRefused) as error:
        refuse(_printable(str(error)))
    return _repaired(prepared, done, perf_counter() - started)


def rebuild_outcome(store: str, part: str, asked: Asked) -> tuple[Outcome, str]:
    """Rebuild a part of a store in place, and audit the store afterwards."""
    from tornpage.pipeline.repairing import RepairRefused, rebuild
    from tornpage.properties.inspect import InspectError

    started = perf_counter()
    try:
        with bytes_progress("auditing") as show:
            done = rebuild(
                store,
                part,  # type: ignore[arg-type]
                _given(asked),
                tell=lambda what: warn(_printable(what)),
                progress=show,
            )
    except (InspectError, RepairRefused) as error:
        refuse(_printable(str(error)))
    figures = {**done.audit.figures, **done.figures, "seconds": perf_counter() - started}
    backup = os.fsencode(done.backup).decode("utf-8", "replace")
    extra = {
        "rebuilt": part,
        "backup": backup,
        "store_verdict": done.before.verdict,
        "store_findings": [asdict(finding) for finding in done.before.findings],
    }
    made = ", ".join(
        f"{name.removeprefix('made_').replace('_', ' ')} {count:,}" for name, count in done.figures.items()
    )
    lines = [
        f"{_printable(done.before.store)}: {done.before.verdict} before",
        f"rebuilt: {made}",
        f"the old files are in {_printable(backup)}",
        "",
        f"verdict: {done.audit.verdict}",
    ]
    findings = [asdict(finding) for finding in done.audit.findings]
    return Outcome("audit", done.audit.verdict, figures, ("seconds",), findings, extra=extra), "\n".join(lines)


def _shown(audited: "StoreAudit", show: Showing) -> "StoreAudit":
    findings = tuple(replace(finding, **show.finding(asdict(finding))) for finding in audited.findings)
    return replace(audited, store=show.store(audited.store), findings=findings)


def _summed(audited: "StoreAudit", show: Showing) -> dict[str, Any]:
    """Return verdict and summary of one store."""
    document: dict[str, Any] = {"store": audited.store, "verdict": audited.verdict}
    if audited.summary is None:
        return document
    summary = audited.summary.document()
    for row in (*summary["topics"], *summary["queues"]):
        row["topic"] = show.row({"kind": "record", "topic": row["topic"]})["topic"]
    return document | {"summary": summary}


def _given(asked: Asked) -> "SettingsOverride":
    from tornpage.properties.judge.shape import SettingsOverride, read_settings_file

    given = SettingsOverride() if asked.broker_config is None else read_settings_file(asked.broker_config)
    return given.with_numbers(mappedFileSizeCommitLog=asked.file_bytes).with_release(asked.rocketmq_version)


def _engine(asked: Asked, plans: Sequence["StorePlan"]) -> str:
    """Return the given engine, or the one for the sizes of the stores."""
    if asked.engine != "auto":
        return asked.engine
    if asked.work is not None:
        return "joins"
    return engine_for([_size(plan) for plan in plans])


def engine_for(sizes: Sequence[int]) -> str:
    """Return the engine for stores with so many bytes of log and queues."""
    if max(sizes) > _ARRAY_BYTES:
        return "joins"
    return "plain" if sum(sizes) <= _PLAIN_BYTES else "tasks"


def _size(plan: "StorePlan") -> int:
    return sum(part.size_bytes for part in plan.log_parts) + sum(part.size_bytes for part in plan.queue_parts)


def _audits(
    plans: Sequence["StorePlan"], engine: str, asked: Asked
) -> tuple[list["StoreAudit"], dict[str, float | int]]:
    """Return the audits, and figures of Spark."""
    from tornpage.pipeline.audit.audit import audit_plan
    from tornpage.properties.scratch import remove_tree

    if engine == "plain":
        return [audit_plan(plan, read) for plan, read in _told(plans)], {}
    from tornpage.pipeline.spark.interrupts import apart
    from tornpage.pipeline.spark.session import spark_session
    from tornpage.pipeline.spark.watching import watched

    size = sum(map(_size, plans))
    work = None if engine == "tasks" else _work(plans, asked)
    try:
        started = perf_counter()
        partitions = 1 if size < _PARTITION_BYTES else max(8, size // _PARTITION_BYTES)
        with (
            tasks_progress("auditing", "starting Spark") as show,
            spark_session(
                "tornpage audit", master=asked.master, shuffle_partitions=partitions, short=size < _PARTITION_BYTES
            ) as spark,
            watched(spark, show) as stage,
        ):
            from tornpage.pipeline.audit.audit_spark import audit_each, audit_joined

            start_s = perf_counter() - started
            if work is None:
                return apart(spark, lambda: audit_each(spark, plans, stage)), {"start_s": start_s}
            joined = apart(spark, lambda: audit_joined(spark, plans, work, stage))
            return joined.audits, {"start_s": start_s, **joined.figures}
    finally:
        if work is not None and asked.work is None:
            remove_tree(str(work))


def _told(plans: Sequence["StorePlan"]) -> Iterator[tuple["StorePlan", Callable[[int], None]]]:
    """Yield each store with a function to call with the number of bytes read."""
    from tornpage.pipeline.audit.store_rows import bytes_to_read

    sizes = [bytes_to_read(plan) for plan in plans]
    before, total = 0, sum(sizes)
    with bytes_progress("auditing") as show:
        for plan, size in zip(plans, sizes, strict=True):
            yield plan, partial(_read, show, before, total, _printable(Path(plan.name).name))
            before += size


def _read(show: Callable[[int, int, str], None], before: int, total: int, name: str, read_bytes: int) -> None:
    show(before + read_bytes, total, name)


def _work(plans: Sequence["StorePlan"], asked: Asked) -> Path:
    """Return a work directory that is ready. Raises WorkError."""
    from tornpage.pipeline.audit.work import WorkError, open_work

    if asked.work is None:
        if not asked.master.startswith("local"):
            raise WorkError(f"workers of {asked.master} need a directory that all of them see; give --work DIR")
        return _opened(Path(tempfile.mkdtemp(prefix="tornpage-audit-")), plans)
    work = Path(os.path.abspath(asked.work))
    open_work(work, plans, resume=asked.resume, overwrite=asked.overwrite)
    return work


def _opened(work: Path, plans: Sequence["StorePlan"]) -> Path:
    from tornpage.pipeline.audit.work import open_work

    open_work(work, plans, resume=False, overwrite=False)
    return work


def _planned(prepared: "Prepared", seconds: float) -> tuple[Outcome, str]:
    audit = prepared.audit
    extra = {"plan": prepared.plan.document(), "repaired": None}
    findings = [asdict(finding) for finding in audit.findings]
    figures = {**audit.figures, "seconds": seconds}
    lines = [f"{_printable(audit.store)}: {audit.verdict}", "", "plan (nothing was written):"]
    lines += [f"  {_printable(line)}" for line in prepared.plan.lines()]
    outcome = Outcome("audit", audit.verdict, figures, ("seconds",), findings, extra=extra)
    return outcome, "\n".join([*lines, "", f"verdict: {audit.verdict}"])


def _repaired(prepared: "Prepared", done: "RepairDone", seconds: float) -> tuple[Outcome, str]:
    figures = {**done.audit.figures, **done.figures, "seconds": seconds}
    document = prepared.plan.document()
    extra = {
        "plan": document,
        "repaired": document["target"],
        "store_verdict": prepared.audit.verdict,
        "store_findings": [asdict(finding) for finding in prepared.audit.findings],
    }
    findings = [asdict(finding) for finding in done.audit.findings]
    told = done.figures
    lines = [
        f"{_printable(prepared.audit.store)}: {prepared.audit.verdict}",
        f"{_printable(document['target'])}: {done.audit.verdict}; {counted(told['kept_records'], 'record')}, "
        f"{counted(told['made_units'], 'unit')} in {counted(told['made_queues'], 'queue')}, "
        f"{counted(told['made_index_files'], 'index file')}; "
        f"{counted(told['lost_messages'], 'lost message')}, {counted(told['filler_records'], 'filler')} instead",
        "",
        f"verdict of the copy: {done.audit.verdict}",
    ]
    return Outcome("audit", done.audit.verdict, figures, ("seconds",), findings, extra=extra), "\n".join(lines)


def _text(
    audits: Sequence["StoreAudit"],
    verdict: str,
    figures: dict[str, float | int],
    stores: Sequence[Mapping[str, Any]] = (),
) -> str:
    from tornpage.pipeline.audit.advice import advice_of

    lines = []
    for audited, store in zip(audits, stores, strict=True):
        told = audited.figures
        lines.append(
            f"{_printable(audited.store)}: {audited.verdict}; {counted(told['records'], 'record')} in "
            f"{counted(told['log_files'], 'log file')}, {counted(told['units'], 'unit')} in "
            f"{counted(told['queues'], 'queue')}"
        )
        lines += _summary_lines(store.get("summary"))
        for finding in audited.findings:
            place = _printable(finding.file)
            if finding.position is not None:
                place += f" position {finding.position}"
            lines.append(
                f"  {finding.severity}: {finding.code} {place}: {_printable(finding.message)}; {finding.remedy}"
            )
        worst = dict.fromkeys(each.code for each in audited.findings if each.severity != "note" or each.code in _OPEN)
        for code in worst:
            advice = advice_of(code)
            lines.append(f"  {code}: RocketMQ 4.9.3 {advice.rocketmq}")
            lines.append(f"  {'':<{len(code)}}  tornpage {advice.tornpage}")
    damages, tears, notes = figures["damages"], figures["tears"], figures["notes"]
    lines += [
        "",
        f"{counted(damages, 'damage')}, {counted(tears, 'tear')}, {counted(notes, 'note')} in "
        f"{figures['seconds']:.1f} s",
    ]
    return "\n".join([*lines, f"verdict: {verdict}"])


def _summary_lines(summary: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what an operator asks first: what is lost, of which queue, how large, how old."""
    if summary is None:
        return
    if summary["first_ms"] is not None:
        times = f"{time_text(summary['first_ms'])} to {time_text(summary['last_ms'])}"
        yield f"  {summary['total_bytes']:,} bytes of files; messages stored {times}"
    said = [f"{summary[name]:,} {name.replace('_', ' ')}" for name in ("lost", "unreachable", "at_risk")]
    yield f"  messages: {', '.join(said)}"
    if summary["queues"]:
        yield f"  {'queue':<40} {'messages':>10} {'lost':>8} {'unreachable':>12} {'at risk':>8}"
        for row in summary["queues"][:_ROWS_SHOWN]:
            name = f"{_printable(row['topic'])}/{row['queue_id']}"
            yield (
                f"  {name:<40} {row['messages']:>10,} {row['lost']:>8,} {row['unreachable']:>12,} {row['at_risk']:>8,}"
            )
        yield from _more(len(summary["queues"]), "queues")
    if summary["topics"]:
        yield f"  {'topic':<40} {'records':>10} {'log bytes':>14} {'queue bytes':>12}  last stored"
        for row in summary["topics"][:_ROWS_SHOWN]:
            last = time_text(row["last_ms"]) if row["records"] else "never"
            yield (
                f"  {_printable(row['topic']):<40} {row['records']:>10,} {row['log_bytes']:>14,} "
                f"{row['queue_bytes']:>12,}  {last}"
            )
        yield from _more(len(summary["topics"]), "topics")


def _more(rows: int, what: str) -> Iterator[str]:
    if rows > _ROWS_SHOWN:
        yield f"  … {rows - _ROWS_SHOWN:,} more {what}; --json lists them"


def _printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
