"""Run the board: test stores, each in its own process, keep results, confirm failures.

A row of the board is a store in one mode on one disk. Its states are made in parts. Each part is one `explore target`
in a process of its own, so a library that hangs or dies ends one part only. Part n has the seed of the board plus n.
What is known about a row is kept in a file after each part, so a later run can continue.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse

if TYPE_CHECKING:
    from tornpage.peers.board.catalogue import Row

__all__ = [
    "BoardRequest",
    "Confirmation",
    "RowResult",
    "board_outcome",
    "install_outcome",
    "list_outcome",
    "reproduce",
    "run_board",
]

_PART_STATES = 500
_SHRINK_SECONDS = 90.0
"""Time that a part may need after its limit, to shrink a failure."""
_REPRODUCTION_SECONDS = 120.0
_NOT_KEPT = "no kept result"
_FIGURES = {"states": "states", "power": "fired_power", "lossy": "fired_lost", "kills": "fired_kill"}
"""Counts of a result by the figures of a part that they add up."""


@dataclass(frozen=True, slots=True)
class BoardRequest:
    """A request: `states` counts power losses of each row, `seconds` limits each row."""

    only: Sequence[str] = ()
    states: int = 200
    seconds: float = 60.0
    seed: int = 0
    disks: Sequence[str] = ()
    workers: int = 1
    resume: bool = False
    kept: bool = False
    confirm: bool = True
    out: Path | None = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The result of a reproduction: whether it `shows` the failure, and its last line."""

    program: str
    shows: bool
    said: str


@dataclass
class RowResult:
    """What is known about a store in one mode on one disk.

    `power` counts power losses, and `lossy` those that lost something. `findings` are failures after the creation of
    the store, `creation` those of a crash inside its very first open. `first_failure_s` is the time that the first
    failure took, without shrinking. `reason` says why a row was skipped or not judged, `left_out` why no power loss was
    made.
    """

    name: str
    disk: str
    version: str
    seed: int
    promises: str = ""
    states: int = 0
    power: int = 0
    lossy: int = 0
    kills: int = 0
    seconds: float = 0.0
    parts: int = 0
    first_failure_s: float | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)
    creation: list[dict[str, Any]] = field(default_factory=list)
    confirmations: list[Confirmation] = field(default_factory=list)
    skipped: bool = False
    reason: str = ""
    left_out: str = ""
    day: str = ""

    @property
    def verdict(self) -> str:
        """The verdict: holds, broken, vacuous, unknown or skipped."""
        if self.skipped:
            return "skipped"
        if self.findings:
            return "broken"
        if self.reason:
            return "unknown"
        return "holds" if self.lossy else "vacuous"

    @property
    def is_confirmed(self) -> bool:
        """Whether a reproduction program showed the failure."""
        return any(each.shows for each in self.confirmations)

    def document(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {**asdict(self), "verdict": self.verdict}


def run_board(request: BoardRequest, *, progress: Callable[[str], None]) -> tuple[list[RowResult], bool]:
    """Run the chosen rows; return their results, and whether an interrupt ended the run."""
    from tornpage.peers.board.places import results_directory

    rows = chosen_rows(request.only)
    out = request.out or results_directory()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"cannot write {out}: {error.strerror or error}; name another directory with --out")
    jobs = [(row, disk) for row in rows for disk in row.disks if not request.disks or disk in request.disks]
    if not jobs:
        refuse(f"no chosen store promises anything for {', '.join(request.disks)}; leave --disk out")
    done: dict[tuple[str, str], RowResult] = {}
    interrupted = False
    with ThreadPoolExecutor(request.workers) as pool:
        running = {pool.submit(_run_row, row, disk, request, out): (row, disk) for row, disk in jobs}
        try:
            for future in as_completed(running):
                result = future.result()
                done[result.name, result.disk] = result
                progress(
                    f"{len(done)}/{len(jobs)} {result.name} on {result.disk}: {result.verdict} {result.reason}".rstrip()
                )
        except KeyboardInterrupt:
            interrupted = True
            pool.shutdown(cancel_futures=True)
    for row, disk in jobs if interrupted else ():
        kept = _kept(row, disk, out)
        if kept is not None:
            done.setdefault((row.name, disk), kept)
    results = [done[row.name, disk] for row, disk in jobs if (row.name, disk) in done]
    if request.kept:
        known = {each.name for each in results if each.reason != _NOT_KEPT}
        results = [each for each in results if each.reason != _NOT_KEPT or each.name not in known]
    return results, interrupted


