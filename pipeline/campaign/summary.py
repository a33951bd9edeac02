"""Sum up a campaign from its rows, in memory that hardly grows with the campaign.

`Summary.add` takes rows one by one, in order. Summaries of neighbouring ranges of shards can be merged, so that Spark
tasks sum up ranges of files where workers see the output directory. The result is equal either way. It ends with the
shard with which there were enough failures; later shards do not count.

Memory of a summary: some 2 MB, 28 bytes for each run (`_CURVE`, the discovery curve), and some 100 bytes for each shard
(its digest). The discovery curve needs another 40 bytes for each run while it is computed.

    activation   per fault, rule and judge: armed, fired, mattered, summed over all runs and shards
    discovery    after each run: the states, disk images and recovered logs counted so far; of more than `CURVE_POINTS`
                 runs every so many. Images are shared between runs only as a whole: a run whose images were all seen
                 before adds none
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.campaign.files import CampaignFiles, SharedPlace
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.pairs import LevelsTogether
from tornpage.properties.explore.crashes.factors import FACTORS
from tornpage.properties.explore.crashes.rows import Row, RowDigest, break_of, combined_hash, is_complete
from tornpage.properties.explore.crashes.scheduling import silent
from tornpage.properties.explore.crashes.shards import FAILURES_MAX, enough
from tornpage.properties.program.case import Disk

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

__all__ = ["CURVE_POINTS", "NAMED_SHARDS_MAX", "Summary", "summary_in_spark", "summary_of", "summary_of_rows"]

KINDS = ("armed", "fired", "mattered")
CURVE_POINTS = 500
"""Most points of the discovery curve."""

NAMED_SHARDS_MAX = 100
"""Most shards without a canary, and most shards whose worker died, that a summary names. All are counted."""

_SLICE_SHARDS_MAX = 256
_SEEN = ("images", "recovered")
_CURVE = {"states": "l", "images": "l", "recovered": "l", "images_key": "Q", "recovered_key": "Q"}
"""Numbers of a run, and how they are kept. The key of a set of hashes is the first half of the digits of its hash."""

_KEY_DIGITS = 16


@dataclass
class Summary:
    """Hold the sums over the rows of some shards.

    `totals` adds up the columns that are numbers, `verdicts` counts runs and shards by kind and verdict. `broken` are
    the rows of runs that do not hold, `deaths` those of shards whose worker died, `without_canary` the numbers of
    shards that caught no planted bug. `shard_seconds` has the seconds of the first shards. `breaks` has what each shard
    broke.
    """

    totals: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    levels: LevelsTogether = field(default_factory=lambda: LevelsTogether(FACTORS))
    canaries: int = 0
    seconds: float = 0.0
    broken: list[Row] = field(default_factory=list)
    deaths: list[Row] = field(default_factory=list)
    without_canary: list[int] = field(default_factory=list)
    shard_seconds: list[tuple[int, float]] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    breaks: list[tuple[int, list[Hashable]]] = field(default_factory=list)
    curve: dict[str, array[int]] = field(default_factory=lambda: {name: array(kind) for name, kind in _CURVE.items()})
    last_shard: int | None = None
    _digest: RowDigest | None = None
    _breaks: list[Hashable] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self.curve["states"])

    @property
    def shards_complete(self) -> int:
        """Return the number of shards with all their rows."""
        return sum(many for (kind, verdict), many in self.verdicts.items() if kind == "shard" and verdict != "harness")

    @property
    def result_hash(self) -> str:
        """Return the hash of all rows, as `rows.result_hash`."""
        return combined_hash(self.digests)

    def add(self, row: Row) -> None:
        """Add a row; the row of a shard closes its shard."""
        self._digest = self._digest or RowDigest()
        self._digest.add(row)
        self.verdicts[row["kind"], row["verdict"]] += 1
        for kind, counted in self.counts.items():
            counted.update(row[kind])
        if row["kind"] == "history":
            self._add_run(row)
        else:
            self._close(row)

    def _add_run(self, row: Row) -> None:
        for name in ("states", "all_states", "images", "recovered", "proven_legal", "repeated"):
            self.totals[name] += row[name]
        self.levels.add(row["levels"] or "")
        for name in ("states", *_SEEN):
            self.curve[name].append(row[name])
        for name in _SEEN:
            self.curve[f"{name}_key"].append(int(row[f"{name}_hash"][:_KEY_DIGITS], 16))
        if row["verdict"] != "holds":
            self.broken.append(row)
            self._breaks.append(break_of(row))

    def _close(self, row: Row) -> None:
        number = row["shard"]
        if is_complete(row):
            self.canaries += bool(row["canary"])
            self.seconds += row["seconds"]
            self.shard_seconds = [*self.shard_seconds, (number, row["seconds"])][:NAMED_SHARDS_MAX]
            if row["verdict"] == "vacuous":
                self.without_canary = [*self.without_canary, number][:NAMED_SHARDS_MAX]
        else:
            self.deaths = [*self.deaths, row][:NAMED_SHARDS_MAX]
        assert self._digest is not None
        self.digests.append(self._digest.digest())
        if self._breaks:
            self.breaks.append((number, self._breaks))
        self._digest, self._breaks, self.last_shard = None, [], number

    def last_that_counts(self, failures_max: int) -> int | None:
        """Return the number of the shard with which there are enough failures, or None."""
        place = enough((some for _, some in self.breaks), failures_max)
        return None if place is None else self.breaks[place][0]

    def merge(self, later: Summary) -> None:
        """Add the summary of the shards after these."""
        self.totals.update(later.totals)
        self.verdicts.update(later.verdicts)
        for kind, counted in self.counts.items():
            counted.update(later.counts[kind])
        self.levels.merge(later.levels)
        self.canaries += later.canaries
        self.seconds += later.seconds
        self.broken += later.broken
        self.deaths = [*self.deaths, *later.deaths][:NAMED_SHARDS_MAX]
        self.without_canary = [*self.without_canary, *later.without_canary][:NAMED_SHARDS_MAX]
        self.shard_seconds = [*self.shard_seconds, *later.shard_seconds][:NAMED_SHARDS_MAX]
        self.digests += later.digests
        self.breaks += later.breaks
        for name, values in self.curve.items():
            values.extend(later.curve[name])
        self.last_shard = later.last_shard if later.last_shard is not None else self.last_shard

    def silent(self, disk: Disk) -> list[str]:
        """Return the faults, rules and judges that never fired, which weakens a campaign."""
        tally = Tally(hit=self.counts["fired"], effective=self.counts["mattered"])
        return silent(tally, disk)

    def activation(self) -> list[dict[str, Any]]:
        """Return a row per fault, rule and judge, in the order of their names."""
        names = sorted({name for count in self.counts.values() for name in count})
        return [{"fault": name, **{kind: count[name] for kind, count in self.counts.items()}} for name in names]

    def discovery(self) -> list[dict[str, int]]:
        """Return the discovery curve: `states`, `distinct_images` and `distinct_recovered` so far."""
        if not self.runs:
            return []
        step = -(-self.runs // CURVE_POINTS)
        points = np.append(np.arange(step - 1, self.runs - 1, step), self.runs - 1)
        columns = {"states": self._sums("states", None, points)}
        columns |= {f"distinct_{name}": self._sums(name, f"{name}_key", points) for name in _SEEN}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _sums(self, name: str, key: str | None, points: NDArray[np.intp]) -> list[int]:
        """Return sums of a number of each run up to some runs; with a key of first runs only."""
        values = np.frombuffer(self.curve[name], self.curve[name].typecode).astype(np.int64)
        if key is not None:
            keys = np.frombuffer(self.curve[key], self.curve[key].typecode)
            first = np.zeros(len(values), np.bool_)
            first[np.unique(keys, return_index=True)[1]] = True
            values *= first
        sums: list[int] = values.cumsum()[points].tolist()
        return sums


def summary_of_rows(shards: Iterable[Iterable[Row]], failures_max: int = FAILURES_MAX) -> Summary:
    """Return the sums over the rows of shards, which come in order."""
    summary = Summary()
    for rows in shards:
        for row in rows:
            summary.add(row)
        if summary.last_that_counts(failures_max) is not None:
            break
    return summary


def summary_of(files: CampaignFiles, numbers: Iterable[int], *, failures_max: int = FAILURES_MAX) -> Summary:
    """Return the sums over some shards of a directory, in this process."""
    return summary_of_rows((files.rows([number]) for number in sorted(numbers)), failures_max)


def summary_in_spark(
    spark: SparkSession, place: SharedPlace, numbers: Iterable[int], *, failures_max: int = FAILURES_MAX
) -> Summary:
    """Return the same as `summary_of`, from Spark tasks.

    A range of files that a worker does not see is summed up in this process. Raises the errors of Spark.
    """
    from tornpage.pipeline.spark.jobs import Death, do_each

    ordered = sorted(numbers)
    size = max(1, min(_SLICE_SHARDS_MAX, -(-len(ordered) // (4 * spark.sparkContext.defaultParallelism))))
    slices = [tuple(ordered[first : first + size]) for first in range(0, len(ordered), size)]
    total, early, waiting = Summary(), dict[tuple[int, ...], Summary](), slices[::-1]
    files = place.files()

    def keep(some: tuple[int, ...], answer: Summary | Death | None) -> None:
        if not isinstance(answer, Summary):
            answer = summary_of(files, some, failures_max=failures_max)
        early[some] = answer
        while waiting and waiting[-1] in early:
            following = waiting.pop()
            _add_in_order(total, early.pop(following), files, following, failures_max)

    do_each(spark, slices, partial(_summary_in_task, place, failures_max), keep)
    return total


def _summary_in_task(place: SharedPlace, failures_max: int, numbers: tuple[int, ...]) -> Summary | None:
    """Return the sums over some shards; None if this worker does not see the files."""
    return summary_of(place.files(), numbers, failures_max=failures_max) if place.is_seen() else None


def _add_in_order(
    total: Summary, later: Summary, files: CampaignFiles, numbers: Iterable[int], failures_max: int
) -> None:
    """Add a range of shards, up to the shard with which there are enough failures."""
    if total.last_that_counts(failures_max) is not None:
        return
    last = Summary(breaks=[*total.breaks, *later.breaks]).last_that_counts(failures_max)
    if last is not None and last != later.last_shard:
        later = summary_of(files, [number for number in numbers if number <= last], failures_max=failures_max)
    total.merge(later)
