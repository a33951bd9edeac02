"""Watch a run of a cluster: each operation, and the nodes and links after it.

Its page is made from this (`tornpage explain tc1-…`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tornpage.model.replication.operations import ClusterOperation, CrashNode
from tornpage.properties.cluster.network import MASTER, REPLICA, RecordedLink
from tornpage.properties.cluster.nodes import Node
from tornpage.properties.cluster.replay import ClusterFailure
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.cluster.wire import frames_described
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.step_program import StepFailure
from tornpage.properties.program.cluster_case import ClusterCase
from tornpage.properties.program.steps import described_step

__all__ = ["ClusterAccount", "account_of"]

AT_THE_END = "the network heals, every node restarts, and rounds are run"
_FRAMES_MAX = 400


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node after an operation. Offsets are -1 while it is down."""

    node: int
    role: str
    begin: int
    end: int
    flushed: int
    waiting_puts: int
    finding: str


@dataclass(frozen=True, slots=True)
class Moment:
    """One operation, its effects, and the nodes after it.

    `at_ms` is virtual time since the begin of the run. `crashed` is the node that the operation took down, or -1.
    """

    number: int
    text: str
    at_ms: int
    crashed: int
    effects: tuple[str, ...]
    nodes: tuple[NodeState, ...]


@dataclass(frozen=True, slots=True)
class SentFrame:
    """One frame of a link, its size, and how many of its bytes have arrived."""

    link: int
    sender: int
    receiver: int
    what: str
    size_bytes: int
    arrived_bytes: int


@dataclass(frozen=True, slots=True)
class ClusterAccount:
    """Everything that the page of a failure shows."""

    contract: int
    sentence: str
    expected: str
    found: str
    bug: str
    settings: dict[str, Any]
    token: str
    nodes: int
    operations: int
    lost_writes: int
    moments: tuple[Moment, ...]
    frames: tuple[SentFrame, ...]
    frames_left_out: int

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def account_of(case: ClusterCase, *, tracker: DirtyTracker) -> tuple[ClusterFailure, ClusterAccount] | None:
    """Run a case and its end; return its failure and the account of it, or None if all hold."""
    trial = ClusterTrial(case.settings, tracker=tracker)
    begun_ms, moments = trial.clock.now_ms, []
    broken: GuaranteeBroken | None = None
    for number, operation in enumerate((*case.operations, None), 1):
        before = Counter(trial.hit)
        try:
            if operation is None:
                trial.finish()
            else:
                trial.run(operation)
        except GuaranteeBroken as error:
            broken = error
        effects = tuple(_effects(trial.hit - before, operation))
        text = AT_THE_END if operation is None else described_step(trial.performed[-1])
        crashed = operation.node % len(trial.nodes) if isinstance(operation, CrashNode) else -1
        states = tuple(_state(node) for node in trial.nodes)
        moments.append(Moment(number, text, trial.clock.now_ms - begun_ms, crashed, effects, states))
        if broken is not None:
            break
    if broken is None:
        return None
    failed = ClusterCase(case.settings, tuple(trial.performed))
    failure = StepFailure(failed, broken, trial.lost_writes)
    frames = [frame for number, link in enumerate(trial.network.links, 1) for frame in _frames(number, link)]
    return failure, ClusterAccount(
        broken.contract,
        broken.sentence,
        broken.expected,
        broken.found,
        case.settings.bug,
        {name: value for name, value in failed.document()["settings"].items() if name != "bug"},
        failed.token(),
        len(trial.nodes),
        len(failed.operations),
        trial.lost_writes,
        tuple(moments),
        tuple(frames[-_FRAMES_MAX:]),
        max(0, len(frames) - _FRAMES_MAX),
    )


def _effects(hit: Counter[str], operation: ClusterOperation | None) -> Iterator[str]:
    """Yield what an operation caused, besides itself."""
    kinds = {"kill", "power"}
    for name, count in sorted(hit.items()):
        if operation is None or name not in (operation.op, *kinds):
            yield name if count == 1 else f"{name} ({count} times)"


def _state(node: Node) -> NodeState:
    if not node.is_up:
        return NodeState(node.number, node.role, -1, -1, -1, 0, "down")
    assert node.replicated is not None
    status = node.replicated.status()
    finding = status["finding"] or "; ".join(status["findings"][-1:])
    return NodeState(
        node.number, node.role, node.begin, node.end, node.store.flushed_offset, status["waiting_puts"], finding
    )


def _frames(number: int, link: RecordedLink) -> Iterator[SentFrame]:
    """Yield the frames of a link, first those of its replica."""
    master = int(link.address.removeprefix("node-").partition(":")[0])
    for way, sender, receiver in ((MASTER, link.replica, master), (REPLICA, master, link.replica)):
        arrived = len(link.arrived[way])
        for what, begin, end in frames_described(link.sent[way]):
            yield SentFrame(number, sender, receiver, what, end - begin, min(max(0, arrived - begin), end - begin))
