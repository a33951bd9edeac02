"""What each verb of `tornpage explore` runs."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Literal

from tornpage.cli.document import Outcome, at_fault, refuse, say
from tornpage.cli.progress import counted_progress, shrinking_lines, states_progress, steps_progress
from tornpage.outcomes.targets import refusing_targets, usable_settings

if TYPE_CHECKING:
    from tornpage.model.operations import AimFault
    from tornpage.peers.exploring import Writer
    from tornpage.peers.rocketmq.store import Mode
    from tornpage.properties.explore.crashes.scheduling import Strategy
    from tornpage.properties.explore.foreign.campaign import Start
    from tornpage.properties.explore.kills.child import KillMode
    from tornpage.properties.program.case import Disk

__all__ = [
    "Request",
    "explore_cluster",
    "explore_consumers",
    "explore_crashes",
    "explore_crashes_with_peer",
    "explore_damage",
    "explore_group",
    "explore_interleavings",
    "explore_kills",
    "explore_pair",
    "explore_raft",
    "explore_recovery",
    "explore_restarts",
    "explore_target",
]

_SECONDS = 10.0
"""How long to explore without --states and --seconds."""

_ROOM_BYTES = 32 << 20
"""Bytes that kills and restarts need in their directory at any time, with a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Arguments of a verb, by parameter name; None for missing options."""

    states: int | None = None
    seconds: float | None = None
    kills: int | None = None
    kill_at: "KillMode | None" = None
    together: int | None = None
    restarts: int | None = None
    directory: str | None = None
    file_bytes: int | None = None
    compiled: bool = False
    faults: "tuple[AimFault, ...]" = ()
    workers: int | None = None
    strategy: "Strategy | None" = None
    stores: tuple[str, ...] = ()
    damages: int = 0
    target: str | None = None
    answer_seconds: float | None = None
    failures: int | None = None
    start: "Start" = "open"
    states_per_shard: int | None = None
    verbose: bool = False
    coverage_table: bool = False
    peer: str | None = None
    every: int | None = None
    nodes: int = 2
    members: int = 2
    is_orderly: bool = False
    length: int = 0
    bound: tuple[int, ...] | None = None
    judged: Literal["all", "promises"] = "all"
    has_store: bool = False
    role: str = "SYNC_MASTER"
    hangs: bool = False
    messages: bool = False
    writer: "Writer | None" = None
    peer_mode: "Mode | None" = None
    shrink: float | None = None
    disk: "Disk" = "posix-strict"
    bug: str = ""
    seed: int = 0
    out: str | None = None

    @property
    def time_limit_s(self) -> float | None:
        """The time after which a verb with both limits ends; without either limit it is 10 s."""
        return _SECONDS if self.states is None and self.seconds is None else self.seconds

    @property
    def progress_total(self) -> tuple[float, str]:
        """The end of a progress line, and its unit."""
        return (self.states, "states") if self.states is not None else (self.time_limit_s or 0.0, "seconds")


def explore_crashes(request: Request) -> tuple[Outcome, str]:
    """Run a crash campaign with I/O fault rules; return its outcome and its text."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.crashes.campaign import Plan, run_campaign
    from tornpage.properties.explore.crashes.scheduling import DEFAULT_STRATEGY
    from tornpage.properties.explore.crashes.shards import FAILURES_MAX, SHARD_STATES
    from tornpage.properties.program.case import Settings
    from tornpage.render.campaign import campaign_outcome, command_of

    plan = Plan(
        Settings(file_bytes=request.file_bytes or 16384, disk=request.disk, bug=request.bug, compiled=request.compiled),
        seed=request.seed,
        states=request.states,
        seconds=request.time_limit_s,
        strategy=request.strategy or DEFAULT_STRATEGY,
        workers=request.workers or 1,
        failures_max=request.failures or FAILURES_MAX,
        shard_states=request.states_per_shard or SHARD_STATES,
        fault_rules=request.faults,
    )
    again = command_of(plan)
    say(again)  # the command with all defaults, before it can fail
    total, unit = request.progress_total
    with choose_tracker("auto") as tracker, states_progress("exploring", total=total, unit=unit) as show:
        result = run_campaign(plan, tracker=tracker, progress=show, making_small=shrinking_lines())
    return campaign_outcome(
        result,
        plan,
        out=request.out,
        command=again,
        verbose=request.verbose,
        with_coverage=request.coverage_table,
    )


