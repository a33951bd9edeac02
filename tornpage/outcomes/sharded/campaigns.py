"""Run campaigns in shards; return their outcomes and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from tornpage.cli.document import Outcome, at_fault, refuse, say
from tornpage.cli.progress import counted_progress
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.peers.exploring import PeerPlan
    from tornpage.pipeline.campaign.files import SharedPlace
    from tornpage.pipeline.campaign.summary import Summary
    from tornpage.pipeline.campaign.turns import Kind, ProgressT, ShardT
    from tornpage.properties.explore.crashes.campaign import Plan
    from tornpage.properties.explore.crashes.shards import Shard
    from tornpage.properties.explore.foreign.campaign import TargetPlan

__all__ = [
    "Engine",
    "campaign_outcome",
    "campaign_plan_outcome",
    "peer_campaign_outcome",
    "peer_plan_outcome",
    "target_campaign_outcome",
    "target_plan_outcome",
]

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
    from tornpage.pipeline.campaign.campaign import CrashCampaign
    from tornpage.properties.explore.crashes.campaign import PlannedShards

    shards = PlannedShards(plan)
    return _cost_outcome(CrashCampaign(), shards[0], shards=len(shards), seed=plan.seed, cores=cores, master=master)


def target_plan_outcome(plan: TargetPlan, *, shards: int, cores: int | None, master: str) -> tuple[Outcome, str]:
    """Return what a campaign of a foreign store will cost, from a short trial, and its text."""
    from tornpage.pipeline.campaign.targets import TargetCampaign, target_shards

    assert plan.states is not None
    (first,) = target_shards(plan, shards=1, states_per_shard=plan.states)
    return _cost_outcome(TargetCampaign(), first, shards=shards, seed=plan.seed, cores=cores, master=master)


def peer_plan_outcome(plan: PeerPlan, peer: str, *, shards: int, cores: int | None, master: str) -> tuple[Outcome, str]:
    """Return what a campaign with a peer will cost, from a short trial, and its text."""
    from tornpage.outcomes.peers import releases_named
    from tornpage.pipeline.campaign.peers import PeerCampaign, peer_shards

    (release,) = releases_named((peer,))
    assert plan.states is not None
    (first,) = peer_shards(release, plan, shards=1, states_per_shard=plan.states)
    return _cost_outcome(PeerCampaign(), first, shards=shards, seed=plan.seed, cores=cores, master=master)


def _cost_outcome(
    kind: Kind[ShardT, ProgressT], first: ShardT, *, shards: int, seed: int, cores: int | None, master: str
) -> tuple[Outcome, str]:
    """Return the cost of shards like the first one, from a short trial, and its text."""
    from tornpage.pipeline.campaign.cost import TrialFailed, cores_of, cost_of, measured_trial
    from tornpage.pipeline.campaign.turns import KEEP_EVERY_S
    from tornpage.pipeline.spark.session import SparkUnavailable, require_packages
    from tornpage.properties.contract import HarnessError
    from tornpage.render.campaign import cost_outcome

    cores = cores_of(master) if cores is None else cores
    if cores is None:
        refuse(f"the master {master!r} does not say how many cores it has; give --cores too")
    try:
        require_packages("pyarrow")
        trial = measured_trial(kind, first)
    except SparkUnavailable as error:
        refuse(str(error))
    except TrialFailed as error:
        return at_fault("campaign", HarnessError(str(error)), seed=seed)
    cost = cost_of(trial, shards=shards, states_per_shard=first.states, cores=cores)
    return cost_outcome(trial, cost, seed=seed, keep_every_s=KEEP_EVERY_S)


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
    from tornpage.pipeline.campaign.campaign import CrashCampaign, prepare_output
    from tornpage.pipeline.campaign.files import CampaignFiles
    from tornpage.pipeline.campaign.summary import summary_in_spark, summary_of
    from tornpage.pipeline.spark.interrupts import apart
    from tornpage.pipeline.spark.session import require_packages

    require_packages("pyarrow")
    prepare_output(out, shards, resume=resume)
    files, failures_max = CampaignFiles(out), shards[0].failures_max
    measured = {"start_s": 0.0, "skipped": float(len(files.complete()))}
    summaries: list[Summary] = []

    def numbers() -> list[int]:
        return [number for number in files.shards() if number < len(shards)]

    def sum_up(spark: Any, place: SharedPlace) -> None:
        summaries.append(apart(spark, lambda: summary_in_spark(spark, place, numbers(), failures_max=failures_max)))

    stopped, measured["start_s"] = _run_shards(CrashCampaign(), shards, out, engine, master, keep_every_s, after=sum_up)
    if summaries:
        return summaries[0], measured, stopped
    return summary_of(files, numbers(), failures_max=failures_max), measured, stopped


def _run_shards(
    kind: Kind[ShardT, ProgressT],
    shards: Sequence[ShardT],
    out: Path,
    engine: Engine,
    master: str,
    keep_every_s: float | None,
    *,
    after: Callable[[Any, SharedPlace], None] = lambda spark, place: None,
) -> tuple[str, float]:
    """Run the shards that `out` lacks, showing progress.

    Returns the reason of an early stop, or an empty text, and the seconds that the start of Spark took. Calls `after`
    in the session once all have run.
    """
    from tornpage.pipeline.campaign.files import shared_place
    from tornpage.pipeline.campaign.turns import KEEP_EVERY_S, campaign, run_serial
    from tornpage.pipeline.spark.jobs import reason_of, spark_failures
    from tornpage.pipeline.spark.session import spark_session

    seconds, start_s = KEEP_EVERY_S if keep_every_s is None else keep_every_s, 0.0
    try:
        with shared_place(out) as place, _states_progress(shards) as show:
            if engine == "serial":
                run_serial(kind, shards, place, keep_every_s=seconds, progress=show)
                return "", start_s
            started = perf_counter()
            with spark_session("tornpage campaign", master=master, short=True) as spark:
                start_s = perf_counter() - started
                campaign(spark, kind, shards, place, keep_every_s=seconds, progress=show)
                after(spark, place)
    except spark_failures() as error:
        return reason_of(error), start_s
    except KeyboardInterrupt:
        return "interrupted", start_s
    return "", start_s


def peer_campaign_outcome(
    plan: PeerPlan,
    peer: str,
    *,
    shards: int,
    master: str,
    engine: Engine,
    out: str | None,
    resume: bool,
    keep_every_s: float | None,
    shrink: float | None,
) -> tuple[Outcome, str]:
    """Run the shards of a plan with a peer; return the outcome and its text.

    Finished shards, and pages of others, are kept in `out`.
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
            stopped, _ = _run_shards(campaigns.PeerCampaign(), planned, directory, engine, master, keep_every_s)
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


def target_campaign_outcome(
    plan: TargetPlan,
    *,
    shards: int,
    master: str,
    engine: Engine,
    out: str | None,
    resume: bool,
    keep_every_s: float | None,
) -> tuple[Outcome, str]:
    """Run the shards of a foreign store; return the outcome and its text.

    `plan.states` are those of a shard. Finished shards, and pages of others, are kept in `out`.
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
            stopped, _ = _run_shards(campaigns.TargetCampaign(), planned, directory, engine, master, keep_every_s)
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


@contextmanager
def _states_progress(shards: Sequence[ShardT]) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the number of states and of finished shards.

    The bar counts states.
    """
    total = len(shards) * shards[0].states
    with counted_progress("campaign", total=total, unit="states") as show:
        yield lambda states, done: show(min(states, total), f"{done} of {counted(len(shards), 'shard')}")


@contextmanager
def _directory(out: str | None) -> Iterator[Path]:
    """Yield the directory for the rows; a temporary one without a name."""
    if out is not None:
        yield Path(out)
        return
    from tornpage.properties.scratch import scratch_directory

    with scratch_directory("tornpage-campaign-") as scratch:
        yield Path(scratch)
