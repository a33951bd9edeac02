"""Run the matrix: every writer, closed and killed, and every reader.

Writers come first. Our store writes with each kind of checksum, and each release writes as a broker does. Each store is
kept with the answers that it gave before its end. Readers follow. A reader opens copies:

* each release, as a stock store, opens the stores of our store; then our store opens the same copy again;
* our store opens the stores of each release; then that release opens the same copy again;
* each release opens the stores of every release in mode `light`.

The answers are compared with those of the writer. Versions may run in several threads, each with a JVM of its own.
"""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, Self

from tornpage.impl.errors import StoreError
from tornpage.impl.log.loading import Finding
from tornpage.peers.errors import PeerError, PeerFailed
from tornpage.peers.matrix.answers import Answers, answers_of_ours, answers_of_peer, compared, keys_in
from tornpage.peers.matrix.held import held_in
from tornpage.peers.matrix.known import OURS, Opening, Reading, dropped_by, known_finding, reason_of
from tornpage.peers.matrix.workload import SETTINGS, Operation, config_of, fillers, operations
from tornpage.peers.matrix.writing import DELIVERY_S, open_ours, settle, wait_for, write_ours
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.peers.rocketmq.store import PeerStore, opened

__all__ = ["ENDINGS", "Cell", "Matrix", "MatrixPlan", "run_matrix"]

ENDINGS = ("closed", "killed", "expired")
"""How a store ended: by a close, by SIGKILL, or by a close after its first log files had expired and were deleted.

Our store deletes files a minute after it opened, which is too late for the matrix.
"""
_OURS_ENDINGS = ("closed", "killed")

_CHECKSUMS = ("record", "body")
_SHOWN = 5
_PAIR = 2
_ANSWER_S = 300.0
_EXPIRED_FILES = 2
_LIMITS = Limits(answer_s=_ANSWER_S)


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """The releases, operations of each writer, seed, and number of threads."""

    releases: Sequence[Release]
    count: int = 200
    seed: int = 0
    workers: int = 2

    def identity(self) -> dict[str, Any]:
        """Return what rows of an earlier run must have in common with this one."""
        drivers = {release.version: release.driver.name for release in self.releases}
        return {"count": self.count, "seed": self.seed, "drivers": drivers}


@dataclass(slots=True)
class Cell:
    """The comparison of one reading.

    `known` counts the differences by the name of their reason. `unexplained` counts the others, `sentences` has the
    first ones. `error` says why the reading failed. `findings` are those of our store, if it is the reader.
    """

    writer: str
    ending: str
    reader: str
    checksum: str = ""
    again: bool = False
    comparisons: int = 0
    known: dict[str, int] = field(default_factory=dict)
    unexplained: int = 0
    sentences: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it has a difference without a reason, a finding, or failed."""
        return bool(self.unexplained or self.error or self.findings)

    def document(self) -> dict[str, Any]:
        """Return the cell as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the cell in a document."""
        return cls(**document)


@dataclass(slots=True)
class Matrix:
    """The cells of a run, in the order of the plan."""

    cells: list[Cell] = field(default_factory=list)
    interrupted: bool = False
    resumed: int = 0


def run_matrix(plan: MatrixPlan, directory: Path, *, progress: Callable[[str], None] = lambda name: None) -> Matrix:
    """Write and read all stores below a directory.

    Stores and cells that an earlier run of the same plan finished there are used again. A keyboard interrupt ends the
    run and keeps the finished readers.
    """
    work = _Work(plan, directory)
    result = Matrix()
    writers = [*((OURS, checksum) for checksum in _CHECKSUMS), *((release.version, "") for release in plan.releases)]
    tasks = [
        (writer, ending, checksum)
        for writer, checksum in writers
        for ending in (_OURS_ENDINGS if writer == OURS else ENDINGS)
    ]
    with ThreadPoolExecutor(plan.workers) as threads:
        try:
            for done in _finished([threads.submit(work.write, *task) for task in tasks]):
                progress(done.result())
            for done in _finished([threads.submit(work.read, release) for release in plan.releases]):
                progress(done.result())
        except KeyboardInterrupt:
            result.interrupted = True
            work.stop()
            threads.shutdown(wait=True, cancel_futures=True)
    result.resumed = work.resumed
    for release in plan.releases:
        result.cells += work.cells_of(release.version) or []
    return result


def _finished(futures: Sequence["Future[str]"]) -> "Iterator[Future[str]]":
    """Yield futures as they finish; an interrupt is raised at once."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
        yield from done