def explore_crashes_with_peer(request: Request) -> tuple[Outcome, str]:
    """Open crash images of our store's histories with our store and a peer.

    Return the outcome and its text.
    """
    from tornpage.outcomes.peers import releases_named, shrink_peer_examples
    from tornpage.peers.errors import PeerUnavailable
    from tornpage.peers.exploring import EVERY, PeerPlan, explore_with_peer
    from tornpage.peers.shrinking import SECONDS
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.program.case import Settings
    from tornpage.render.peers import peer_command, peer_outcome

    assert request.peer is not None
    (release,) = releases_named((request.peer,))
    settings = Settings(file_bytes=request.file_bytes or 16384, disk=request.disk, bug=request.bug)
    plan = PeerPlan(
        settings, request.seed, request.states, request.time_limit_s, request.every or EVERY, request.workers or 1,
        request.writer or "ours", request.peer_mode or "light",
    )  # fmt: skip
    again = peer_command(plan, request.peer)
    say(again)
    total, unit = request.progress_total
    try:
        with states_progress("exploring", total=total, unit=unit) as show:
            result = explore_with_peer(release, plan, progress=show)
    except PeerUnavailable as error:
        refuse(str(error))
    except HarnessError as error:
        return at_fault("explore", error, seed=request.seed)
    if request.out is not None:
        shrink_peer_examples(result, release, plan, seconds=SECONDS if request.shrink is None else request.shrink)
    return peer_outcome(result, plan, command=again, out=request.out)


def explore_target(request: Request) -> tuple[Outcome, str]:
    """Run a crash campaign on a foreign store; return its outcome and its text."""
    assert request.target is not None
    settings = usable_settings(
        request.target, bug=request.bug, disk=request.disk, answer_seconds=request.answer_seconds
    )
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.foreign.campaign import FAILURES_MAX, TargetPlan, run_target_campaign
    from tornpage.render.explorations import target_command, target_outcome

    plan = TargetPlan(
        settings, request.seed, request.states, request.time_limit_s, request.failures or FAILURES_MAX, request.start
    )
    again = target_command(plan)
    say(again)
    total, unit = request.progress_total
    try:
        with (
            refusing_targets(),
            choose_tracker("auto") as tracker,
            states_progress("exploring", total=total, unit=unit) as show,
        ):
            result = run_target_campaign(plan, tracker=tracker, progress=show)
    except HarnessError as error:
        return at_fault("explore", error, seed=request.seed)
    return target_outcome(result, plan, command=again, out=request.out)


def _with_processes(explore: Callable[[Request], tuple[Outcome, str]]) -> Callable[[Request], tuple[Outcome, str]]:
    """Report a failure of the processes that a verb starts, or of their directory."""

    @wraps(explore)
    def explored(request: Request) -> tuple[Outcome, str]:
        from tornpage.properties.contract import HarnessError

        try:
            return explore(request)
        except HarnessError as error:
            return at_fault("explore", error, seed=request.seed)
        except BrokenPipeError:  # the reader of the output has gone, which is no fault of the directory
            raise
        except OSError as error:
            place = error.filename or request.directory or "the directory for temporary files"
            refuse(f"cannot work in {place}: {error.strerror}; name another --directory")

    return explored


@_with_processes
def explore_kills(request: Request) -> tuple[Outcome, str]:
    """Kill writers in a new directory, several in parallel; return outcome and text."""
    from tornpage.properties.explore.kills.program import TOGETHER
    from tornpage.properties.explore.kills.run import KILL_SETTINGS, run_kills
    from tornpage.render.explorations import kills_outcome

    assert request.kills is not None
    mode = request.kill_at or "step"
    _require_room(request.directory)
    with counted_progress("killing", total=request.kills, unit="writers") as show:
        report = run_kills(
            request.kills,
            seed=request.seed,
            mode=mode,
            directory=request.directory,
            settings=replace(KILL_SETTINGS, file_bytes=request.file_bytes or 4096, bug=request.bug),
            workers=request.workers or 1,
            together=request.together or TOGETHER,
            progress=lambda cycles: show(cycles, ""),
        )
    return kills_outcome(report, seed=request.seed, mode=mode)


@_with_processes
def explore_pair(request: Request) -> tuple[Outcome, str]:
    """Kill the processes of a pair in a new directory; return outcome and text."""
    from tornpage.properties.explore.pair.run import run_pair
    from tornpage.render.pairs import pair_outcome

    assert request.kills is not None
    with counted_progress("killing", total=request.kills, unit="kills") as show:
        report = run_pair(
            request.kills,
            seed=request.seed,
            role=request.role,
            directory=request.directory,
            progress=lambda kills: show(kills, ""),
        )
    return pair_outcome(report, seed=request.seed, role=request.role)


@_with_processes
def explore_group(request: Request) -> tuple[Outcome, str]:
    """Kill the leaders of a group in a new directory; return outcome and text."""
    from tornpage.properties.explore.group.run import run_group
    from tornpage.render.groups import group_command, group_outcome

    assert request.kills is not None
    again = group_command(
        request.kills, seed=request.seed, members=request.members, hangs=request.hangs, messages=request.messages
    )
    say(again)
    with counted_progress("killing", total=request.kills, unit="kills") as show:
        report = run_group(
            request.kills,
            seed=request.seed,
            members=request.members,
            hangs=request.hangs,
            messages=request.messages,
            directory=request.directory,
            progress=lambda kills: show(kills, ""),
        )
    return group_outcome(report, seed=request.seed, command=again)


