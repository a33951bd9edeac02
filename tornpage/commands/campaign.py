"""`tornpage campaign`."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

if TYPE_CHECKING:
    from pipeline.campaign import Row, Shard
    from properties.case import Settings

__all__ = ["campaign_outcome", "command"]

_TIMINGS = ("seconds", "states_per_s", "start_s", "task_seconds")


@click.command("campaign")
@click.option("--shards", type=click.IntRange(1, 1000), default=4, show_default=True, help="Tasks, each with a canary.")
@click.option(
    "--states-per-shard", type=click.IntRange(min=1), default=2500, show_default=True, help="Counted crash states."
)
@click.option("--file-bytes", type=click.IntRange(1024, 1 << 20), default=16384, show_default=True)
@options.disk_option
@options.bug_option
@options.seed_option
@click.option("--master", default="local[2]", show_default=True, help="Spark master, as Spark writes it.")
@click.option("--engine", type=click.Choice(["spark", "serial"]), default="spark", show_default=True, help="Who runs.")
@click.option("--out", type=click.Path(file_okay=False), default=None, help="Directory for the rows, as Parquet.")
@click.option("--resume", is_flag=True, help="Go on in --out: skip the shards whose rows are complete.")
@options.json_option
def command(
    shards: int,
    states_per_shard: int,
    file_bytes: int,
    disk: str,
    bug: str,
    seed: int,
    master: str,
    engine: str,
    out: str | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Run `explore` over seed ranges in Spark tasks; rows as Parquet, with the result hash of the serial run.

    \b
    tornpage campaign --shards 8 --out RUN
    tornpage campaign --shards 8 --out RUN --resume
    tornpage campaign --shards 2 --engine serial      (the same rows, in this process)
    """
    if resume and out is None:
        refuse("--resume needs the --out directory of the campaign to go on with")
    outcome, text = campaign_outcome(
        shards,
        states_per_shard,
        file_bytes=file_bytes,
        disk=disk,
        bug=bug,
        seed=seed,
        master=master,
        engine=engine,
        out=out,
        resume=resume,
    )
    emit(outcome, as_json=as_json, text=text)


def campaign_outcome(
    shards: int,
    states_per_shard: int,
    *,
    file_bytes: int = 16384,
    disk: str = "posix-strict",
    bug: str = "",
    seed: int = 0,
    master: str = "local[2]",
    engine: str = "spark",
    out: str | None = None,
    resume: bool = False,
) -> tuple[Outcome, str]:
    """Run a campaign; return its outcome and its text."""
    from pipeline.campaign import OutputTaken, complete_shards, plan_shards, prepare_output, read_rows
    from pipeline.session import SparkUnavailable
    from properties.case import Settings

    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)  # type: ignore[arg-type]
    planned = plan_shards(shards, states=states_per_shard, seed=seed, settings=settings)
    started = perf_counter()
    with _directory(out) as directory:
        try:
            prepare_output(directory, planned, resume=resume)
            skipped = len(complete_shards(directory))
            rows, start_s, stopped = _run(planned, directory, engine, master, kept=out is not None)
            rows = read_rows(directory, planned) if stopped else rows
        except (OutputTaken, SparkUnavailable) as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"cannot write {error.filename or directory}: {error.strerror}; name another --out directory")
    seconds = perf_counter() - started
    outcome = _outcome(planned, rows, settings, stopped, {"seconds": seconds, "start_s": start_s, "skipped": skipped})
    return outcome, _text(outcome, stopped)


def _run(shards: list["Shard"], out: Path, engine: str, master: str, *, kept: bool) -> tuple[list["Row"], float, str]:
    """Return the rows, the seconds that Spark took to start, and why it stopped early (empty: it did not)."""
    from pipeline.campaign import campaign, run_serial
    from pipeline.session import require_packages, spark_session

    start_s = 0.0
    try:
        if engine == "serial":
            if kept:
                require_packages("pyarrow")
            return run_serial(shards, out if kept else None), start_s, ""
        started = perf_counter()
        with spark_session("tornpage campaign", master=master, short=True) as spark:
            start_s = perf_counter() - started
            from py4j.protocol import Py4JError  # type: ignore[import-untyped]
            from pyspark.errors import PySparkException

            try:
                return campaign(spark, shards, out), start_s, ""
            except (Py4JError, PySparkException) as error:
                return [], start_s, str(error).strip().splitlines()[0]
    except KeyboardInterrupt:
        return [], start_s, "interrupted"


