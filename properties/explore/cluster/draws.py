"""Draw the settings and operations of a cluster run.

The bound of one run: up to `PUTS_MAX` puts, `CRASHES_MAX` crashes, `LINK_EVENTS_MAX` faults of links, and
`OPERATIONS_MAX` operations in all, before the network heals and every node restarts.
"""

from dataclasses import replace
from random import Random
from typing import get_args

from tornpage.model.replication.operations import (
    AdvanceTime,
    AskNode,
    Caller,
    CallNode,
    ChangeRoles,
    CleanNode,
    CloseNode,
    ClusterOperation,
    CrashNode,
    FailCopy,
    FailFile,
    FailSyncOn,
    FlipBit,
    FlushNode,
    Forged,
    ForgeFrame,
    HealLink,
    LimitLink,
    PutOn,
    ResetLink,
    RestartNode,
    RunAll,
    SetNodeClock,
    StepNode,
)
from tornpage.properties.cluster.forging import FORGED
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.disk.sampling import CHANCES, draw
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = [
    "CRASHES_MAX",
    "LINK_EVENTS_MAX",
    "OPERATIONS_MAX",
    "PUTS_MAX",
    "draw_beginning",
    "draw_operation",
    "draw_settings",
]

PUTS_MAX, CRASHES_MAX, LINK_EVENTS_MAX, OPERATIONS_MAX = 6, 3, 5, 28

_BACK_MAX = 40
_PASSED_SHARE = 0.125
_FAILING_SHARE = 0.125
_GENERATIONS_SHARE = 0.3
_KINDS = {
    "put": 22, "step": 20, "run": 16, "flush": 4, "advance": 5, "clock": 1, "fail": 3, "clean": 6, "limit": 5,
    "heal": 3, "reset": 4, "flip": 3, "forge": 3, "call": 3, "crash": 7, "restart": 8, "close": 1, "roles": 3, "ask": 2,
}  # fmt: skip
_LINK_KINDS = ("limit", "reset", "flip", "forge")
_FAILURES = (FailFile, FailCopy, FailSyncOn)
_FORGED_BYTES = (0, 20, 5_000, 1 << 22, (1 << 32) - 20)
"""Sizes that a forged frame states. The last one is -20 as a signed number."""


def draw_settings(settings: ClusterSettings, rng: Random) -> ClusterSettings:
    """Return settings with what a run draws. Number of nodes, disk and bug stay."""
    return replace(
        settings,
        quorum=rng.randrange(1, settings.nodes),
        batch_bytes=rng.choice((16, 64, 64, 1000)),
        acknowledge=rng.choice(("received", "received", "durable")),
        master_syncs=rng.random() < 0.25,
        slave_syncs=rng.random() < 0.4,
        send_flushed_only=rng.random() < 0.15,
        discard_when_gone=rng.random() < 0.4,
    )


def draw_beginning(settings: ClusterSettings, rng: Random) -> tuple[ClusterOperation, ...]:
    """Return the first operations of a run.

    In one of eight runs retention passes a replica that is away. In another one a replica has to cut its log, or takes
    over the generations of a new master, while a sync of its files fails.
    """
    share = rng.random()
    if share < _FAILING_SHARE:
        return _failing_beginning(settings, rng)
    if share >= _FAILING_SHARE + _PASSED_SHARE:
        return ()
    replica = rng.randrange(1, settings.nodes)
    away = rng.choice((CloseNode(replica), CrashNode(replica, kill=True), LimitLink(replica)))
    put = PutOn(body_bytes=2500, fill=rng.randrange(8))
    return PutOn(), RunAll(rng.randrange(3, 7)), away, put, put, FlushNode(), StepNode(), CleanNode()


def _failing_beginning(settings: ClusterSettings, rng: Random) -> tuple[ClusterOperation, ...]:
    """Return a program in which a sync fails at the hand-over of a log or a role."""
    replica = rng.randrange(1, settings.nodes)
    put, fails = PutOn(body_bytes=rng.choice((40, 2500))), FailSyncOn(replica, rng.choice(("log", "generations")))
    hand_over: tuple[ClusterOperation, ...] = (CrashNode(0), fails, RestartNode(0))
    if rng.random() < 0.3:
        hand_over = (fails, ChangeRoles(replica))
    return put, RunAll(5), put, RunAll(3), *hand_over, put, AdvanceTime(1_000), RunAll(4), AdvanceTime(1_000), RunAll(4)


