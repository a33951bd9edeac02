"""What a file system left after the power losses of a workload, as JSON."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.real_faults.file_systems.workload import Operation, operation_of

__all__ = ["Outcome", "OutcomeFile", "outcome_of"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One workload, and the tree after each power loss with the last mark before it.

    A tree that could not be mounted or read is the reason instead.
    """

    seed: int
    operations: tuple[Operation, ...]
    found: tuple[tuple[int, Image | str], ...]

    def document(self) -> dict[str, Any]:
        """Return the outcome as JSON values.

        Contents are runs of equal bytes. Equal trees are kept once.
        """
        trees = {mark: dict[str, Any]() for mark, _ in self.found}
        for mark, tree in self.found:
            text = _tree_document(tree)
            trees[mark][json.dumps(text, sort_keys=True)] = text
        return {
            "seed": self.seed,
            "operations": [operation.document() for operation in self.operations],
            "found": [[mark, tree] for mark, kept in trees.items() for tree in kept.values()],
        }


def outcome_of(document: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a document."""
    operations = tuple(operation_of(item) for item in document["operations"])
    return Outcome(document["seed"], operations, tuple((mark, _tree(tree)) for mark, tree in document["found"]))


def _tree_document(tree: Image | str) -> Any:
    if isinstance(tree, str):
        return tree
    files = {path: [[byte, len(list(run))] for byte, run in groupby(tree.files[path])] for path in sorted(tree.files)}
    return {"directories": sorted(tree.directories), "files": files}


def _tree(document: Any) -> Image | str:
    if isinstance(document, str):
        return document
    files = {path: b"".join(bytes([b]) * n for b, n in runs) for path, runs in document["files"].items()}
    return Image(frozenset(document["directories"]), files)


class OutcomeFile:
    """Outcomes that a child process writes and its parent reads, after its death too."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("tornpage-outcomes", os.MFD_CLOEXEC)

    def write(self, outcome: Outcome) -> None:
        """Append an outcome."""
        os.write(self._fd, json.dumps(outcome.document()).encode() + b"\n")

    def read(self) -> Iterator[Outcome]:
        """Yield all complete outcomes."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        for line in text.split(b"\n")[:-1]:
            yield outcome_of(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
