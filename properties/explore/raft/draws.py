"""Draw the events of a run.

Most of them let a group make progress, so that crashes meet logs of some length. Members that are run by their nodes
have events of their own: time that passes, requests, links that are cut or end, and strangers that connect.
"""

from dataclasses import replace
from random import Random
from typing import Any, get_args

from tornpage.model.raft.operations import (
    Answer,
    AnswerWrongly,
    Beat,
    BeginRead,
    CloseMember,
    CopyChange,
    CrashMember,
    CutLinks,
    Deliver,
    Elect,
    EndLinks,
    FailSyncOf,
    Greeting,
    HealLinks,
    Knock,
    OpenCopy,
    Propose,
    RaftOperation,
    RestartMember,
    RunNodes,
    SaveCommitEnd,
    StopNode,
    SyncLog,
    TimeOutPuts,
    Transfer,
)
from tornpage.properties.program.raft_case import RaftSettings
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["OPERATIONS_MAX", "draw_event", "draw_node_event", "draw_settings"]

OPERATIONS_MAX = 120
_UNLIMITED_BYTES = 1 << 30
_SHARE_OF_STORES = 0.3
_WEIGHTS = {
    "deliver": 46, "sync": 14, "propose": 9, "beat": 6, "elect": 4, "again": 5, "late": 3, "read": 3, "transfer": 2,
    "crash": 4, "restart": 6, "fail": 2, "copy": 2,
}  # fmt: skip
_SHARE_OF_NODES = 0.3
_WEIGHTS_OF_NODES = {
    "time": 30, "burst": 18, "read": 6, "transfer": 4, "cut": 6, "heal": 5, "end": 4, "knock": 8, "crash": 4,
    "restart": 7, "fail": 2, "close": 2, "answer": 4, "copy": 3, "stop": 3,
}  # fmt: skip
_BURSTS = (1, 1, 1, 2, 4, 6, 12)
_TIMES_MS = (1, 5, 20, 60, 150, 200, 700, 1_500, 3_000, 6_000)
_WEIGHTS_WITH_STORES = _WEIGHTS | {"propose": 14, "save": 2, "late put": 2}


def draw_settings(settings: RaftSettings, rng: Random) -> RaftSettings:
    """Draw the size of messages and data files, and whether members have stores and nodes.

    A message carries one entry, or all. Cases with a planted bug have no nodes: no bug is planted in the code of nodes.
    """
    batch, file_bytes = rng.choice((1, 1, _UNLIMITED_BYTES)), rng.choice((1024, 4096))
    store = settings.store or rng.random() < _SHARE_OF_STORES
    drawn = replace(settings, batch_bytes=batch, data_file_bytes=file_bytes, store=store)
    if settings.nodes or (not settings.bug and rng.random() < _SHARE_OF_NODES):
        return replace(drawn, nodes=True, limits=rng.choice(("usual", "small")))
    return drawn


def draw_node_event(trial: RaftTrial, rng: Random) -> list[RaftOperation]:
    """Draw the next events of members that are run by their nodes."""
    (kind,) = rng.choices(list(_WEIGHTS_OF_NODES), weights=list(_WEIGHTS_OF_NODES.values()))
    number = rng.randrange(trial.settings.members)
    leaders = [node.number for node in trial.nodes if node.state.role == "leader" and node.member is not None]
    leader = rng.choice(leaders) if leaders and rng.random() < 0.8 else number
    match kind:
        case "burst":
            return [Propose(leader)] * rng.choice(_BURSTS)
        case "read":
            return [BeginRead(leader)] * rng.choice(_BURSTS[:4])
        case "transfer":
            return [Transfer(leader, rng.randrange(trial.settings.members))]
        case "cut":
            return [CutLinks(leader if rng.random() < 0.5 else number, rng.choice(("in", "out", "both")))]
        case "heal":
            return [HealLinks()]
        case "end":
            return [EndLinks(number, rng.choice((0, 0, 10, 70, 1 << 20)))]
        case "knock":
            return [Knock(number, rng.choice(get_args(Greeting)))]
        case "crash":
            return [_draw_crash(trial, rng, number)]
        case "restart":
            down = [node.number for node in trial.nodes if node.member is None]
            return [RestartMember(down[0])] if down else []
        case "fail":
            return [FailSyncOf(number)]
        case "answer":
            return [AnswerWrongly(number, rng.randrange(trial.settings.members), rng.choice(get_args(Answer)))]
        case "copy":
            return [_draw_copy(rng, number)]
        case "stop":
            return [StopNode(leader if rng.random() < 0.5 else number, rng.choice(_TIMES_MS[4:]))]
        case "close":
            return [CloseMember(leader if rng.random() < 0.5 else number)]
    return [RunNodes(rng.choice(_TIMES_MS))]


def draw_event(trial: RaftTrial, rng: Random, cut_off: frozenset[int]) -> RaftOperation:
    """Draw the next event. No message passes between the members `cut_off` and the others."""
    weights = _WEIGHTS_WITH_STORES if trial.settings.store else _WEIGHTS
    (kind,) = rng.choices(list(weights), weights=list(weights.values()))
    number = rng.randrange(trial.settings.members)
    leaders = [node.number for node in trial.nodes if node.state.role == "leader" and node.member is not None]
    match kind:
        case "deliver" | "again" | "late":
            known = trial.fresh if kind == "deliver" else trial.messages
            keys = [key for key in known if (key[0] in cut_off) == (key[1] in cut_off)]
            if keys:
                source, to, name = rng.choice(keys)
                return Deliver(source, to, name, rng.randrange(1, 4) if kind == "late" else 0)
            return Elect(number) if not leaders or rng.random() < 0.1 else Beat(rng.choice(leaders))
        case "propose":
            return Propose(rng.choice(leaders) if leaders else number)
        case "beat":
            return Beat(rng.choice(leaders) if leaders else number)
        case "read":
            return BeginRead(rng.choice(leaders) if leaders else number)
        case "transfer":
            return Transfer(rng.choice(leaders) if leaders else number, rng.randrange(trial.settings.members))
        case "elect":
            return Elect(number)
        case "crash":
            return _draw_crash(trial, rng, number)
        case "restart":
            down = [node.number for node in trial.nodes if node.member is None]
            return RestartMember(rng.choice(down)) if down else SyncLog(number)
        case "fail":
            return FailSyncOf(number)
        case "copy":
            return _draw_copy(rng, number)
        case "save":
            return SaveCommitEnd(number)
        case "late put":
            return TimeOutPuts(rng.choice(leaders) if leaders else number)
    return SyncLog(number)


def _draw_copy(rng: Random, number: int) -> OpenCopy:
    return OpenCopy(number, rng.choice(get_args(CopyChange)), rng.randrange(1 << 12))


def _draw_crash(trial: RaftTrial, rng: Random, number: int) -> CrashMember:
    """Draw a crash, half of the time inside the last event."""
    last = next((node.number for node in trial.nodes if trial.events_of(node.number) > 1), number)
    if rng.random() < 0.5:
        number = last
    back = rng.randrange(max(1, trial.events_of(number))) if rng.random() < 0.6 else 0
    if rng.random() < 0.3:
        return CrashMember(number, kill=True, back=back)
    others: Any = rng.choice(("lost", "kept"))
    survived: dict[str, Any] = {
        write.name: rng.randrange(write.alternatives) for write in trial.in_flight(number, back) if rng.random() < 0.6
    }
    return CrashMember(number, back=back, survived=survived, others=others)
