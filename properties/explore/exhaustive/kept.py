"""Workloads that are done, kept as lines of a file, so that a second run goes on where the first was stopped.

What is kept counts only for the same plan, of which `ops` may grow, and for the same source: one changed line of the
store, the model or the judges, and everything is explored again.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from properties.explore.exhaustive.alphabet import Workload
from properties.explore.exhaustive.checking import Checked
from properties.explore.exhaustive.explored import Explored, Plan

__all__ = ["KEPT_FILE", "Kept", "OtherPlan"]

KEPT_FILE = "workloads.jsonl"
_FORMAT = 1
_ROOMS = ("impl", "model", "properties")
_ROOT = Path(__file__).parents[3]


class OtherPlan(ValueError):
    """The file belongs to something else; the message says what."""


@lru_cache(maxsize=1)
def source_fingerprint() -> str:
    """Return a hash of the source of store, model and judges."""
    digest = blake2b(digest_size=8)
    for path in _sources():
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    return sorted(path for room in _ROOMS for path in (_ROOT / room).rglob("*.py"))


class Kept:
    """What is kept of a plan in a directory; each result is there as soon as it was added."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        """Read what there is. Raises OtherPlan for another plan's, OSError when the disk refuses."""
        self.explored: dict[Workload, Explored] = {}
        self.checked: dict[Workload, Checked] = {}
        self._path = directory / KEPT_FILE
        self._header = _header(plan)
        content = self._path.read_bytes() if self._path.exists() else b""
        whole_bytes = content.rfind(b"\n") + 1  # whoever was killed while it wrote has left half a line
        if whole_bytes:
            self._read(content[:whole_bytes].decode(errors="replace").splitlines())
            os.truncate(self._path, whole_bytes)
        else:
            self._path.write_text(json.dumps(self._header) + "\n")

    def _read(self, lines: Sequence[str]) -> None:
        found = _loaded(lines[0], self._path)
        different = [name for name in self._header if found.get(name) != self._header[name]]
        if different == ["source"]:
            raise OtherPlan(f"{self._path} was made by another version of the source; name a new --out directory")
        if different:
            told = ", ".join(f"{name.replace('_', ' ')} {found.get(name)}" for name in different)
            raise OtherPlan(f"{self._path} belongs to another bound ({told}); name a new --out directory")
        for line in lines[1:]:
            document = _loaded(line, self._path)
            try:
                if "differences" in document:
                    checked = Checked(**{**document, "workload": tuple(document["workload"])})
                    self.checked[checked.workload] = checked
                else:
                    explored = Explored.from_document(document)
                    self.explored[explored.workload] = explored
            except (KeyError, TypeError, ValueError) as error:
                raise OtherPlan(f"{self._path} has a line that cannot be read: {error!r}") from error

    def add(self, done: Explored | Checked) -> None:
        """Keep one more, unless something was wrong with it: that is found again. Raises OSError."""
        if isinstance(done, Explored):
            if done.failure is None:
                self._append(done.document())
        elif not done.differences:
            self._append({**asdict(done), "workload": list(done.workload)})

    def _append(self, document: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(document) + "\n")


def _header(plan: Plan) -> dict[str, Any]:
    """Return everything that what is kept depends on; how long workloads become is not among it."""
    wanted = {name: value for name, value in asdict(plan).items() if name not in ("ops", "letter_names")}
    letters = {letter.name: repr(letter.operations) for letter in plan.letters}
    return {"tornpage_exhaust": _FORMAT, **wanted, "alphabet": letters, "source": source_fingerprint()}


def _loaded(line: str, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OtherPlan(f"{path} is no file of done workloads: {error}") from error
    if not isinstance(document, dict):
        raise OtherPlan(f"{path} is no file of done workloads")
    return document