class _Work:
    """The stores and cells below a directory."""

    def __init__(self, plan: MatrixPlan, directory: Path) -> None:
        self._plan = plan
        self._stores = directory / "stores"
        self._cells = directory / "cells"
        self._live: set[Process] = set()
        self._guard = threading.Lock()
        self._stopped = False
        self.resumed = 0
        for made in (self._stores, self._cells):
            made.mkdir(parents=True, exist_ok=True)

    def stop(self) -> None:
        """End all JVMs, so that running tasks end soon."""
        with self._guard:
            self._stopped = True
            for process in self._live:
                with suppress(OSError):
                    process.kill()

    @contextmanager
    def _process(self, release: Release) -> Iterator[Process]:
        """Yield a process that `stop` ends."""
        with Process(release, _LIMITS) as process:
            with self._guard:
                if self._stopped:
                    raise PeerFailed("the run was interrupted")
                self._live.add(process)
            try:
                yield process
            finally:
                with self._guard:
                    self._live.discard(process)

    # ---- writers ---------------------------------------------------------------------------------------------------

    def _place(self, writer: str, ending: str, checksum: str) -> Path:
        return self._stores / "-".join(filter(None, (writer, ending, checksum)))

    def write(self, writer: str, ending: str, checksum: str) -> str:
        """Write a store unless it is there; return its name."""
        place = self._place(writer, ending, checksum)
        if (place / "answers.json").exists() and "error" not in json.loads((place / "answers.json").read_text()):
            self.resumed += 1
            return place.name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            if writer == OURS:
                answers = write_ours(
                    place / "store", count=self._plan.count, seed=self._plan.seed, record_checksum=checksum,
                    closed=ending == "closed",
                )  # fmt: skip
            else:
                answers = self._write_with(self._release(writer), place / "store", ending=ending)
        except PeerError as error:
            document: dict[str, Any] = {"error": str(error)}
        else:
            document = answers.document()
        if not self._stopped:
            _write(place / "answers.json", document)
        return place.name

    def _release(self, version: str) -> Release:
        return next(release for release in self._plan.releases if release.version == version)

    def _write_with(self, release: Release, directory: Path, *, ending: str) -> Answers:
        directory.mkdir()
        with self._process(release) as process, opened(process, str(directory), SETTINGS, mode="stock") as store:
            if not store.loaded:
                raise PeerFailed(store.reason)
            for each in operations(self._plan.count, seed=self._plan.seed):
                _put(store, each)
            if ending == "expired":
                _fill(store)
            _dispatched(store)
            sleep(DELIVERY_S)
            _dispatched(store)
            if ending == "expired":
                _expire(store, directory)
            answers = answers_of_peer(store)
            if ending == "killed":
                process.kill()
                store.abandon()
        return self._reopened(release, directory) if ending == "expired" else answers

    def _reopened(self, release: Release, directory: Path) -> Answers:
        """Return the answers of a copy that was opened again.

        Since 5.0.0 the begin of a queue follows a deletion some minutes later, or when the store opens.
        """
        copy = directory.with_name("reopened")
        shutil.copytree(directory, copy)
        try:
            with self._process(release) as process, opened(process, str(copy), SETTINGS) as store:
                return answers_of_peer(store)
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    # ---- readers ---------------------------------------------------------------------------------------------------

    def cells_of(self, version: str) -> list[Cell] | None:
        """Return the finished cells of a reader, None if there are none."""
        path = self._cells / f"{version}.json"
        return [Cell.of(each) for each in json.loads(path.read_text())] if path.exists() else None

    def read(self, release: Release) -> str:
        """Open all stores with a release, and its own with our store; return a name.

        Readings of an earlier run that have no fault are not repeated.
        """
        version = release.version
        earlier = {_place_of(cell): cell for cell in self.cells_of(version) or [] if not cell.is_bad}
        if len(earlier) == self._readings():
            self.resumed += 1
            return f"reader {version}"
        copies = self._stores.parent / f"copies-{version}"
        shutil.rmtree(copies, ignore_errors=True)
        cells: list[Cell] = []
        try:
            with self._process(release) as process:
                for checksum in _CHECKSUMS:
                    for ending in _OURS_ENDINGS:
                        pair = [Cell(OURS, ending, version, checksum, again=again) for again in (False, True)]
                        kept = [earlier[_place_of(cell)] for cell in pair if _place_of(cell) in earlier]
                        pair = kept if len(kept) == _PAIR else self._theirs_of_ours(process, copies, ending, checksum)
                        cells += pair
                for ending in ENDINGS:
                    pair = [Cell(version, ending, OURS, again=again) for again in (False, True)]
                    kept = [earlier[_place_of(cell)] for cell in pair if _place_of(cell) in earlier]
                    cells += kept if len(kept) == _PAIR else self._ours_of_theirs(process, copies, version, ending)
                for other in self._plan.releases:
                    for ending in ENDINGS:
                        cell = Cell(other.version, ending, version)
                        kept_cell = earlier.get(_place_of(cell))
                        cells.append(kept_cell or self._by_peer(process, copies, cell))
                        shutil.rmtree(copies, ignore_errors=True)
        finally:
            shutil.rmtree(copies, ignore_errors=True)
        if not self._stopped:
            _write(self._cells / f"{version}.json", [cell.document() for cell in cells])
        return f"reader {version}"

    def _readings(self) -> int:
        """Return the number of readings of one reader."""
        by_pairs = len(_CHECKSUMS) * len(_OURS_ENDINGS) + len(ENDINGS)
        return _PAIR * by_pairs + len(ENDINGS) * len(self._plan.releases)

    def _theirs_of_ours(self, process: Process, copies: Path, ending: str, checksum: str) -> list[Cell]:
        """Return the readings of our own store: by a release, then by our store again."""
        version = process.release.version
        first = self._by_peer(process, copies, Cell(OURS, ending, version, checksum), is_stock=True)
        again = self._by_ours(copies, Cell(OURS, ending, version, checksum, again=True), writer_version="")
        shutil.rmtree(copies, ignore_errors=True)
        return [first, again]

    def _ours_of_theirs(self, process: Process, copies: Path, version: str, ending: str) -> list[Cell]:
        """Return the readings of a store of a release: by our store, then by the release again."""
        first = self._by_ours(copies, Cell(version, ending, OURS), writer_version=version)
        again = self._by_peer(process, copies, Cell(version, ending, OURS, again=True), is_stock=True)
        shutil.rmtree(copies, ignore_errors=True)
        return [first, again]

    def _by_peer(self, process: Process, copies: Path, cell: Cell, *, is_stock: bool = False) -> Cell:
        """Read the copy of a store with a release; copy it first unless it is there."""
        reader = process.release.version
        try:
            expected = self._copied(copies, cell)
            with opened(process, str(copies), SETTINGS, mode="stock" if is_stock else "light") as store:
                if not store.loaded or not store.dispatched:
                    raise PeerFailed(store.reason)
                if is_stock:
                    _dispatched(store)
                found = answers_of_peer(store, keys_in(expected))
            dropped = self._dropped(cell, copies, expected)
        except (PeerError, ValueError) as error:
            cell.error = str(error)
            return cell
        reading = Reading(cell.writer, cell.ending, reader, is_stock, cell.again, dropped)
        return _filled(cell, reading, expected, found)

    def _dropped(self, cell: Cell, copies: Path, expected: Answers) -> frozenset[int]:
        """Return the physical offsets of records that the reader dropped from the index.

        Raises ValueError.
        """
        if cell.ending != "killed" or cell.again:
            return frozenset()
        written = held_in(self._place(cell.writer, cell.ending, cell.checksum) / "store")
        return dropped_by(cell.reader, written, held_in(copies), expected)

    def _by_ours(self, copies: Path, cell: Cell, *, writer_version: str) -> Cell:
        """Read the copy of a store with our store; copy it first unless it is there."""
        try:
            expected = self._copied(copies, cell)
            before = held_in(copies)
            with open_ours(copies, config_of(version=writer_version)) as store:
                settle(store)
                findings = store.findings
                if store.read_only_reason is not None:
                    raise PeerFailed(f"opens read-only: {store.read_only_reason}")
                found = answers_of_ours(store, keys_in(expected))
            written = held_in(self._place(cell.writer, cell.ending, cell.checksum) / "store")
            opening = Opening(written, before, held_in(copies))
        except (PeerError, StoreError, ValueError) as error:
            cell.error = str(error)
            return cell
        # another store may have delivered delayed messages before this one reads
        reading = Reading(cell.writer, cell.ending, cell.reader if cell.again else OURS, cell.again, cell.again)
        _sort_findings(cell, reading, findings, opening, expected)
        return _filled(cell, reading, expected, found)

    def _copied(self, copies: Path, cell: Cell) -> Answers:
        """Copy the store of a cell unless the copy is there; return its writer's answers.

        Raises PeerFailed.
        """
        place = self._place(cell.writer, cell.ending, cell.checksum)
        document = json.loads((place / "answers.json").read_text())
        if "error" in document:
            raise PeerFailed(f"the writer failed: {document['error']}")
        if not copies.exists():
            shutil.copytree(place / "store", copies)
        return Answers.of(document)


