"""The moment of the last crash of a case: the disk as it had been recorded, what survived, and on what that rests."""

from dataclasses import dataclass, replace
from typing import cast

from model.operations import Choice, Crash
from properties.disk.certificate import Certificate, certify
from properties.disk.choosing import chosen
from properties.disk.dirty import DirtyTracker
from properties.disk.disk import DiskState, Image
from properties.disk.images import Fact, compose, disk_state, facts_of
from properties.explore.foreign.choosing import trial_of
from properties.lockstep.trial import Trial
from properties.lockstep.trial_state import Window
from properties.program.case import Case

__all__ = ["CrashContext", "last_crash"]


@dataclass(frozen=True, slots=True)
class CrashContext:
    """Operation `number` is the crash; `trial` has carried out everything before it, `position` is in its journal.

    `choices` has a choice for each fact that is not as at its last sync. After a kill everything written is there.
    """

    number: int
    crash: Crash
    trial: Trial
    position: int
    state: DiskState
    facts: tuple[Fact, ...]
    choices: dict[str, Choice]

    @property
    def window(self) -> Window:
        """The verb that the crash fell into, or behind the answer of which it came."""
        return self.trial.windows[-1]

    @property
    def image(self) -> Image:
        """What recovery finds on the disk."""
        return compose(self.state, self.choices)

    @property
    def certificate(self) -> Certificate:
        """On what each file, size and page of the image rests."""
        files = self.trial.files
        return certify(files.base, files.journal, self.position, self.choices, disk=self.state.disk)


def last_crash(case: Case, *, tracker: DirtyTracker, kills: bool) -> CrashContext | None:
    """Carry a case out up to its last power loss, or kill if `kills` count too; None when it has none.

    Raises GuaranteeBroken when an operation before it fails.
    """
    numbers = [n for n, o in enumerate(case.operations) if isinstance(o, Crash) and (kills or not o.kill)]
    if not numbers:
        return None
    number = numbers[-1]
    crash = case.operations[number]
    assert isinstance(crash, Crash)
    # of a store of other people nothing is asked here but its windows and what was recorded of its files
    trial = cast(Trial, trial_of(case.settings, tracker=tracker))
    for operation in case.operations[:number]:
        trial.run(operation)
    back = min(crash.back, trial.windows[-1].last - trial.windows[-1].first)
    position = trial.position(back)
    disk = "kill" if crash.kill else case.settings.disk
    state = disk_state(trial.files.base, trial.files.journal, position, disk=disk)
    facts = tuple(facts_of(state))
    choices = chosen(facts, crash.survived, crash.others)
    return CrashContext(number, replace(crash, back=back), trial, position, state, facts, choices)
