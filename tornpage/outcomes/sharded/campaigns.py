"""Run campaigns in shards; return their outcomes and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from tornpage.cli.document import Outcome, at_fault, refuse, say
from tornpage.cli.progress import counted_progress

if TYPE_CHECKING:
    from tornpage.peers.exploring import PeerPlan
    from tornpage.pipeline.campaign.files import SharedPlace
    from tornpage.pipeline.campaign.peers import PeerShard
    from tornpage.pipeline.campaign.summary import Summary
    from tornpage.pipeline.campaign.targets import TargetShard
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.explore.crashes.shards import Shard
    from tornpage.properties.explore.foreign.campaign import TargetPlan

__all__ = ["Engine", "campaign_outcome", "campaign_plan_outcome", "peer_campaign_outcome", "target_campaign_outcome"]

Engine = Literal["spark", "serial"]


def campaign_outcome(
    plan: Plan,
    *,
    master: str = "local[2]",
    engine: Engine = "spark",
    out: str | None = None,
    resume: bool = False,
    keep_every_s: float | None = None,
) -> tuple[Outcome, str]:
    """Run the shards of a plan; return the outcome and its text."""
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.spark.session import SparkUnavailable
    from tornpage.properties.explore.crashes.campaign import PlannedShards
    from tornpage.render.campaign import shards_outcome

    planned = PlannedShards(plan)
    started = perf_counter()
    try:
        if engine == "serial" and out is None:
            summary, measured, stopped = _in_memory(planned)
        else:
            with _directory(out) as directory:
                summary, measured, stopped = _in_files(planned, directory, engine, master, resume, keep_every_s)
    except (OutputTaken, SparkUnavailable) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write {error.filename or out}: {error.strerror}; name another --out directory")
    measured["seconds"] = perf_counter() - started
    return shards_outcome(planned, summary, stopped=stopped, measured=measured)


def campaign_plan_outcome(plan: Plan, *, cores: int | None, master: str) -> tuple[Outcome, str]:
    """Return what a campaign will cost, from a short trial, and its text."""
    from tornpage.pipeline.campaign.campaign import KEEP_EVERY_S
    from tornpage.pipeline.campaign.cost import cores_of, cost_of, measured_trial
    from tornpage.pipeline.spark.session import SparkUnavailable, require_packages
    from tornpage.properties.explore.crashes.campaign import PlannedShards
    from tornpage.render.campaign import cost_outcome

    cores = cores_of(master) if cores is None else cores
    if cores is None:
        refuse(f"the master {master!r} does not say how many cores it has; give --cores too")
    try:
        require_packages("pyarrow")
    except SparkUnavailable as error:
        refuse(str(error))
    shards = PlannedShards(plan)
    trial = measured_trial(shards[0])
    cost = cost_of(trial, shards=len(shards), states_per_shard=plan.shard_states, cores=cores)
    return cost_outcome(trial, cost, seed=plan.seed, keep_every_s=KEEP_EVERY_S)


def _in_memory(shards: Sequence[Shard]) -> tuple[Summary, dict[str, float], str]:
    """Run the shards without files; return their sums, and why they ended early."""
    from tornpage.pipeline.campaign.campaign import rows_of_shard
    from tornpage.pipeline.campaign.summary import Summary

    summary, measured = Summary(), {"start_s": 0.0, "skipped": 0}
    try:
        with _states_progress(shards) as show:
            for shard in shards:
                show(summary.totals["states"], shard.number)
                for row in rows_of_shard(shard):
                    summary.add(row)
                if summary.last_that_counts(shard.failures_max) is not None:
                    break
    except KeyboardInterrupt:
        return summary, measured, "interrupted"
    return summary, measured, ""


def _in_files(
    shards: Sequence[Shard], out: Path, engine: Engine, master: str, resume: bool, keep_every_s: float | None
) -> tuple[Summary, dict[str, float], str]:
    """Run the shards that `out` lacks; return all sums, and why they ended early."""
    from tornpage.pipeline.campaign.campaign import KEEP_EVERY_S, campaign, prepare_output, run_serial
    from tornpage.pipeline.campaign.files import CampaignFiles, shared_place
    from tornpage.pipeline.campaign.summary import summary_in_spark, summary_of
    from tornpage.pipeline.spark.interrupts import apart
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures
    from tornpage.pipeline.spark.session import require_packages, spark_session

    require_packages("pyarrow")
    prepare_output(out, shards, resume=resume)
    files, seconds = CampaignFiles(out), KEEP_EVERY_S if keep_every_s is None else keep_every_s
    measured = {"start_s": 0.0, "skipped": float(len(files.complete()))}
    failures_max, stopped = shards[0].failures_max, ""

    def numbers() -> list[int]:
        return [number for number in files.shards() if number < len(shards)]

    def in_spark(place: SharedPlace) -> Summary:
        started = perf_counter()
        with (
            _states_progress(shards) as show,
            spark_session("tornpage campaign", master=master, short=True) as spark,
        ):
            measured["start_s"] = perf_counter() - started
            campaign(spark, shards, place, keep_every_s=seconds, progress=show)
            return apart(spark, lambda: summary_in_spark(spark, place, numbers(), failures_max=failures_max))

    try:
        with shared_place(out) as place:
            if engine == "spark":
                return in_spark(place), measured, ""
            with _states_progress(shards) as show:
                run_serial(shards, place, keep_every_s=seconds, progress=show)
    except spark_failures() as error:
        stopped = reason_of(error)
    except KeyboardInterrupt:
        stopped = "interrupted"
    return summary_of(files, numbers(), failures_max=failures_max), measured, stopped


def peer_campaign_outcome(
    plan: PeerPlan,
    peer: str,
    *,
    shards: int,
    master: str,
    engine: Engine,
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


def _run_peers(shards: list[PeerShard], out: Path, engine: Engine, master: str) -> str:
    """Run the shards; return the reason of an early stop, or an empty text."""
    from tornpage.pipeline.campaign.peers import peer_campaign, run_peers_serial
    from tornpage.pipeline.spark.session import spark_session

    def serial(ended: Callable[[int], None]) -> None:
        run_peers_serial(shards, out, progress=ended)

    def in_spark(ended: Callable[[int], None]) -> None:
        with spark_session("tornpage campaign", master=master, short=True) as spark:
            peer_campaign(spark, shards, out, progress=ended)

    states = sum(shard.plan.states or 0 for shard in shards)
    return _run_whole_shards(serial if engine == "serial" else in_spark, len(shards), states)


def target_campaign_outcome(
    plan: TargetPlan, *, shards: int, master: str, engine: Engine, out: str | None, resume: bool
) -> tuple[Outcome, str]:
    """Run the shards of a foreign store; return the outcome and its text.

    `plan.states` are those of a shard. Finished shards are kept in `out`.
    """
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.pipeline.campaign import targets as campaigns
    from tornpage.pipeline.rows.outputs import OutputTaken
    from tornpage.pipeline.spark.session import SparkUnavailable, require_packages
    from tornpage.properties.contract import HarnessError
    from tornpage.render.explorations import target_command, target_outcome

    assert plan.states is not None
    planned = campaigns.target_shards(plan, shards=shards, states_per_shard=plan.states)
    command = target_command(plan, shards=shards)
    say(command)
    started = perf_counter()
    with _directory(out) as directory, refusing_targets():
        try:
            require_packages("pyarrow")
            campaigns.prepare_target_output(directory, planned, resume=resume)
            stopped = _run_targets(planned, directory, engine, master)
            seconds = perf_counter() - started
            result, lost = campaigns.explored_in(directory, planned, is_cut=bool(stopped))
        except (OutputTaken, SparkUnavailable) as error:
            refuse(str(error))
        except OSError as error:
            refuse(f"cannot write {error.filename or directory}: {error.strerror}; name another --out directory")
    if lost and not result.tally.states:
        return at_fault("campaign", HarnessError(lost[0]), seed=plan.seed)
    result.seconds, result.interrupted = seconds, result.interrupted and stopped in ("", "interrupted")
    result.faults += [*lost, *([stopped] if stopped not in ("", "interrupted") else [])]
    return target_outcome(result, plan, command=command, out=out, verb="campaign")


def _run_targets(shards: list[TargetShard], out: Path, engine: Engine, master: str) -> str:
    """Run the shards; return the reason of an early stop, or an empty text."""
    from tornpage.pipeline.campaign.targets import run_targets_serial, target_campaign
    from tornpage.pipeline.spark.session import spark_session

    def serial(ended: Callable[[int], None]) -> None:
        run_targets_serial(shards, out, progress=ended)

    def in_spark(ended: Callable[[int], None]) -> None:
        with spark_session("tornpage campaign", master=master, short=True) as spark:
            target_campaign(spark, shards, out, progress=ended)

    states = sum(shard.plan.states or 0 for shard in shards)
    return _run_whole_shards(serial if engine == "serial" else in_spark, len(shards), states)


def _run_whole_shards(run: Callable[[Callable[[int], None]], None], shards: int, states: int) -> str:
    """Run shards, showing progress; return the reason of an early stop, or an empty text."""
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures

    try:
        with counted_progress("campaign", total=states, unit="states") as show:
            run(lambda done: show(states * done / shards, f"{done} of {shards} shards"))
    except spark_failures() as error:
        return reason_of(error)
    except KeyboardInterrupt:
        return "interrupted"
    return ""


@contextmanager
def _states_progress(shards: Sequence[Shard]) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the number of states and of finished shards.

    The bar counts states.
    """
    total = len(shards) * shards[0].states
    with counted_progress("campaign", total=total, unit="states") as show:
        yield lambda states, done: show(min(states, total), f"{done} of {len(shards)} shards")


@contextmanager
def _directory(out: str | None) -> Iterator[Path]:
    """Yield the directory for the rows; a temporary one without a name."""
    if out is not None:
        yield Path(out)
        return
    from tornpage.properties.scratch import scratch_directory

    with scratch_directory("tornpage-campaign-") as scratch:
        yield Path(scratch)
