"""Damage stores in one or two places at a time, open, read and write them, and judge.

A damage is a function of seed, store and number, so equal seeds give equal results for any number of workers. The
campaign goes over the stores in turn, in parts of consecutive numbers. What an earlier run has kept is not done again.
The canary is the planted bug `queue-offset-believed`: the campaign has to find it in one of its stores.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Launcher
from tornpage.properties.explore.damage.trial import DamageTrials, Row, trials_of
from tornpage.properties.planted import parts_of

__all__ = ["CANARY", "KEPT_FILE", "DamagePlan", "DamageResult", "run_damages"]

CANARY = "queue-offset-believed"
KEPT_FILE = "damages.jsonl"
FAILURES_MAX = 10
_PART = 50
_CANARY_TRIES = 400
_PACKAGE = Path(__file__).absolute().parents[3]
_REQUIRED = ("record", "unit", "file")


@dataclass(frozen=True, slots=True)
class DamagePlan:
    """What to damage: so many `damages`, over the stores in turn. `bug` is a planted bug."""

    stores: tuple[str, ...]
    seed: int
    damages: int
    bug: str = ""
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive damages of one store."""

    store: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row as it is kept: with what it depends on."""

    source: str
    seed: int
    bug: str
    place: str
    row: dict[str, object]


DamageResult = CampaignResult[Counter[str], Row]
"""What a damage campaign found: its tally counts damages by kind and by outcome."""


def run_damages(
    plan: DamagePlan, *, keep: Path | None = None, progress: Progress = lambda count, seconds: None
) -> DamageResult:
    """Run a campaign; rows are kept in the file `keep` and found again.

    Raises InspectError or ValueError for a store that cannot be used, BadRows for a file that holds something else, and
    ResumeWriteError when a row cannot be written.
    """
    for store in plan.stores:  # a store that cannot be read is said before anything runs
        with trials_of(store, seed=plan.seed, parts=parts_of(plan.bug)):
            pass
    explorer = _Explorer(plan, ResumeRows(keep, KeptRow))
    return explore(explorer, workers=plan.workers, progress=progress)


@lru_cache(maxsize=1)
def _source() -> str:
    """Return a hash of the source: rows that other source made are made again."""
    digest = blake2b(digest_size=8)
    for path in sorted(path for room in ("impl", "model", "properties") for path in (_PACKAGE / room).rglob("*.py")):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Job:
    """Carries out parts of a plan."""

    plan: DamagePlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[Part, Control], list[Row]]]:
        """Return what carries out parts here; a stop request cuts one after a damage."""
        plan = self.plan
        with ExitStack() as stack:
            open_trials: dict[int, DamageTrials] = {}

            def carry_out(part: Part, control: Control) -> list[Row]:
                if part.store not in open_trials:
                    trials = trials_of(plan.stores[part.store], seed=plan.seed, parts=parts_of(plan.bug))
                    open_trials[part.store] = stack.enter_context(trials)
                rows: list[Row] = []
                for number in range(part.first, part.first + part.count):
                    if control.is_stopped():
                        break
                    rows.append(open_trials[part.store].run(number))
                    control.tell(len(rows), f"{part.store}/{number}")
                return rows

            yield carry_out


class _Explorer:
    """Damages as parts of a campaign."""

    launcher: Launcher = "spawn"
    holds_interrupts = True
    canary_time: CanaryTime = "last"

    def __init__(self, plan: DamagePlan, kept: ResumeRows[KeptRow]) -> None:
        self.job = _Job(plan)
        self._plan = plan
        self._kept = kept
        self._known: dict[tuple[str, int], Row] = {
            (each.place, row.number): row
            for each in kept.rows
            if (each.source, each.seed, each.bug) == (_source(), plan.seed, plan.bug)
            for row in (Row(**each.row),)  # type: ignore[arg-type]
        }
        self._rows: list[Row] = []

    def parts(self) -> Iterator[Part]:
        """Yield parts of the stores in turn."""
        stores, left, first = len(self._plan.stores), self._plan.damages, 0
        while left > 0:
            for store in range(stores):
                count = min(_PART, left)
                if count:
                    yield Part(store, first, count)
                left -= count
            first += _PART

    def known(self, part: Part) -> list[Row] | None:
        """Return the rows that an earlier run kept, if it kept all of the part."""
        place = self._plan.stores[part.store]
        rows = [self._known.get((place, number)) for number in range(part.first, part.first + part.count)]
        return None if None in rows else [row for row in rows if row is not None]

    def tally(self) -> Counter[str]:
        """Return counters of nothing."""
        return Counter()

    def count(self, made: Sequence[Row]) -> int:
        """Count damages."""
        return len(made)

    def take(self, result: DamageResult, part: Part, made: list[Row] | Died[Part]) -> bool:
        """Take the rows of a part in."""
        if isinstance(made, Died):
            result.faults.append(f"a worker {made.how} at damage {made.at or part.first} of its store")
            return False
        place = self._plan.stores[part.store]
        for row in made:
            if (place, row.number) not in self._known:
                self._kept.add(KeptRow(_source(), self._plan.seed, self._plan.bug, place, asdict(row)))
            self._rows.append(row)
            result.tally["damages"] += 1
            result.tally[row.mode] += 1
            result.tally[f"kind_{row.kind}"] += 1
            result.tally[f"change_{row.change}"] += 1
            if row.contract:
                result.tally["broken"] += 1
                result.meet((row.contract, row.kind, row.field, row.change), row, history=f"{place} {row.number}")
        return len(result.found) < FAILURES_MAX

    def canary(self) -> str:
        """Return the planted bug that was found in one of the stores, or nothing."""
        for store in self._plan.stores:
            with trials_of(store, seed=self._plan.seed, parts=parts_of(CANARY)) as trials:
                if any(trials.run(number).contract for number in range(_CANARY_TRIES // len(self._plan.stores))):
                    return CANARY
        return ""

    def conclude(self, result: DamageResult) -> None:
        """Name the kinds of places that were never damaged, and hash all rows."""
        digest = blake2b(digest_size=16)
        for row in self._rows:
            digest.update(repr(row).encode())
        result.result_hash = digest.hexdigest()
        result.silent = [kind for kind in _REQUIRED if not result.tally[f"kind_{kind}"]]

    def shrink(self, failure: Row, budget: Budget, watch: Watch) -> tuple[Row | None, bool]:
        """Return the failure as it is, or None if it does not show again."""
        for store in self._plan.stores:
            with trials_of(store, seed=self._plan.seed, parts=parts_of(self._plan.bug)) as trials:
                if trials.name == failure.store and trials.run(failure.number).contract == failure.contract:
                    return failure, False
        return None, False

    def describe(self, failure: Row) -> str:
        """Return the broken guarantee and the damage."""
        return f"contract {failure.contract}: {failure.sentence} ({failure.store}, damage {failure.number})"
