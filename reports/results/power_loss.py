"""Read the shares of crash states in which a peer breaks a promise.

The runs are those of `--peer --out`. A directory is one run, or has runs as its subdirectories.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tornpage.reports.errors import ReportError
from tornpage.reports.results.intervals import interval
from tornpage.reports.results.tables import Caption
from tornpage.reports.shape import Count, read_json, shaped

__all__ = [
    "ANY",
    "Counterexample",
    "PeerRun",
    "PowerLoss",
    "Share",
    "read_power_loss",
    "version_key",
]

ANY = 0
"""The number of a row that counts the states in which any number is broken."""

_FILES = {"runs": "peer-runs.json", "shares": "peer-shares.json", "examples": "peer-examples.json"}
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class PeerRun:
    """The counts of one run. `own_states` are the states in which our store breaks a number."""

    peer: str
    writer: str
    disk: str
    states: Count
    histories: Count
    distinct: Count
    proven_legal: Count
    own_states: Count
    mode: str
    seed: int
    every: Count
    log_file_bytes: Count


@dataclass(frozen=True, slots=True)
class Share:
    """The states of one flush type in which a peer breaks a number, or any (ANY)."""

    peer: str
    writer: str
    disk: str
    flush: str
    number: int
    name: str
    broken: Count
    states: Count

    @property
    def share(self) -> float:
        """The share of the states."""
        return self.broken / self.states if self.states else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return interval(self.broken, self.states)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest image in which a peer breaks a number, and what each store recovered.

    `losses` in-flight writes did not survive, `due` records had to. `peer_kept` and `own_kept` are None for a store
    that did not start. `own_broken` is empty if our store breaks no promise. `how` says how the case was made small.
    """

    peer: str
    writer: str
    disk: str
    flush: str
    number: int
    name: str
    operations: tuple[str, ...]
    losses: Count
    due: Count
    peer_kept: Count | None
    own_kept: Count | None
    sentence: str
    expected: str
    found: str
    own_broken: str
    token: str
    how: str


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """All runs of a directory."""

    runs: tuple[PeerRun, ...]
    shares: tuple[Share, ...]
    examples: tuple[Counterexample, ...]
    captions: tuple[Caption, ...]

    def pooled(self, writer: str) -> list[Share]:
        """Return the shares of one writer over both flush types.

        They are sorted by disk, version and number.
        """
        sums: dict[tuple[str, str, int], Share] = {}
        flushes: dict[tuple[str, str], dict[str, int]] = {}
        for row in self.shares:
            if row.writer == writer:
                flushes.setdefault((row.peer, row.disk), {})[row.flush] = row.states
        for row in self.shares:
            if row.writer != writer:
                continue
            states = sum(flushes[row.peer, row.disk].values())
            before = sums.get((row.disk, row.peer, row.number))
            broken = row.broken + (before.broken if before else 0)
            sums[row.disk, row.peer, row.number] = Share(
                row.peer, writer, row.disk, "both", row.number, row.name, broken, states
            )
        return sorted(sums.values(), key=lambda row: (row.disk, version_key(row.peer), row.number))


@dataclass(frozen=True, slots=True)
class _Document:
    rows: tuple[dict[str, object], ...]
    caption: Caption = field(default_factory=Caption)


def version_key(peer: str) -> tuple[int, ...]:
    """Return a key that sorts `rocketmq:VERSION` by version."""
    return tuple(int(part) if part.isdigit() else 0 for part in peer.rpartition(":")[2].split("."))


def read_power_loss(directory: Path) -> PowerLoss:
    """Return the runs of a directory. Raises ReportError."""
    runs: list[PeerRun] = []
    shares: list[Share] = []
    examples: list[Counterexample] = []
    captions: list[Caption] = []
    places: dict[tuple[str, str, str], Path] = {}
    for tables in _tables_of(directory):
        found, caption = _rows(tables / _FILES["runs"], PeerRun)
        for run in found:
            place = places.setdefault((run.peer, run.writer, run.disk), tables)
            if place != tables:
                what = f"is a second run of {run.peer} on disk {run.disk}, besides {place.parent}"
                raise ReportError(str(tables.parent), what, "take one of them away")
        runs += [run for run in found if run.states]
        captions.append(caption)
        shares += _rows(tables / _FILES["shares"], Share)[0]
        examples += _rows(tables / _FILES["examples"], Counterexample)[0]
    runs.sort(key=lambda run: (run.writer, run.disk, version_key(run.peer)))
    shares.sort(key=lambda row: (row.writer, row.disk, version_key(row.peer), row.flush, row.number))
    examples.sort(key=lambda row: (row.writer, version_key(row.peer), row.disk, row.number))
    return PowerLoss(tuple(runs), tuple(shares), tuple(examples), tuple(captions))


def _tables_of(directory: Path) -> list[Path]:
    places = [directory, *(sorted(directory.iterdir()) if directory.is_dir() else ())]
    return [place / "tables" for place in places if (place / "tables" / _FILES["runs"]).is_file()]


def _rows(path: Path, kind: type[Row]) -> tuple[list[Row], Caption]:
    document = shaped(_Document, read_json(path), path=path, place="table")
    rows: Sequence[dict[str, object]] = document.rows
    return [shaped(kind, row, path=path, place=f"rows[{number}]") for number, row in enumerate(rows)], document.caption