def draw_operation(trial: ClusterTrial, rng: Random) -> ClusterOperation:
    """Return the next operation of a run, within its bound."""
    done = trial.hit
    kinds = dict(_KINDS)
    if done["put_on"] >= PUTS_MAX:
        del kinds["put"]
    if done["crash_node"] >= CRASHES_MAX:
        del kinds["crash"]
    if sum(done[kind] for kind in ("limit_link", "reset_link", "flip_bit", "forge_frame")) >= LINK_EVENTS_MAX:
        for name in _LINK_KINDS:
            del kinds[name]
    kind = rng.choices(tuple(kinds), tuple(kinds.values()))[0]
    nodes = trial.settings.nodes
    node, replica, to_master = rng.randrange(nodes), rng.randrange(1, nodes), rng.random() < 0.4
    match kind:
        case "put":
            master = next(each.number for each in trial.nodes if each.role == "master")
            return PutOn(
                node if rng.random() < 0.05 else master,
                queue_id=rng.randrange(2),
                body_bytes=rng.choice((0, 0, 40, 300, 1500, 2500)),
                fill=rng.randrange(8),
                key=rng.choice(("", "k")),
                served=rng.random() < 0.3,
            )
        case "ask":
            return AskNode(node, rng.randrange(2), rng.randrange(4), rng.choice((32, 1, 2)))
        case "step":
            return StepNode(node)
        case "run":
            return RunAll(rng.choice((1, 2, 4, 8)))
        case "flush":
            return FlushNode(node)
        case "advance":
            return AdvanceTime(rng.choice((10, 1000, 1000, 3100, 6000, 25_000)))
        case "clock":
            return SetNodeClock(node, rng.choice((-60_000, 60_000)))
        case "fail":
            if rng.random() < _GENERATIONS_SHARE:
                return FailSyncOn(node, "generations")
            return rng.choice(_FAILURES)(node)
        case "clean":
            return _clean(trial, rng)
        case "forge":
            return _forge(rng, replica)
        case "call":
            return CallNode(node, rng.choice(get_args(Caller)))
        case "limit":
            return LimitLink(replica, to_master, rng.choice((0, 0, 7, 30, 100, 300)))
        case "heal":
            return HealLink(replica)
        case "reset":
            return ResetLink(replica, rng.choice((0, 5, 28, 1000)), rng.choice((0, 5, 90, 1000)))
        case "flip":
            return _flip(trial, FlipBit(replica, to_master, rng.randrange(4000)))
        case "restart":
            down = [each.number for each in trial.nodes if not each.is_up]
            return RestartNode(rng.choice(down) if down else node)
        case "close":
            return CloseNode(node)
        case "roles":
            return ChangeRoles(node, rng.random() < 0.5)
    return _crash(trial, node, rng)


def _forge(rng: Random, replica: int) -> ForgeFrame:
    """Return a frame that its receiver has to refuse."""
    frame: Forged = rng.choice(get_args(Forged))
    to_master = FORGED[frame][0] == "master" or (FORGED[frame][0] == "both" and rng.random() < 0.5)
    return ForgeFrame(replica, to_master, rng.choice(_FORGED_BYTES) if frame == "head" else 0, frame)


def _clean(trial: ClusterTrial, rng: Random) -> ClusterOperation:
    """Return retention on a node that has two log files, or what has to come before it."""
    nodes = [each for each in trial.nodes if each.is_up and each.end - each.begin > trial.settings.file_bytes]
    if not nodes:
        return RunAll(1)
    node = rng.choice(nodes)
    last = (node.end - 1) // trial.settings.file_bytes * trial.settings.file_bytes
    return CleanNode(node.number) if node.store.flushed_offset >= last else FlushNode(node.number)


def _flip(trial: ClusterTrial, flip: FlipBit) -> ClusterOperation:
    """Return a flipped bit if bytes are under way there, else a step of the sender."""
    return flip if trial.waiting_bytes(flip) else StepNode(flip.replica if flip.to_master else 0)


def _crash(trial: ClusterTrial, node: int, rng: Random) -> ClusterOperation:
    """Return a crash of a node at a drawn point of its last operation, with drawn lost writes."""
    if not trial.nodes[node].is_up:
        return RestartNode(node)
    back = rng.randrange(min(trial.events_of(node), _BACK_MAX) + 1) if rng.random() < 0.6 else 0
    silent = rng.random() < 0.3
    if rng.random() < 0.25:
        return CrashNode(node, kill=True, back=back, silent=silent)
    writes: list[InFlightWrite] = trial.in_flight(node, back)
    return CrashNode(node, back=back, silent=silent, survived=draw(writes, rng, CHANCES))
