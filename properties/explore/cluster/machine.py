"""A Hypothesis machine with the operations of cluster campaigns."""

from typing import Any, Literal, get_args

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tornpage.model.operations import Choice
from tornpage.model.replication.operations import (
    AdvanceTime,
    Caller,
    CallNode,
    ChangeRoles,
    CleanNode,
    CloseNode,
    CrashNode,
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
    StepNode,
)
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["ClusterMachine", "cluster_machine"]

_CRASHES_MAX, _BACK_MAX = 3, 40
_SHARES = st.floats(0, 1)
_FEW = st.integers(0, 2)
_BYTES = st.sampled_from((0, 7, 30, 100, 300, 10_000))


class ClusterMachine(RuleBasedStateMachine):
    """Runs one cluster; `bug` and `nodes` are set by `cluster_machine`."""

    bug = ""
    nodes = 2

    def __init__(self) -> None:
        super().__init__()
        self._opened: Any = choose_tracker("auto")
        self._tracker: DirtyTracker = self._opened.__enter__()
        self._trial: ClusterTrial | None = None

    @initialize(
        quorum=st.integers(1, 4),
        durable=st.booleans(),
        master_syncs=st.booleans(),
        slave_syncs=st.booleans(),
        batch_bytes=st.sampled_from((16, 64, 1000)),
        discards=st.booleans(),
    )
    def opens(
        self, quorum: int, durable: bool, master_syncs: bool, slave_syncs: bool, batch_bytes: int, discards: bool
    ) -> None:
        settings = ClusterSettings(
            nodes=self.nodes,
            quorum=min(quorum, self.nodes - 1),
            acknowledge="durable" if durable else "received",
            master_syncs=master_syncs,
            slave_syncs=slave_syncs,
            batch_bytes=batch_bytes,
            discard_when_gone=discards,
            bug=self.bug,
        )
        self._trial = ClusterTrial(settings, tracker=self._tracker)

    @property
    def trial(self) -> ClusterTrial:
        """The run of this example."""
        assert self._trial is not None
        return self._trial

    @rule(node=_FEW, body_bytes=st.sampled_from((0, 40, 300, 2500)), queue_id=st.integers(0, 1))
    def puts(self, node: int, body_bytes: int, queue_id: int) -> None:
        self.trial.run(PutOn(node, queue_id=queue_id, body_bytes=body_bytes, key="k"))

    @rule(rounds=st.integers(1, 8))
    def all_run(self, rounds: int) -> None:
        self.trial.run(RunAll(rounds))

    @rule(node=_FEW)
    def a_node_steps(self, node: int) -> None:
        self.trial.run(StepNode(node))

    @rule(node=_FEW)
    def a_node_flushes(self, node: int) -> None:
        self.trial.run(FlushNode(node))

    @rule(node=_FEW)
    def a_node_is_cleaned(self, node: int) -> None:
        self.trial.run(CleanNode(node))

    @rule(node=_FEW, file=st.sampled_from(("log", "generations")))
    def a_sync_will_fail(self, node: int, file: Literal["log", "generations"]) -> None:
        self.trial.run(FailSyncOn(node, file))

    @rule(replica=_FEW, to_master=st.booleans(), size_bytes=st.sampled_from((0, 20, 1 << 22, (1 << 32) - 20)))
    def a_frame_is_forged(self, replica: int, to_master: bool, size_bytes: int) -> None:
        self.trial.run(ForgeFrame(replica, to_master, size_bytes))

    @rule(replica=_FEW, to_master=st.booleans(), frame=st.sampled_from(get_args(Forged)))
    def a_wrong_frame_is_sent(self, replica: int, to_master: bool, frame: Forged) -> None:
        self.trial.run(ForgeFrame(replica, to_master, 0, frame))

    @rule(node=_FEW, caller=st.sampled_from(get_args(Caller)))
    def no_replica_connects(self, node: int, caller: Caller) -> None:
        self.trial.run(CallNode(node, caller))

    @rule(by_ms=st.sampled_from((10, 1000, 3100, 6000, 25_000)))
    def time_passes(self, by_ms: int) -> None:
        self.trial.run(AdvanceTime(by_ms))

    @rule(replica=_FEW, to_master=st.booleans(), size_bytes=_BYTES)
    def a_link_is_limited(self, replica: int, to_master: bool, size_bytes: int) -> None:
        self.trial.run(LimitLink(replica, to_master, size_bytes))

    @rule(replica=_FEW)
    def a_link_heals(self, replica: int) -> None:
        self.trial.run(HealLink(replica))

    @rule(replica=_FEW, to_master_bytes=_BYTES, to_replica_bytes=_BYTES)
    def a_link_is_reset(self, replica: int, to_master_bytes: int, to_replica_bytes: int) -> None:
        self.trial.run(ResetLink(replica, to_master_bytes, to_replica_bytes))

    @rule(replica=_FEW, to_master=st.booleans(), bit=st.integers(0, 4000))
    def a_bit_flips(self, replica: int, to_master: bool, bit: int) -> None:
        self.trial.run(FlipBit(replica, to_master, bit))

    @precondition(lambda self: self.trial.hit["crash_node"] < _CRASHES_MAX)
    @rule(node=_FEW, kill=st.booleans(), back=st.integers(0, _BACK_MAX), silent=st.booleans(), data=st.data())
    def a_node_crashes(self, node: int, kill: bool, back: int, silent: bool, data: st.DataObject) -> None:
        node %= self.nodes
        if not self.trial.nodes[node].is_up:
            return
        back = min(back, self.trial.events_of(node))
        survived: dict[str, Choice] = {}
        for write in () if kill else self.trial.in_flight(node, back):
            survived[write.name] = data.draw(st.integers(0, write.alternatives - 1), label=write.name)
        self.trial.run(CrashNode(node, kill=kill, back=back, silent=silent, survived=survived))

    @rule(node=_FEW)
    def a_node_restarts(self, node: int) -> None:
        self.trial.run(RestartNode(node))

    @rule(node=_FEW)
    def a_node_closes(self, node: int) -> None:
        self.trial.run(CloseNode(node))

    @rule(master=_FEW, drained=st.booleans())
    def roles_change(self, master: int, drained: bool) -> None:
        self.trial.run(ChangeRoles(master, drained))

    def teardown(self) -> None:
        """Heal the network and judge all copies."""
        try:
            if self._trial is not None:
                self._trial.finish()
        finally:
            self._opened.__exit__(None, None, None)


def cluster_machine(*, nodes: int = 2, bug: str = "") -> type[ClusterMachine]:
    """Return the machine for clusters of some nodes, with a planted bug or without."""
    return type("ClusterMachine", (ClusterMachine,), {"nodes": nodes, "bug": bug})
