"""The trial of a case: of our own store on a recorded disk, or of the store that its settings name."""

from properties.disk.dirty import DirtyTracker
from properties.foreign.trial import TargetTrial
from properties.lockstep.lockstep import Lockstep
from properties.planted.lockstep import lockstep_of
from properties.program.case import Settings

__all__ = ["AnyTrial", "trial_of"]

AnyTrial = Lockstep | TargetTrial


def trial_of(settings: Settings, *, tracker: DirtyTracker) -> AnyTrial:
    """Return a new trial with nothing carried out. What it raises is said where each of them is made."""
    return TargetTrial(settings) if settings.target else lockstep_of(settings, tracker=tracker)
