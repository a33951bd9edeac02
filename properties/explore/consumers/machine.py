"""A Hypothesis machine with the operations of campaigns of consumer groups."""

from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tornpage.model.consumers.operations import (
    AddQueue,
    CommitProgress,
    CrashBroker,
    CrashLocal,
    DeleteFiles,
    DeliverAnswer,
    DeliverRequest,
    DropConnection,
    FailRequests,
    FinishBatch,
    FlushBroker,
    GroupOperation,
    HangMember,
    HealMember,
    HoldResults,
    Join,
    KillMember,
    Leave,
    LoseAnswer,
    LoseRequest,
    MemberPart,
    ParkRequests,
    PartitionMember,
    PassTime,
    Produce,
    RepeatRequest,
    RestartBroker,
    ResumeMember,
    RunDirect,
    RunGroup,
    SlowService,
    StepBroker,
    StepMember,
    Subscribe,
    TakeBatch,
    UseBroker,
    UseCache,
    UseMemberPart,
    UseMembers,
    UseOwners,
    UseStateFiles,
)
from tornpage.model.operations import Choice
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.program.group_case import GroupSettings

__all__ = ["GroupMachine", "group_machine"]

_CRASHES_MAX, _BACK_MAX = 2, 30
_FEW = st.integers(0, 2)
_RESULTS = st.sampled_from(("success", "later", "first", "soon", "dead"))


