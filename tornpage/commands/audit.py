"""`tornpage audit`."""

from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

if TYPE_CHECKING:
    from pipeline.audit import StoreAudit

__all__ = ["audit_outcome", "command"]

_TIMINGS = ("seconds", "start_s")
_SMALL_BYTES = 64 << 20
"""Below this the start of Spark costs more than the audit."""


@click.command("audit")
@click.argument("stores", nargs=-1, required=True, type=click.Path(), metavar="STORE...")
@click.option("--engine", type=click.Choice(["spark", "plain"]), default="spark", show_default=True, help="Who reads.")
@click.option("--master", default="local[2]", show_default=True, help="Spark master, as Spark writes it.")
@click.option(
    "--file-bytes", type=click.IntRange(min=1), default=None, help="Size of a log file, if it cannot be seen."
)
@options.json_option
def command(stores: tuple[str, ...], engine: str, master: str, file_bytes: int | None, as_json: bool) -> None:
    """Check that log and consume queues of store directories agree. Takes no lock, recovers and writes nothing.

    \b
    tornpage audit /var/rocketmq/store
    tornpage audit STORE STORE --master 'local[*]' --json
    tornpage audit STORE --engine plain       (one process, without Spark and Java)
    """
    outcome, text = audit_outcome(stores, engine=engine, master=master, file_bytes=file_bytes)
    emit(outcome, as_json=as_json, text=text)


def audit_outcome(
    stores: tuple[str, ...], *, engine: str = "spark", master: str = "local[2]", file_bytes: int | None = None
) -> tuple[Outcome, str]:
    """Audit stores; return the outcome and its text. The verdict is the worst one of a store."""
    from pipeline.session import SparkUnavailable
    from properties.inspection import InspectError

    started = perf_counter()
    try:
        audits, start_s = _audits(stores, engine, master, file_bytes)
    except (InspectError, SparkUnavailable) as error:
        refuse(str(error))
    figures: dict[str, float | int] = {"stores": len(audits), "seconds": perf_counter() - started, "start_s": start_s}
    for audited in audits:
        for name, count in audited.figures.items():
            figures[name] = figures.get(name, 0) + count
    verdicts = [audited.verdict for audited in audits]
    verdict = next((worst for worst in ("broken", "unknown") if worst in verdicts), "holds")
    findings = [asdict(finding) for audited in audits for finding in audited.findings]
    extra = {"stores": [{"store": audited.store, "verdict": audited.verdict} for audited in audits], "engine": engine}
    return Outcome("audit", verdict, figures, _TIMINGS, findings, extra=extra), _text(audits, verdict, figures)


def _audits(
    stores: tuple[str, ...], engine: str, master: str, file_bytes: int | None
) -> tuple[list["StoreAudit"], float]:
    """Return the audits, and the seconds that Spark took to start."""
    from pipeline.audit import audit, audit_store
    from pipeline.stores import plan_store

    if engine == "plain":
        return [audit_store(store, file_bytes=file_bytes) for store in stores], 0.0
    from pipeline.session import spark_session

    plans = [plan_store(number, store, file_bytes=file_bytes) for number, store in enumerate(stores)]
    log_bytes = sum(part.size_bytes for plan in plans for part in plan.log_parts)
    is_small = log_bytes + sum(part.size_bytes for plan in plans for part in plan.queue_parts) < _SMALL_BYTES
    started = perf_counter()
    with spark_session(
        "tornpage audit", master=master, shuffle_partitions=1 if is_small else 8, short=is_small
    ) as spark:
        start_s = perf_counter() - started
        return audit(spark, stores, file_bytes=file_bytes), start_s


def _text(audits: list["StoreAudit"], verdict: str, figures: dict[str, float | int]) -> str:
    lines = []
    for audited in audits:
        told = audited.figures
        lines.append(
            f"{_printable(audited.store)}: {audited.verdict}; {told['records']:,} records in {told['log_files']:,} log "
            f"files, {told['units']:,} units in {told['queues']:,} queues"
        )
        for finding in audited.findings:
            place = _printable(finding.file)
            if finding.position is not None:
                place += f" position {finding.position}"
            lines.append(
                f"  {finding.severity}: {finding.code} {place}: {_printable(finding.message)}; {finding.remedy}"
            )
    damages, tears, notes = figures["damages"], figures["tears"], figures["notes"]
    lines += ["", f"{damages:,} damages, {tears:,} tears, {notes:,} notes in {figures['seconds']:.1f} s"]
    return "\n".join([*lines, f"verdict: {verdict}"])


def _printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
