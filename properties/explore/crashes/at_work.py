"""Counts what rules and judges do in one history: armed, fired, mattered.

A rule is armed when the mix of the history allows it and the store has the service that it needs, fired when it was
carried out, and mattered when the history is another one for it: the model's log, the disk or an effect that trials
count changed; of a rule that only looks, when there was a record to see; of a rule that has something fail, when
something failed for it.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping

from properties.disk.dirty import DirtyTracker
from properties.disk.recording_files import RecordingFiles
from properties.explore.crashes.judges_at_work import armed_judges, fired_judges
from properties.explore.crashes.tally import Tally
from properties.judge.judges import LegalLogs, Recovered
from properties.judge.progress_ledger import LegalVersions
from properties.lockstep.known import Known
from properties.lockstep.trial import Trial
from properties.program.case import WITHOUT_A_VERB, Operation, Settings
from properties.program.workload import Rule

__all__ = ["CountedTrial", "RulesAtWork"]

_FAILURES: Mapping[str, str] = {
    "fail_sync": "poisoned",
    "fail_write": "commits_failed",
    "refuse_file": "dispatch_failed",
}
"""What shows in a trial once something fails that a rule has ordered to fail: the log is poisoned, or an effect."""


class CountedTrial(Trial):
    """A trial that counts the judges of each store it recovers; whoever knows of equal ones counts them himself."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, tally: Tally) -> None:
        self._tally = tally
        super().__init__(settings, tracker=tracker)

    def judged(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, known: Known | None = None
    ) -> Recovered:
        """Let every judge look, and count which had something to compare."""
        found = super().judged(files, legal, versions, known=known)
        if known is None or isinstance(known, _OfOneRecovery):
            self._tally.saw(armed_judges(found.settings), fired_judges(found))
        return found

    def recover(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, known: Known | None = None
    ) -> Recovered:
        """Recover twice: what the second process has is nearly always what the first one had, and was judged."""
        known = known or _OfOneRecovery(random.Random(len(self.performed)), Counter(), Counter())
        return super().recover(files, legal, versions, known=known)


class _OfOneRecovery(Known):
    """What is known while one recovery is followed by the next; stores that were judged with it are counted here."""


class RulesAtWork:
    """`done` counts how often each rule was carried out in this history; `pending` are failures yet to happen."""

    def __init__(self, tally: Tally, trial: Trial) -> None:
        self._tally = tally
        self._trial = trial
        self._pending: set[str] = set()
        self.done: Counter[str] = Counter()

    def arm(self, rule: Rule) -> None:
        """Count a rule that this history may draw."""
        self._tally.armed[f"rule_{rule.name}"] += 1

    def carry_out(self, rule: Rule, operation: Operation, run: Callable[[Operation], None]) -> None:
        """Carry out an operation that a rule has drawn, and count."""
        trial, name = self._trial, f"rule_{rule.name}"
        self.done[rule.name] += 1
        self._tally.fired[name] += 1
        if rule.name in _FAILURES:
            self._pending.add(rule.name)
        log, journal, effects = trial.log, len(trial.files.journal), trial.effects.total()
        self.follow(operation, run)
        if isinstance(operation, WITHOUT_A_VERB):
            mattered = rule.name not in _FAILURES and (bool(log.retained) or trial.effects.total() > effects)
        else:
            mattered = trial.log is not log or len(trial.files.journal) != journal or trial.effects.total() > effects
        self._tally.mattered[name] += mattered

    def follow(self, operation: Operation, run: Callable[[Operation], None]) -> None:
        """Carry out any operation; count the failures that were ordered and happen in it."""
        if not self._pending:
            run(operation)
            return
        before = self._trial.effects.copy()
        run(operation)
        happened = {*(self._trial.effects - before), *(["poisoned"] if self._trial.log.poisoned else [])}
        for name in sorted(name for name in self._pending if _FAILURES[name] in happened):
            self._pending.remove(name)
            self._tally.mattered[f"rule_{name}"] += 1