def chosen_rows(only: Sequence[str]) -> "list[Row]":
    """Return the rows with some names; an unknown name ends the command with one line."""
    from tornpage.peers.board.catalogue import named
    from tornpage.peers.errors import PeerUnavailable

    try:
        return named(only)
    except PeerUnavailable as error:
        refuse(str(error))


def _run_row(row: "Row", disk: str, request: BoardRequest, out: Path) -> RowResult:
    """Run a row until its power losses, its time or its first failure."""
    from tornpage.peers.board.installing import why_not_installed

    result = _kept(row, disk, out) if request.resume or request.kept else None
    if request.kept and result is None:
        return RowResult(row.name, disk, row.version, request.seed, skipped=True, reason=_NOT_KEPT)
    result = result or RowResult(row.name, disk, row.version, request.seed)
    missing = why_not_installed(row)
    if missing and not request.kept:
        result.reason, result.skipped = missing, True
        return result
    until = time.monotonic() + request.seconds
    result.reason = result.reason if request.kept else ""
    while not request.kept and result.power < request.states and not result.findings and not result.reason:
        left = until - time.monotonic()
        if left <= 0 or not _run_part(row, result, min(_PART_STATES, request.states - result.power + 20), left):
            break
        _keep(result, out)
    if request.confirm and result.findings and not result.is_confirmed and not missing:
        result.confirmations = [reproduce(each) for each in _reproductions(row, disk)]
    _keep(result, out)
    return result


def _run_part(row: "Row", result: RowResult, states: int, seconds: float) -> bool:
    """Run one part of a row and add it to the result; return whether the row continues."""
    command = [sys.executable, "-P", "-m", "tornpage", "explore", "target", row.spec, "--disk", result.disk]
    command += ["--states", str(states), "--seconds", f"{max(seconds, 0.2):.1f}", "--failures", "1"]
    command += [
        "--seed",
        str(result.seed + result.parts),
        "--from",
        "first-answer" if result.creation else "open",
        "--json",
    ]
    began = time.monotonic()
    code, printed, said = _carried_out(command, seconds + _SHRINK_SECONDS)
    took, result.day = time.monotonic() - began, datetime.now(UTC).date().isoformat()
    try:
        document = json.loads(printed)
    except ValueError:
        result.reason = said[-1].removeprefix("tornpage: ") if said else f"explore ended with {code}"
        return False
    figures = document["figures"]
    if document["verdict"] == "harness":
        result.reason = " ".join(document["findings"][0]["sentence"].split())[:300]
    for name, figure in _FIGURES.items():
        setattr(result, name, getattr(result, name) + int(figures.get(figure, 0)))
    result.promises = result.promises or _promises(said)
    broken = [each for each in document["findings"] if each["severity"] == "broken"]
    if result.first_failure_s is None and "first_failure_s" in figures:
        result.first_failure_s = result.seconds + figures["first_failure_s"]
    for finding in broken:
        (result.creation if finding["in_first_open"] else result.findings).append(_short(finding))
    result.seconds += figures.get("seconds", took)
    result.parts += 1
    result.left_out = "" if result.power else document.get("left_out", "")
    return code != 130 and not result.left_out


def _carried_out(command: Sequence[str], limit_s: float) -> tuple[int, str, list[str]]:
    """Run a command; return its exit code, its output, and the lines of its standard error."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", env=environment,
    )  # fmt: skip
    try:
        printed, said = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return 1, "", [f"no end within {limit_s:.0f} s"]
    return process.returncode, printed, [line for line in said.splitlines() if line.strip()]


def _promises(said: Sequence[str]) -> str:
    """Return the promises in the line that `explore target` prints before it starts."""
    line = next((each for each in said if " promises: " in each), "")
    return line.partition(" promises: ")[2].partition(";")[0]


def _short(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page needs of a finding."""
    names = ("code", "sentence", "expected", "found", "program", "crash", "token")
    return {name: finding[name] for name in names if name in finding}


# ---- results that are kept -------------------------------------------------------------------------------------------


def _file(row_name: str, disk: str, out: Path) -> Path:
    return out / f"{row_name}.{disk}.json"


