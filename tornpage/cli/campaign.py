"""`tornpage campaign`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, at_fault, emit, refuse, say
from tornpage.cli.progress import counted_progress
from tornpage.run.directory import write_run
from tornpage.run.history import append_run, prepare_history
from tornpage.run.writing import refuse_store_directory

if TYPE_CHECKING:
    from tornpage.peers.exploring import PeerPlan, Writer
    from tornpage.peers.rocketmq.store import Mode
    from tornpage.pipeline.campaign.aggregates import Counted
    from tornpage.pipeline.campaign.peers import PeerShard
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.explore.crashes.rows import Row
    from tornpage.properties.explore.crashes.scheduling import Strategy
    from tornpage.properties.explore.crashes.shards import Shard
    from tornpage.properties.program.case import Disk

__all__ = ["campaign_outcome", "command"]


@click.command("campaign")
@click.option(
    "--shards", type=click.IntRange(1, 1000), default=4, show_default=True, help="Number of shards, each with a canary."
)
@click.option(
    "--states-per-shard",
    type=click.IntRange(min=1),
    default=2500,
    show_default=True,
    help="Counted crash states of a shard.",
)
@click.option(
    "--file-bytes",
    metavar="BYTES",
    type=click.IntRange(1024, 1 << 20),
    default=16384,
    show_default=True,
    help="Size of a log file.",
)
@options.strategy_option
@options.disk_option
@options.bug_option
@options.seed_option
@click.option("--master", default="local[2]", show_default=True, help="Spark master URL.")
@click.option(
    "--engine",
    type=click.Choice(["spark", "serial"]),
    default="spark",
    show_default=True,
    help="Spark, or this process.",
)
@click.option("--out", type=click.Path(file_okay=False), default=None, help="Directory for the rows, as Parquet.")
@click.option("--resume", is_flag=True, help="Continue in --out: skip shards with complete rows.")
@options.peer_run_options
@options.history_option
@options.json_option
def command(
    shards: int,
    states_per_shard: int,
    file_bytes: int,
    strategy: "Strategy | None",
    disk: "Disk",
    bug: str,
    seed: int,
    master: str,
    engine: str,
    out: str | None,
    resume: bool,
    peer: str | None,
    every: int | None,
    writer: "Writer | None",
    peer_mode: "Mode | None",
    shrink: float | None,
    history: str | None,
    as_json: bool,
) -> None:
    """Run `explore crashes` over seed ranges in Spark tasks, with rows as Parquet.

    \b
    tornpage campaign --shards 8 --out RUN
    tornpage campaign --shards 8 --out RUN --resume
    tornpage campaign --shards 2 --engine serial      (the same rows, in this process)
    tornpage campaign --shards 8 --history RUNS       (then: tornpage report --history RUNS)
    tornpage campaign --peer rocketmq:4.9.3 --writer peer --disk journal --shards 40 --out RUN

    With --peer our store and the peer open each crash image (docs/peers.md). Without it the result hash equals that of
    `tornpage explore` with equal states and states per shard.
    """
    from tornpage.peers.exploring import EVERY, PeerPlan
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.explore.crashes.scheduling import DEFAULT_STRATEGY
    from tornpage.properties.program.case import Settings

    if resume and out is None:
        refuse("--resume needs the --out directory of the campaign")
    if out is not None:
        refuse_store_directory(Path(out), option="--out")
    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)
    if peer is not None:
        for name, given in (("strategy", strategy), ("history", history)):
            if given:
                refuse(f"--{name} is not for runs with --peer; leave it out")
        peers = PeerPlan(
            settings, seed, states_per_shard, None, every or EVERY, 1, writer or "ours", peer_mode or "light"
        )
        outcome, text = peer_campaign_outcome(
            peers, peer, shards=shards, master=master, engine=engine, out=out, resume=resume, shrink=shrink
        )
        if out is not None:
            write_run(Path(out), outcome)
        emit(outcome, as_json=as_json, text=text)
    given_for_peer = {"every": every, "writer": writer, "peer-mode": peer_mode, "shrink-seconds": shrink}
    for name, asked in given_for_peer.items():
        if asked is not None:
            refuse(f"--{name} is for runs with a peer; give --peer too")
    prepare_history(history)
    started = datetime.now(UTC)
    plan = Plan(
        settings,
        seed=seed,
        states=shards * states_per_shard,
        strategy=strategy or DEFAULT_STRATEGY,
        shard_states=states_per_shard,
    )
    outcome, text = campaign_outcome(plan, master=master, engine=engine, out=out, resume=resume)
    if out is not None:
        write_run(Path(out), outcome)
    append_run(history, outcome, started=started)
    emit(outcome, as_json=as_json, text=text)


def campaign_outcome(
    plan: "Plan", *, master: str = "local[2]", engine: str = "spark", out: str | None = None, resume: bool = False
) -> tuple[Outcome, str]:
    """Run the shards of a plan; return the outcome and its text."""
    from tornpage.pipeline.campaign.aggregates import counted_here
    from tornpage.pipeline.campaign.campaign import complete_shards, prepare_output, read_rows
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.spark.session import SparkUnavailable
    from tornpage.properties.explore.crashes.rows import that_count
    from tornpage.properties.explore.crashes.shards import FAILURES_MAX
    from tornpage.render.campaign import shards_outcome

    planned = [*plan.shards()]
    started = perf_counter()
    with _directory(out) as directory:
        try:
            prepare_output(directory, planned, resume=resume)
            skipped = len(complete_shards(directory))
            rows, counted, start_s, stopped = _run(planned, directory, engine, master, kept=out is not None)
            rows = that_count(read_rows(directory, planned), FAILURES_MAX) if stopped else rows
        except (OutputTaken, SparkUnavailable) as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"cannot write {error.filename or directory}: {error.strerror}; name another --out directory")
    seconds = perf_counter() - started
    measured = {"seconds": seconds, "start_s": start_s, "skipped": skipped}
    return shards_outcome(planned, rows, counted or counted_here(rows), stopped=stopped, measured=measured)


def peer_campaign_outcome(
    plan: "PeerPlan",
    peer: str,
    *,
    shards: int,
    master: str,
    engine: str,
    out: str | None,
    resume: bool,
    shrink: float | None,
) -> tuple[Outcome, str]:
    """Run the shards of a plan with a peer; return the outcome and its text.

    Finished shards are kept in `out`.
    """
    from tornpage.outcomes.peers import releases_named, shrink_peer_examples
    from tornpage.peers.shrinking import SECONDS
    from tornpage.pipeline.campaign import peers as campaigns
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.spark.session import SparkUnavailable, require_packages
    from tornpage.properties.contract import HarnessError
    from tornpage.render.peers import peer_command, peer_outcome

    (release,) = releases_named((peer,))
    assert plan.states is not None
    planned = campaigns.peer_shards(release, plan, shards=shards, states_per_shard=plan.states)
    command = peer_command(plan, peer, shards=shards)
    say(command)
    stopped = ""
    started = perf_counter()
    with _directory(out) as directory:
        try:
            require_packages("pyarrow")
            campaigns.prepare_peer_output(directory, planned, resume=resume)
            stopped = _run_peers(planned, directory, engine, master)
            result = campaigns.explored_in(directory, planned)
        except (OutputTaken, SparkUnavailable) as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"cannot write {error.filename or directory}: {error.strerror}; name another --out directory")
        if result.lost and not result.states:
            return at_fault("campaign", HarnessError(result.lost[0]), seed=plan.seed)
        result.seconds, result.interrupted = perf_counter() - started, stopped == "interrupted"
        if stopped and not result.interrupted:
            result.lost.append(stopped)
        if out is not None and not stopped:
            shrink_peer_examples(result, release, plan, seconds=SECONDS if shrink is None else shrink)
        return peer_outcome(result, plan, command=command, out=out, verb="campaign")


def _run_peers(shards: list["PeerShard"], out: Path, engine: str, master: str) -> str:
    """Run the shards; return the reason of an early stop, or an empty text."""
    from tornpage.pipeline.campaign.peers import peer_campaign, run_peers_serial
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures
    from tornpage.pipeline.spark.session import spark_session

    states = sum(shard.plan.states or 0 for shard in shards)
    try:
        with counted_progress("campaign", total=states, unit="states") as show:

            def ended(done: int) -> None:
                show(states * done / len(shards), f"{done} of {len(shards)} shards")

            if engine == "serial":
                run_peers_serial(shards, out, progress=ended)
            else:
                with spark_session("tornpage campaign", master=master, short=True) as spark:
                    peer_campaign(spark, shards, out, progress=ended)
    except spark_failures() as error:
        return reason_of(error)
    except KeyboardInterrupt:
        return "interrupted"
    return ""


def _run(
    shards: list["Shard"], out: Path, engine: str, master: str, *, kept: bool
) -> tuple[list["Row"], "Counted | None", float, str]:
    """Run the shards.

    Return the rows that count, Spark's sums of them, the seconds of its start, and the reason of an early stop, or an
    empty text.
    """
    from tornpage.pipeline.campaign.aggregates import counted_in_spark
    from tornpage.pipeline.campaign.campaign import campaign, run_serial
    from tornpage.pipeline.spark.interrupts import apart
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures
    from tornpage.pipeline.spark.session import require_packages, spark_session
    from tornpage.properties.explore.crashes.rows import that_count
    from tornpage.properties.explore.crashes.shards import FAILURES_MAX

    start_s = 0.0
    try:
        if engine == "serial":
            if kept:
                require_packages("pyarrow")
            with _shards_progress(shards) as show:
                ran = run_serial(shards, out if kept else None, progress=show)
            return that_count(ran, FAILURES_MAX), None, start_s, ""
        started = perf_counter()
        with (
            _shards_progress(shards) as show,
            spark_session("tornpage campaign", master=master, short=True) as spark,
        ):
            start_s = perf_counter() - started
            rows = that_count(campaign(spark, shards, out, progress=show), FAILURES_MAX)
            shards_told = sorted({row["shard"] for row in rows})
            return rows, apart(spark, lambda: counted_in_spark(spark, out, shards_told)), start_s, ""
    except spark_failures() as error:
        return [], None, start_s, reason_of(error)
    except KeyboardInterrupt:
        return [], None, start_s, "interrupted"


@contextmanager
def _shards_progress(shards: list["Shard"]) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of finished shards; the bar counts states."""
    states = sum(shard.states for shard in shards)
    with counted_progress("campaign", total=states, unit="states") as show:
        yield lambda done: show(states * done / len(shards), f"{done} of {len(shards)} shards")


@contextmanager
def _directory(out: str | None) -> Iterator[Path]:
    """Yield the directory for the rows; a temporary one without a name."""
    if out is not None:
        yield Path(out)
        return
    from tornpage.properties.scratch import scratch_directory

    with scratch_directory("tornpage-campaign-") as scratch:
        yield Path(scratch)