def explore_damage(request: Request) -> tuple[Outcome, str]:
    """Damage copies of stores, one field at a time; return the outcome and its text."""
    from pathlib import Path

    from tornpage.properties.campaign.resume import ResumeWriteError
    from tornpage.properties.decode.opening import InspectError
    from tornpage.properties.explore.damage.campaign import KEPT_FILE, DamagePlan, run_damages
    from tornpage.render.explorations import damage_command, damage_outcome

    plan = DamagePlan(request.stores, request.seed, request.damages, request.bug, request.workers or 1)
    again = damage_command(plan)
    say(again)
    keep = None if request.out is None else Path(request.out) / KEPT_FILE
    try:
        with states_progress("damaging", total=request.damages, unit="damages") as show:
            result = run_damages(plan, keep=keep, progress=show)
    except (InspectError, ValueError, ResumeWriteError, OSError) as error:
        refuse(str(error))
    return damage_outcome(result, plan)


@_with_processes
def explore_restarts(request: Request) -> tuple[Outcome, str]:
    """Restart a store in a new directory; return the outcome and its text."""
    from tornpage.properties.explore.kills.restarts import run_restarts
    from tornpage.properties.explore.kills.run import KILL_SETTINGS
    from tornpage.render.explorations import restarts_outcome

    assert request.restarts is not None
    _require_room(request.directory)
    with counted_progress("restarting", total=request.restarts, unit="restarts") as show:
        result = run_restarts(
            request.restarts,
            seed=request.seed,
            directory=request.directory,
            settings=replace(KILL_SETTINGS, file_bytes=request.file_bytes or 4096, bug=request.bug),
            progress=lambda done: show(done, ""),
        )
    return restarts_outcome(result, seed=request.seed)


def _require_room(directory: str | None) -> None:
    """Refuse a directory whose disk is nearly full.

    A store without room would fail there, and its failure would look like a broken promise.
    """
    if directory is None or not os.path.isdir(directory):
        return
    free = shutil.disk_usage(directory).free
    if free < _ROOM_BYTES:
        refuse(
            f"{directory} has {free:,} bytes free, and stores under test need {_ROOM_BYTES:,}; make room there, or "
            "name another --directory"
        )


def explore_recovery(request: Request) -> tuple[Outcome, str]:
    """Crash the recovery of every sample layout everywhere; return the outcome and its text."""
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.explore.recovery.crashes import crash_recoveries
    from tornpage.properties.explore.recovery.layouts import SAMPLE_LAYOUTS
    from tornpage.properties.planted import parts_of
    from tornpage.render.explorations import recovery_outcome

    bug, disk, seed = request.bug, request.disk, request.seed
    planted = f" --bug {bug}" if bug else ""
    again = f"tornpage explore recovery --seed {seed} --disk {disk}{planted}"
    try:
        with steps_progress("recovery", total=len(SAMPLE_LAYOUTS)) as show:
            report = crash_recoveries(components=parts_of(bug), disk=disk, seed=seed, progress=show)
    except HarnessError as error:
        return at_fault("explore", error, seed=seed)
    return recovery_outcome(report, seed=seed, command=again)


def explore_interleavings(request: Request) -> tuple[Outcome, str]:
    """Let the threads of a store meet in every order drawn; return the outcome and its text."""
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.interleavings.campaign import explore_interleavings as explore
    from tornpage.render.explorations import interleavings_outcome

    bug, seed, states, seconds = request.bug, request.seed, request.states, request.time_limit_s
    until = f"--states {states}" if states is not None else f"--seconds {seconds:g}"
    planted = f" --bug {bug}" if bug else ""
    again = f"tornpage explore interleavings {until} --seed {seed}{planted}"
    say(again)
    total, unit = request.progress_total
    try:
        with choose_tracker("auto") as tracker, states_progress("interleaving", total=total, unit=unit) as show:
            result = explore(bug=bug, seed=seed, states=states, seconds=seconds, tracker=tracker, progress=show)
    except HarnessError as error:
        return at_fault("explore", error, seed=seed)
    return interleavings_outcome(result, seed=seed, out=request.out, command=again)


def explore_consumers(request: Request) -> tuple[Outcome, str]:
    """Crash a broker and its consumers; return the outcome and its text."""
    from tornpage.outcomes.processes.groups import explore_group

    return explore_group(request)


def explore_cluster(request: Request) -> tuple[Outcome, str]:
    """Crash a master and its replicas; return the outcome and its text."""
    from tornpage.outcomes.processes.clusters import explore_cluster as explore

    return explore(request)


def explore_raft(request: Request) -> tuple[Outcome, str]:
    """Explore Raft groups; return the outcome and its text."""
    from tornpage.outcomes.processes import raft

    return raft.search_raft(request) if request.bound else raft.explore_raft(request)
