"""Run a case of a Raft group again, and shrink it while it fails in the same way."""

from collections.abc import Iterator
from dataclasses import replace

from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.step_program import StepFailure, StepProgram
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft.nodes import NodesTrial
from tornpage.properties.raft.trial import RaftTrial

__all__ = ["RAFT_GROUPS", "RaftFailure", "replay_raft"]

RaftFailure = StepFailure[RaftCase]


def _simpler_settings(settings: RaftSettings) -> Iterator[RaftSettings]:
    if settings.limits != "usual":
        yield replace(settings, limits="usual")
    if settings.store:
        yield replace(settings, store=False, data_file_bytes=RaftSettings().data_file_bytes)
    if settings.data_file_bytes != RaftSettings().data_file_bytes:
        yield replace(settings, data_file_bytes=RaftSettings().data_file_bytes)
    if settings.batch_bytes != RaftSettings().batch_bytes:
        yield replace(settings, batch_bytes=RaftSettings().batch_bytes)
    if settings.members > 3:
        yield replace(settings, members=settings.members - 1)


def _trial_of(settings: RaftSettings, *, tracker: DirtyTracker) -> RaftTrial:
    """Return the trial of a case, with nodes or without them."""
    return (NodesTrial if settings.nodes else RaftTrial)(settings, tracker=tracker)


RAFT_GROUPS = StepProgram(RaftCase, _trial_of, _simpler_settings)


def replay_raft(case: RaftCase, *, tracker: DirtyTracker) -> RaftFailure | None:
    """Run a case and its end; promoted tests call this.

    Return its failure with the events up to it, or None if all hold.
    """
    return RAFT_GROUPS.replay(case, tracker=tracker)
