"""The trial of a case: of our own store on a recorded disk, or of the store that its settings name."""

from properties.cases.case import Settings
from properties.recorder.dirty import DirtyTracker
from properties.targets.trial import TargetTrial
from properties.trial.trial import Trial

__all__ = ["AnyTrial", "trial_of"]

AnyTrial = Trial | TargetTrial


def trial_of(settings: Settings, *, tracker: DirtyTracker) -> AnyTrial:
    """Return a new trial with nothing carried out. What it raises is said where each of them is made."""
    return TargetTrial(settings) if settings.target else Trial(settings, tracker=tracker)