class GroupMachine(RuleBasedStateMachine):
    """Runs one consumer group; `bug` and `members` are set by `group_machine`."""

    bug = ""
    members = 2

    def __init__(self) -> None:
        super().__init__()
        self._opened: Any = choose_tracker("auto")
        self._tracker: DirtyTracker = self._opened.__enter__()
        self._trial: GroupTrial | None = None

    @initialize(
        queues=st.integers(1, 3),
        is_orderly=st.booleans(),
        syncs=st.booleans(),
        strategy=st.sampled_from(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        retries=st.sampled_from((16, 1)),
        threshold=st.sampled_from((1000, 1, 2)),
        batch=st.integers(1, 2),
        is_manual=st.sampled_from((False, False, False, True)),
        log_file_bytes=st.sampled_from((1 << 16, 1536)),
        is_cold=st.booleans(),
        holds_pulls=st.sampled_from((True, True, False)),
    )
    def opens(
        self,
        queues: int,
        is_orderly: bool,
        syncs: bool,
        strategy: Any,
        retries: int,
        threshold: int,
        batch: int,
        is_manual: bool,
        log_file_bytes: int,
        is_cold: bool,
        holds_pulls: bool,
    ) -> None:
        settings = GroupSettings(
            members=self.members,
            queues=queues,
            is_orderly=is_orderly and not is_manual,
            is_manual=is_manual,
            syncs=syncs or is_manual,
            log_file_bytes=log_file_bytes,
            is_cold=is_cold,
            holds_pulls=holds_pulls,
            strategy=strategy,
            retries=retries,
            threshold=threshold,
            batch=batch,
            bug=self.bug,
        )
        self._trial = GroupTrial(settings, tracker=self._tracker)

    @property
    def trial(self) -> GroupTrial:
        """The run of this example."""
        assert self._trial is not None
        return self._trial

    @rule(queue=_FEW, tag=st.sampled_from("ABC"))
    def a_message_is_put(self, queue: int, tag: str) -> None:
        self.trial.run(Produce(queue, tag))

    @rule(kind=st.sampled_from((Join, Leave, HangMember, ResumeMember, StepMember, TakeBatch)), member=_FEW)
    def a_member_acts(self, kind: Any, member: int) -> None:
        self.trial.run(kind(member))

    @rule(member=_FEW, silent=st.booleans())
    def a_member_dies(self, member: int, silent: bool) -> None:
        self.trial.run(KillMember(member, silent))

    @rule(member=_FEW, number=_FEW, result=_RESULTS)
    def a_listener_ends(self, member: int, number: int, result: Any) -> None:
        self.trial.run(FinishBatch(member, number, result))

    @rule(rounds=st.integers(1, 8), by_ms=st.sampled_from((0, 50, 500, 6_000)), result=_RESULTS)
    def all_run(self, rounds: int, by_ms: int, result: Any) -> None:
        self.trial.run(RunGroup(rounds, by_ms, result))

    @rule(by_ms=st.sampled_from((1_000, 11_000, 31_000, 61_000, 125_000)))
    def time_passes(self, by_ms: int) -> None:
        self.trial.run(PassTime(by_ms))

    @rule(operation=st.sampled_from((HoldResults(), HoldResults(hold=False), FlushBroker(), StepBroker(), AddQueue())))
    def all_else(self, operation: GroupOperation) -> None:
        self.trial.run(operation)

    @rule(member=_FEW, again=st.booleans())
    def a_member_subscribes(self, member: int, again: bool) -> None:
        self.trial.run(Subscribe(member, again))

    @rule(
        member=st.integers(0, 1),
        is_broadcasting=st.booleans(),
        begins=st.sampled_from(("first", "last", "time")),
        result=_RESULTS,
        end=st.sampled_from(("", "", "leave", "close", "kill")),
    )
    def members_beside_the_broker_run(
        self, member: int, is_broadcasting: bool, begins: Any, result: Any, end: Any
    ) -> None:
        self.trial.run(RunDirect(member, is_broadcasting, result=result, begins=begins, end=end))

    @rule(
        kind=st.sampled_from((UseBroker, UseCache, UseMembers, UseOwners, UseStateFiles)), seed=st.integers(0, 1 << 20)
    )
    def a_part_is_used_alone(self, kind: Any, seed: int) -> None:
        self.trial.run(kind(seed))

    @rule(part=st.sampled_from(get_args(MemberPart)), seed=st.integers(0, 1 << 20))
    def a_part_of_a_member_is_used_alone(self, part: Any, seed: int) -> None:
        self.trial.run(UseMemberPart(part, seed))

    @rule(service=st.sampled_from(("", "flush", "group-commit", "progress", "reput", "schedule")))
    def a_service_is_slow(self, service: str) -> None:
        self.trial.run(SlowService(service))

    @precondition(lambda self: self.trial.settings.log_file_bytes == 1536)
    @rule()
    def files_are_deleted(self) -> None:
        for operation in (FlushBroker(), StepBroker(), PassTime(1_000), DeleteFiles()):
            self.trial.run(operation)

    @precondition(lambda self: self.trial.settings.is_manual)
    @rule(member=_FEW)
    def a_program_commits(self, member: int) -> None:
        self.trial.run(CommitProgress(member))

    @rule(
        kind=st.sampled_from((DeliverRequest, DeliverAnswer, LoseRequest, LoseAnswer, RepeatRequest)),
        member=_FEW,
        number=_FEW,
    )
    def a_message_of_the_network(self, kind: Any, member: int, number: int) -> None:
        self.trial.run(kind(member, number))

    @rule(kind=st.sampled_from((ParkRequests, PartitionMember, HealMember, DropConnection)), member=_FEW)
    def the_network(self, kind: Any, member: int) -> None:
        self.trial.run(kind(member))

    @rule(kind=st.sampled_from(("query_offset", "send_back", "pull", "members", "lock", "update_offset")), count=_FEW)
    def requests_fail(self, kind: Any, count: int) -> None:
        self.trial.run(FailRequests(kind, count))

    @rule(back=st.integers(0, 25), others=st.sampled_from(("lost", "kept")))
    def local_progress_crashes(self, back: int, others: Any) -> None:
        self.trial.run(CrashLocal(back=back, others=others))

    @precondition(lambda self: self.trial.hit["crash_broker"] < _CRASHES_MAX)
    @rule(kill=st.booleans(), back=st.integers(0, _BACK_MAX), data=st.data())
    def the_broker_crashes(self, kill: bool, back: int, data: st.DataObject) -> None:
        if not self.trial.host.is_up:
            return
        back = min(back, self.trial.events_of_action())
        survived: dict[str, Choice] = {}
        for write in () if kill else self.trial.in_flight(back):
            survived[write.name] = data.draw(st.integers(0, write.alternatives - 1), label=write.name)
        self.trial.run(CrashBroker(kill=kill, back=back, survived=survived))

    @rule()
    def the_broker_restarts(self) -> None:
        self.trial.run(RestartBroker())

    def teardown(self) -> None:
        """End all faults and judge that everything is delivered."""
        try:
            if self._trial is not None:
                self._trial.finish()
        finally:
            self._opened.__exit__(None, None, None)


def group_machine(*, members: int = 2, bug: str = "") -> type[GroupMachine]:
    """Return the machine for groups of some members, with a planted bug or without."""
    return type("GroupMachine", (GroupMachine,), {"members": members, "bug": bug})
