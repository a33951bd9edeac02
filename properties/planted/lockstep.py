"""Start lockstep runs of stores in which a planted bug replaces parts."""

from tornpage.impl.parts import Parts
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.lockstep.recovery import Observer
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings

__all__ = ["lockstep_of"]


def lockstep_of(
    settings: Settings, *, tracker: DirtyTracker, parts: Parts | None = None, observer: Observer | None = None
) -> Lockstep:
    """Start the lockstep run of a case with `parts`, or else with those of `settings.bug`."""
    return Lockstep(settings, parts=parts or parts_of(settings.bug), tracker=tracker, observer=observer)
