"""`tornpage campaign`."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse, warn
from tornpage.run.directory import write_run
from tornpage.run.history import append_run, prepare_history
from tornpage.run.writing import refuse_store_directory

if TYPE_CHECKING:
    from tornpage.outcomes.sharded.campaigns import Engine
    from tornpage.peers.exploring import Writer
    from tornpage.peers.rocketmq.store import Mode
    from tornpage.properties.explore.crashes.scheduling import Strategy
    from tornpage.properties.explore.foreign.campaign import Start
    from tornpage.properties.program.case import Disk

__all__ = ["command"]

_OF_OUR_STORE = ("strategy", "history", "compiled")
_OF_PEERS = ("every", "writer", "peer-mode", "shrink-seconds")
_OF_TARGETS = ("answer-seconds", "from")
"""Options that only some campaigns have."""


@click.command("campaign")
@click.option(
    "--shards", type=click.IntRange(min=1), default=4, show_default=True, help="Number of shards, each with a canary."
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
@options.compiled_option
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
@click.option("--resume", is_flag=True, help="Continue in --out: after the kept rows of each shard.")
@click.option(
    "--keep-every",
    metavar="SECONDS",
    type=options.Seconds(min=0),
    default=None,
    help="Time after which the rows of a shard are kept; at most this much work is lost (60).",
)
@click.option(
    "--plan", "only_plan", is_flag=True, help="Print the cost of the campaign, from a trial; run nothing else."
)
@click.option("--cores", type=click.IntRange(min=1), default=None, help="With --plan: cores, if --master does not say.")
@options.peer_run_options
@click.option("--target", metavar="SPEC", default=None, help="A store of yours instead (docs/test-your-store.md).")
@click.option(
    "--answer-seconds",
    type=options.Seconds(min=0.1, max=3600),
    default=None,
    help="With --target: longest time for an answer of the store (10).",
)
@click.option(
    "--from",
    "start",
    type=click.Choice(["open", "first-answer"]),
    default=None,
    help="With --target: where crashes begin (open).",
)
@options.history_option
@options.json_option
def command(
    shards: int,
    states_per_shard: int,
    file_bytes: int,
    strategy: "Strategy | None",
    compiled: bool,
    disk: "Disk",
    bug: str,
    seed: int,
    master: str,
    engine: "Engine",
    out: str | None,
    resume: bool,
    keep_every: float | None,
    only_plan: bool,
    cores: int | None,
    peer: str | None,
    every: int | None,
    writer: "Writer | None",
    peer_mode: "Mode | None",
    shrink: float | None,
    target: str | None,
    answer_seconds: float | None,
    start: "Start | None",
    history: str | None,
    as_json: bool,
) -> None:
    """Run `explore crashes` over seed ranges in Spark tasks, with rows as Parquet.

    \b
    tornpage campaign --shards 8 --out RUN
    tornpage campaign --shards 8 --out RUN --resume
    tornpage campaign --shards 10000 --states-per-shard 100000 --plan --cores 100
    tornpage campaign --shards 2 --engine serial      (the same rows, in this process)
    tornpage campaign --shards 8 --history RUNS       (then: tornpage report --history RUNS)
    tornpage campaign --peer rocketmq:4.9.3 --writer peer --disk journal --shards 40 --out RUN
    tornpage campaign --target examples/toy_store.py:ToyStore --states-per-shard 200 --out RUN

    With --target the shards are those of `explore target`. With --peer our store and the peer open each crash image
    (docs/peers.md). Without them the result hash equals that of `tornpage explore` with equal states and states per
    shard.
    """
    given = {
        "peer": peer, "strategy": strategy, "compiled": compiled, "history": history, "plan": only_plan,
        "keep-every": keep_every, "every": every, "writer": writer, "peer-mode": peer_mode, "shrink-seconds": shrink,
        "cores": cores, "answer-seconds": answer_seconds, "from": start, "out": out, "resume": resume,
    }  # fmt: skip
    if resume and out is None and not only_plan:
        refuse("--resume needs the --out directory of the campaign")
    if out is not None:
        refuse_store_directory(Path(out), option="--out")
        if resume and not (Path(out).is_dir() and any(Path(out).iterdir())):
            warn(f"{out} has no campaign to resume, so it begins now")
    if cores is not None and not only_plan:
        refuse("--cores is for --plan")
    if only_plan:
        _refuse_given(given, ("out", "resume", "history"), "is not for --plan, which runs nothing; leave it out")
    if target is not None:
        names = ("peer", *_OF_OUR_STORE, *_OF_PEERS)
        _refuse_given(given, names, "is not for runs with --target; leave it out")
        outcome, text = _target_campaign(
            target, bug=bug, disk=disk, seed=seed, answer_seconds=answer_seconds, start=start or "open",
            states=states_per_shard, shards=shards, master=master, engine=engine, out=out, resume=resume,
            keep_every=keep_every, only_plan=only_plan, cores=cores,
        )  # fmt: skip
        if out is not None:
            write_run(Path(out), outcome)
        emit(outcome, as_json=as_json, text=text)
    _refuse_given(given, _OF_TARGETS, "is for a store of yours; give --target too")
    if peer is not None:
        _refuse_given(given, _OF_OUR_STORE, "is not for runs with --peer; leave it out")
        outcome, text = _peer_campaign(
            peer, file_bytes=file_bytes, bug=bug, disk=disk, seed=seed, every=every, writer=writer, mode=peer_mode,
            shrink=shrink, states=states_per_shard, shards=shards, master=master, engine=engine, out=out, resume=resume,
            keep_every=keep_every, only_plan=only_plan, cores=cores,
        )  # fmt: skip
        if out is not None:
            write_run(Path(out), outcome)
        emit(outcome, as_json=as_json, text=text)
    _refuse_given(given, _OF_PEERS, "is for runs with a peer; give --peer too")
    from tornpage.outcomes.sharded.campaigns import campaign_outcome, campaign_plan_outcome
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.explore.crashes.scheduling import DEFAULT_STRATEGY
    from tornpage.properties.program.case import Settings

    prepare_history(history)
    started = datetime.now(UTC)
    plan = Plan(
        Settings(file_bytes=file_bytes, disk=disk, bug=bug, compiled=compiled),
        seed=seed,
        states=shards * states_per_shard,
        strategy=strategy or DEFAULT_STRATEGY,
        shard_states=states_per_shard,
    )
    if only_plan:
        outcome, text = campaign_plan_outcome(plan, cores=1 if engine == "serial" else cores, master=master)
        emit(outcome, as_json=as_json, text=text)
    outcome, text = campaign_outcome(
        plan, master=master, engine=engine, out=out, resume=resume, keep_every_s=keep_every
    )
    if out is not None:
        write_run(Path(out), outcome)
    append_run(history, outcome, started=started)
    emit(outcome, as_json=as_json, text=text)


def _refuse_given(given: Mapping[str, object], names: Iterable[str], reason: str) -> None:
    """Refuse the first of some options that was given."""
    for name in names:
        if given[name] is not None and given[name] is not False:
            refuse(f"--{name} {reason}")


def _peer_campaign(
    peer: str,
    *,
    file_bytes: int,
    bug: str,
    disk: "Disk",
    seed: int,
    every: int | None,
    writer: "Writer | None",
    mode: "Mode | None",
    shrink: float | None,
    states: int,
    shards: int,
    master: str,
    engine: "Engine",
    out: str | None,
    resume: bool,
    keep_every: float | None,
    only_plan: bool,
    cores: int | None,
) -> tuple[Outcome, str]:
    """Run a campaign in which a peer opens the same crash images."""
    from tornpage.outcomes.sharded.campaigns import peer_campaign_outcome, peer_plan_outcome
    from tornpage.peers.exploring import EVERY, PeerPlan
    from tornpage.properties.program.case import Settings

    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)
    plan = PeerPlan(settings, seed, states, None, every or EVERY, 1, writer or "ours", mode or "light")
    if only_plan:
        return peer_plan_outcome(plan, peer, shards=shards, cores=1 if engine == "serial" else cores, master=master)
    return peer_campaign_outcome(
        plan, peer, shards=shards, master=master, engine=engine, out=out, resume=resume, keep_every_s=keep_every,
        shrink=shrink,
    )  # fmt: skip


def _target_campaign(
    target: str,
    *,
    bug: str,
    disk: "Disk",
    seed: int,
    answer_seconds: float | None,
    start: "Start",
    states: int,
    shards: int,
    master: str,
    engine: "Engine",
    out: str | None,
    resume: bool,
    keep_every: float | None,
    only_plan: bool,
    cores: int | None,
) -> tuple[Outcome, str]:
    """Run a campaign of a foreign store.

    Workers have other directories, so that paths become absolute.
    """
    from tornpage.outcomes.sharded.campaigns import target_campaign_outcome, target_plan_outcome
    from tornpage.outcomes.targets import absolute_target, usable_settings
    from tornpage.properties.explore.foreign.campaign import TargetPlan

    settings = usable_settings(absolute_target(target), bug=bug, disk=disk, answer_seconds=answer_seconds)
    plan = TargetPlan(settings, seed, states, start=start)
    if only_plan:
        return target_plan_outcome(plan, shards=shards, cores=1 if engine == "serial" else cores, master=master)
    return target_campaign_outcome(
        plan, shards=shards, master=master, engine=engine, out=out, resume=resume, keep_every_s=keep_every
    )