def _place_of(cell: Cell) -> tuple[str, str, str, str, bool]:
    return cell.writer, cell.ending, cell.reader, cell.checksum, cell.again


def _dispatched(store: PeerStore) -> None:
    wait_for(lambda: store.log().behind <= 0, "dispatch does not end")


def _put(store: PeerStore, each: Operation) -> None:
    told = store.put(each.topic, each.queue_id, each.properties, each.body, is_batch=each.is_batch)
    if told["status"] != "PUT_OK":
        raise PeerFailed(f"a put answers {told['status']}")


def _fill(store: PeerStore) -> None:
    """Put messages until the log has a file after those that expire.

    Most workloads have one already.
    """
    end = _EXPIRED_FILES * int(SETTINGS["mappedFileSizeCommitLog"])
    for each in fillers():
        if store.log().end > end:
            return
        _put(store, each)


def _expire(store: PeerStore, directory: Path) -> None:
    """Let the first two log files be old, and delete them."""
    for path in sorted((directory / "commitlog").iterdir())[:_EXPIRED_FILES]:
        os.utime(path, (1e9, 1e9))
    wait_for(lambda: store.clean() > 0, "no file is deleted")
    store.clean()


def _sort_findings(
    cell: Cell, reading: Reading, findings: Sequence[Finding], opening: Opening, expected: Answers
) -> None:
    """Count each reason for findings once, and list the codes of findings without one."""
    reasons: set[str] = set()
    without: set[str] = set()
    for finding in findings:
        names = known_finding(reading, finding, opening, expected)
        reasons |= set(names)
        if not names:
            without.add(finding.code)
    for name in sorted(reasons):
        cell.known[name] = cell.known.get(name, 0) + 1
    cell.findings += sorted(without)


def _filled(cell: Cell, reading: Reading, expected: Answers, found: Answers) -> Cell:
    cell.comparisons, differences = compared(expected, found)
    for difference in differences:
        name = reason_of(reading, difference, expected)
        if name is not None:
            cell.known[name] = cell.known.get(name, 0) + 1
            continue
        cell.unexplained += 1
        if len(cell.sentences) < _SHOWN:
            cell.sentences.append(difference.sentence())
    return cell


def _write(path: Path, document: Any) -> None:
    """Write a file whole under its name."""
    made = path.with_suffix(".made")
    made.write_text(json.dumps(document) + "\n", encoding="utf-8")
    made.replace(path)