def _outcome(
    shards: list["Shard"], rows: list["Row"], settings: "Settings", stopped: str, measured: dict[str, float]
) -> Outcome:
    from pipeline.campaign import result_hash, silent_faults

    histories = [row for row in rows if row["kind"] == "history"]
    ends = [row for row in rows if row["kind"] == "shard"]
    silent = silent_faults(histories, settings)
    findings = _findings(histories, ends, silent)
    if stopped and stopped != "interrupted":
        findings.append({"code": "stopped", "severity": "harness", "sentence": f"{stopped}; go on with --resume"})
    order = (("harness", "harness"), ("broken", "broken"), ("vacuous", "vacuous"))
    severities = {finding["severity"] for finding in findings}
    verdict = next((verdict for severity, verdict in order if severity in severities), "holds")
    task_seconds = sum(row["seconds"] for row in ends)
    states = sum(row["states"] for row in histories)
    figures: dict[str, float | int] = {
        "shards": len(shards),
        "shards_complete": len(ends),
        "shards_skipped": measured["skipped"],
        "states": states,
        "all_states": sum(row["all_states"] for row in histories),
        "histories": len(histories),
        "distinct_images": sum(row["images"] for row in histories),
        "distinct_recovered": sum(row["recovered"] for row in histories),
        "proven_legal": sum(row["proven_legal"] for row in histories),
        "repeated_histories": sum(row["repeated"] for row in histories),
        "broken_histories": sum(row["verdict"] == "broken" for row in histories),
        "canaries": sum(bool(row["canary"]) for row in ends),
        "seconds": measured["seconds"],
        "start_s": measured["start_s"],
        "task_seconds": task_seconds,
        "states_per_s": states / max(measured["seconds"] - measured["start_s"], 1e-9),
    }
    for kind in ("armed", "fired", "mattered", "judged"):
        total: Counter[str] = Counter()
        for row in histories:
            total.update(row[kind])
        figures |= {f"{kind}_{name}": count for name, count in total.items()}
    return Outcome(
        "campaign",
        verdict,
        figures,
        _TIMINGS,
        findings,
        seed=shards[0].seed,
        extra={"result_hash": result_hash(rows)},
        interrupted=stopped == "interrupted",
    )


def _findings(histories: list["Row"], ends: list["Row"], silent: list[str]) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = []
    for row in histories:
        if row["verdict"] != "holds":
            findings.append(
                {
                    "code": f"contract-{row['contract']}" if row["contract"] is not None else "harness",
                    "severity": row["verdict"],
                    "sentence": row["sentence"],
                    "history": row["seed"],
                    "token": row["token"],
                }
            )
    findings += [
        {"code": "no-canary", "severity": "vacuous", "sentence": f"shard {row['shard']}: no planted bug was caught"}
        for row in ends
        if not row["canary"]
    ]
    if ends:
        findings += [{"code": "never-fired", "severity": "vacuous", "sentence": f"{f} never fired"} for f in silent]
    else:
        findings.append({"code": "no-shards", "severity": "vacuous", "sentence": "no shard was finished"})
    return findings


def _text(outcome: Outcome, stopped: str) -> str:
    figures = outcome.figures
    lines = [
        f"{figures['states']:,} crash states counted ({figures['all_states']:,} in all) from {figures['histories']:,} "
        f"histories in {figures['shards_complete']} of {figures['shards']} shards, {figures['seconds']:.1f} s",
        f"{figures['distinct_images']:,} images distinct within their histories, {figures['proven_legal']:,} proven "
        f"legal, {figures['repeated_histories']} histories repeated and equal, {figures['canaries']} canaries caught",
    ]
    for finding in outcome.findings[:10]:
        lines.append(f"{finding['severity']}: {finding['code']}: {finding['sentence']}")
        if finding.get("token"):
            lines.append(f"  tornpage replay {finding['token']}")
    if len(outcome.findings) > 10:
        lines.append(f"and {len(outcome.findings) - 10} more findings")
    verdict = "interrupted" if stopped == "interrupted" else outcome.verdict
    return "\n".join([*lines, "", f"result hash: {outcome.extra['result_hash']}", f"verdict: {verdict}"])


@contextmanager
def _directory(out: str | None) -> Iterator[Path]:
    """Yield the directory for the rows; without a name it is gone afterwards."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="tornpage-campaign-") as scratch:
        yield Path(scratch)
