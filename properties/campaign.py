"""A campaign: seeds one after the other, a canary, repeats, and a verdict that says how much it means.

It holds only if a planted bug was caught by the same engine in the same run, every fault class fired, equal seeds gave
equal results, and the images that were checked are legal (docs/contract.md, "Campaigns").
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count, islice
from time import perf_counter
from typing import get_args

from properties.case import DamageKind, DerivedHarm, ProgressHarm, Settings
from properties.explore import Tally, explore_seed
from properties.queue_judges import MADE_GOOD
from properties.recorder.dirty import DirtyTracker
from properties.recorder.disk import Disk
from properties.replay import Failure, replay, shrink
from properties.verdict import HarnessError, Verdict

__all__ = ["CampaignResult", "Progress", "canary_bug", "caught_canary", "required_faults", "run_campaign"]

Progress = Callable[[int, float], None]
"""Called with the states counted so far and the seconds spent."""

REPEAT_EVERY = 20
CANARY_SEEDS_MAX = 20
_POWER_FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name", "crash_in_recovery", "kill")


def required_faults(disk: Disk) -> tuple[str, ...]:
    """Return the fault classes that must fire in a campaign on a disk, or its silence proves nothing."""
    harms = (f"derived_{harm}" for harm in get_args(DerivedHarm))
    progress = ("progress_saved", "progress_being_saved", *(f"progress_file_{harm}" for harm in get_args(ProgressHarm)))
    power = ("kill",) if disk == "kill" else (*_POWER_FAULTS, *MADE_GOOD)
    return (*power, *get_args(DamageKind), *harms, *progress, "delivered_after_recovery")


def canary_bug(disk: Disk) -> str:
    """Return the planted bug that a campaign on a disk has to catch."""
    return "no-crc" if disk == "kill" else "lying-flush"


@dataclass
class CampaignResult:
    """What a campaign found. `silent` names fault classes that never fired; `canary` the planted bug it caught."""

    verdict: Verdict
    tally: Tally
    seconds: float
    failure: Failure | None = None
    silent: list[str] = field(default_factory=list)
    canary: str = ""
    repeated: int = 0
    interrupted: bool = False


def run_campaign(
    base: Settings,
    *,
    seed: int,
    states: int | None,
    seconds: float | None,
    tracker: DirtyTracker,
    progress: Progress,
) -> CampaignResult:
    """Explore until `states` states are counted or `seconds` have passed, whichever is given and comes first.

    A keyboard interrupt ends it with what it has. Raises HarnessError when a run does not repeat or a failure does not
    replay.
    """
    tally = Tally()
    result = CampaignResult(Verdict.HOLDS, tally, 0.0)
    try:
        for number in count():
            before = deepcopy(tally) if number % REPEAT_EVERY == 0 else None
            failure = _explore(base, seed, number, tally, result, (states, seconds), tracker, progress)
            if failure is not None:
                return _broken(result, failure, tracker)
            if _is_over(tally, result, states, seconds):
                break
            if before is not None:
                _repeat(base, _history_seed(seed, number), before, tally, tracker)
                result.repeated += 1
    except KeyboardInterrupt:
        result.interrupted = True
    result.silent = [fault for fault in required_faults(base.disk) if not tally.fired[fault]]
    seeds = (_history_seed(seed, number) for number in count())
    result.canary = "" if result.interrupted else caught_canary(base, seeds, tracker)
    if result.silent or not result.canary:
        result.verdict = Verdict.VACUOUS
    return result


def _history_seed(seed: int, number: int) -> str:
    return f"{seed}:{number}"


def _is_over(tally: Tally, result: CampaignResult, states: int | None, seconds: float | None) -> bool:
    return (states is not None and tally.states >= states) or (seconds is not None and result.seconds >= seconds)


def _explore(
    base: Settings,
    seed: int,
    number: int,
    tally: Tally,
    result: CampaignResult,
    limits: tuple[int | None, float | None],
    tracker: DirtyTracker,
    progress: Progress,
) -> Failure | None:
    """Run one history; `result.seconds` grows by what it took."""
    already, started = result.seconds, perf_counter()
    seed_of_history = _history_seed(seed, number)
    history = explore_seed(
        seed_of_history, base, tracker=tracker, tally=tally, is_over=lambda: _is_over(tally, result, *limits)
    )
    for failure in history:
        result.seconds = already + perf_counter() - started
        if failure is not None:
            return failure
        progress(tally.states, result.seconds)
    result.seconds = already + perf_counter() - started
    return None


def _broken(result: CampaignResult, failure: Failure, tracker: DirtyTracker) -> CampaignResult:
    again = replay(failure.case, tracker=tracker)
    if again is None:
        raise HarnessError(f"a failure does not replay: {failure.broken}; case: {failure.case.token()}")
    result.verdict = Verdict.BROKEN
    result.failure = shrink(again, tracker=tracker)
    return result


def _repeat(base: Settings, history_seed: str, before: Tally, after: Tally, tracker: DirtyTracker) -> None:
    """Run one history again and compare all that it counted (a twentieth of all runs)."""
    for _ in explore_seed(history_seed, base, tracker=tracker, tally=before):
        continue
    if replace(before, seconds=after.seconds) != after:
        raise HarnessError(f"history {history_seed} gives other results when it is run again")


def caught_canary(base: Settings, history_seeds: Iterable[str], tracker: DirtyTracker) -> str:
    """Return the planted bug that this engine caught in the first of these histories, or nothing.

    Then its silence about the store proves nothing.
    """
    bug = canary_bug(base.disk)
    planted = replace(base, bug=bug)
    for history_seed in islice(history_seeds, CANARY_SEEDS_MAX):
        found = explore_seed(history_seed, planted, tracker=tracker, tally=Tally())
        if any(failure is not None for failure in found):
            return bug
    return ""
