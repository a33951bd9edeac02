"""Keep finished workloads in a resume file, so that a later run continues.

A kept result is valid only for the same plan, of which `ops` may grow, and for the same source. After any change of the
store, the model or the judges everything is explored again.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tornpage.properties.campaign.resume import LineFile
from tornpage.properties.explore.exhaustive.checking import Checked
from tornpage.properties.explore.exhaustive.explored import Explored, Plan
from tornpage.properties.explore.exhaustive.operation_set import Workload

__all__ = ["RESUME_FILE", "OtherPlan", "ResumeFile"]

RESUME_FILE = "workloads.jsonl"
_FORMAT = 1
_ROOMS = ("impl", "model", "properties")
_ROOT = Path(__file__).absolute().parents[3]
"""The package tornpage, which contains the rooms."""


class OtherPlan(ValueError):
    """Raise this if the resume file belongs to another plan; the message names the difference."""


@lru_cache(maxsize=1)
def source_fingerprint() -> str:
    """Return a hash of the source of store, model and judges."""
    digest = blake2b(digest_size=8)
    for path in _sources():
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    return sorted(path for room in _ROOMS for path in (_ROOT / room).rglob("*.py"))


class ResumeFile:
    """Keep the results of a plan in a directory.

    Each result is written as soon as it is added.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        """Read the kept results.

        Raises OtherPlan for those of another plan, OSError if reading fails.
        """
        self.explored: dict[Workload, Explored] = {}
        self.checked: dict[Workload, Checked] = {}
        self._file = LineFile(directory / RESUME_FILE)
        self._header = _header(plan)
        lines = self._file.lines()
        if lines:
            self._read(lines)
        self._file.cut()
        if not lines:
            self._file.append(self._header)

    def _read(self, lines: Sequence[bytes]) -> None:
        path = self._file.path
        found = _loaded(lines[0], path)
        different = [name for name in self._header if found.get(name) != self._header[name]]
        if different == ["source"]:
            raise OtherPlan(f"{path} was made by another version of the source; give a new --out directory")
        if different:
            told = ", ".join(f"{name.replace('_', ' ')} {found.get(name)}" for name in different)
            raise OtherPlan(f"{path} belongs to another bound ({told}); give a new --out directory")
        for line in lines[1:]:
            document = _loaded(line, path)
            try:
                if "differences" in document:
                    checked = Checked(**{**document, "workload": tuple(document["workload"])})
                    self.checked[checked.workload] = checked
                else:
                    explored = Explored.from_document(document)
                    self.explored[explored.workload] = explored
            except (KeyError, TypeError, ValueError) as error:
                raise OtherPlan(f"{path} has a line that cannot be read: {error!r}") from error

    def add(self, done: Explored | Checked) -> None:
        """Keep one more result, unless it has a failure, which is found again. Raises OSError."""
        if isinstance(done, Explored):
            if done.failure is None:
                self._file.append(done.document())
        elif not done.differences:
            self._file.append({**asdict(done), "workload": list(done.workload)})


def _header(plan: Plan) -> dict[str, Any]:
    """Return everything that kept results depend on.

    The length of workloads is not part of it.
    """
    wanted = {name: value for name, value in asdict(plan).items() if name not in ("ops", "operation_names")}
    operation_set = {entry.name: repr(entry.operations) for entry in plan.operation_set}
    return {"tornpage_exhaust": _FORMAT, **wanted, "alphabet": operation_set, "source": source_fingerprint()}


def _loaded(line: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OtherPlan(f"{path} is not a file of finished workloads: {error}") from error
    if not isinstance(document, dict):
        raise OtherPlan(f"{path} is not a file of finished workloads")
    return document