def _keep(result: RowResult, out: Path) -> None:
    path = _file(result.name, result.disk, out)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def _kept(row: "Row", disk: str, out: Path) -> RowResult | None:
    """Return the kept result of a row, None without one for the present version."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        read = json.loads(_file(row.name, disk, out).read_text(encoding="utf-8"))
        known = {each.name for each in fields(RowResult)}
        confirmations = [Confirmation(**each) for each in read.pop("confirmations", [])]
        found = RowResult(**{name: value for name, value in read.items() if name in known}, confirmations=confirmations)
        return found if found.version == row.version else None
    return None


# ---- reproductions ---------------------------------------------------------------------------------------------------


def _reproductions(row: "Row", disk: str) -> Iterator[str]:
    """Yield the reproductions of a row for a disk.

    Those about names that were not synced apply to the disk on which names are lost singly. One on a real file system
    applies to the disk of this file system and to the weaker disks.
    """
    for each in row.reproductions:
        program, *arguments = each.split()
        if disk == "posix-strict":
            yield each
        elif program == "power_cut.py":
            if disk == "journal" or disk == arguments[0]:
                yield each
        elif not each.startswith(("unsynced.py names", "sqlite_wal_tail.py", "current_before_manifest.py")):
            yield each


def reproduce(program: str) -> Confirmation:
    """Run a reproduction program, which ends with 1 if it shows the failure and with 0 if not."""
    from tornpage.peers.board.reproducing import command_of
    from tornpage.peers.errors import PeerUnavailable

    try:
        command, environment = command_of(program)
    except PeerUnavailable as error:
        return Confirmation(program, False, str(error))
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_REPRODUCTION_SECONDS, env=environment, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Confirmation(program, False, f"{type(error).__name__}: {error}")
    lines = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()]
    return Confirmation(program, done.returncode == 1 and bool(done.stdout), (lines or [""])[-1].strip())


# ---- outcomes --------------------------------------------------------------------------------------------------------


def board_outcome(results: Sequence[RowResult], request: BoardRequest, *, interrupted: bool) -> tuple[Outcome, str]:
    """Return the results of a run as a document and as text.

    A broken store is a result and no failure of the run.
    """
    from tornpage.render.board import board_text

    counts = {verdict: sum(each.verdict == verdict for each in results) for verdict in _VERDICTS}
    figures: dict[str, float | int] = {
        "rows": len(results),
        **counts,
        "states": sum(each.states for each in results),
        "power_losses": sum(each.power for each in results),
        "seconds": sum(each.seconds for each in results),
    }
    judged = len(results) - counts["skipped"]
    verdict = "harness" if counts["unknown"] else None if judged else "vacuous"
    rows = [each.document() for each in results]
    extra = {"board": rows}
    outcome = Outcome("board", verdict, figures, ["seconds"], seed=request.seed, extra=extra, interrupted=interrupted)
    return outcome, board_text(results)


_VERDICTS = ("holds", "broken", "vacuous", "unknown", "skipped")


def list_outcome(only: Sequence[str]) -> tuple[Outcome, str]:
    """Return the rows of the board, and whether each can run here."""
    from tornpage.peers.board.installing import why_not_installed

    rows = [
        {
            "name": row.name,
            "software": row.software,
            "version": row.version,
            "mode": row.mode,
            "ecosystem": row.ecosystem,
            "disks": list(row.disks),
            "missing": why_not_installed(row),
        }
        for row in chosen_rows(only)
    ]
    lines = [
        f"{row['name']:<22}{row['software']:<22}{row['version']:<28}{row['mode']:<32}"
        + ("not installed" if row["missing"] else "installed")
        for row in rows
    ]
    figures = {"rows": len(rows), "installed": sum(not row["missing"] for row in rows)}
    return Outcome("board list", None, figures, extra={"board": rows}), "\n".join(lines)


def install_outcome(names: Sequence[str], *, offline: bool) -> tuple[Outcome, str]:
    """Install the chosen rows and return which can run. Exits with 2 if none can."""
    from tornpage.peers.board.installing import install

    rows = chosen_rows(() if "all" in names else names)
    refused = install(rows, offline=offline)
    lines = [f"{row.name}: {refused.get(row.name, 'installed')}" for row in rows]
    if len(refused) == len(rows):
        refuse("; ".join(dict.fromkeys(refused.values())))
    figures = {"rows": len(rows), "installed": len(rows) - len(refused)}
    return Outcome("board install", None, figures, extra={"refused": refused}), "\n".join(lines)
