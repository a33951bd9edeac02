"""The verdicts of both stores on crash states, and the smallest example of each number."""

import json
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import asdict, dataclass, field, replace

from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.rulings import Ruling
from tornpage.properties.program.case import Case

__all__ = ["Example", "HistoryVerdicts", "StateVerdict", "example_document", "example_in"]


@dataclass(frozen=True, slots=True)
class Example:
    """An image in which a peer broke a number.

    `case` has the operations of the history up to the crash, and the crash. `losses` is the number of in-flight writes
    that did not survive it. `due` is the number of records that had to survive. `peer_kept` and `own_kept` are the
    records that each store kept, None if it did not start. `own_broken` is the promise that our store breaks on the
    same image, empty if it breaks none. `how` says how the case was made small.
    """

    ruling: Ruling
    history: int
    case: Case
    losses: int
    image: Image
    due: int
    peer_kept: int | None
    own_kept: int | None
    own_broken: str
    how: str = "the smallest of the run"

    @property
    def sync_flush(self) -> bool:
        """Whether the history flushes synchronously."""
        return self.case.settings.sync_flush

    @property
    def weight(self) -> tuple[int, int]:
        """The number of operations, and of lost writes."""
        return len(self.case.operations), self.losses


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """The verdicts on one crash state.

    `own` is the number that our store breaks, and the sentence; None if it breaks none. `peer` are the numbers that
    the peer breaks. `is_new` is false if an earlier state of the history has the same image and the same truth.
    """

    own: tuple[int, str] | None
    peer: tuple[int, ...]
    is_new: bool = True


@dataclass
class HistoryVerdicts:
    """The verdicts on the states of one history, in order.

    `examples` has the smallest example of each number, with the index of its state. `is_cut` says that an interrupt
    ended the history early. `ended_by` is the promise that the peer broke while it was recorded, empty if none.
    """

    number: int
    sync_flush: bool
    states: list[StateVerdict] = field(default_factory=list)
    examples: dict[int, tuple[int, Example]] = field(default_factory=dict)
    proven_legal: int = 0
    starts: int = 0
    peer_seconds: float = 0.0
    is_cut: bool = False
    ended_by: str = ""

    def add(self, verdict: StateVerdict, examples: list[Example]) -> None:
        """Add the verdict on a state, and an example of each number that the peer breaks in it."""
        for example in examples:
            known = self.examples.get(example.ruling.contract)
            if known is None or example.weight < known[1].weight:
                self.examples[example.ruling.contract] = len(self.states), example
        self.states.append(verdict)

    def first(self, count: int) -> "HistoryVerdicts":
        """Return the verdicts on the first states."""
        examples = {number: kept for number, kept in self.examples.items() if kept[0] < count}
        return replace(self, states=self.states[:count], examples=examples)

    @property
    def distinct(self) -> int:
        """How many images both stores opened."""
        return sum(verdict.is_new for verdict in self.states)

    @property
    def peer_broken(self) -> Counter[int]:
        """How many states each number is broken in by the peer."""
        return Counter(number for verdict in self.states for number in verdict.peer)

    @property
    def own_broken(self) -> Counter[int]:
        """How many states each number is broken in by our store."""
        return Counter(verdict.own[0] for verdict in self.states if verdict.own is not None)


def example_document(example: Example) -> str:
    """Return an example as JSON, its image compressed."""
    image = {
        "directories": sorted(example.image.directories),
        "files": {path: b64encode(content).decode() for path, content in sorted(example.image.files.items())},
    }
    return json.dumps(
        {
            "ruling": asdict(example.ruling),
            "history": example.history,
            "token": example.case.token(),
            "losses": example.losses,
            "due": example.due,
            "peer_kept": example.peer_kept,
            "own_kept": example.own_kept,
            "own_broken": example.own_broken,
            "how": example.how,
            "image": b64encode(zlib.compress(json.dumps(image).encode(), 9)).decode(),
        }
    )


def example_in(document: str) -> Example:
    """Return the example of a document."""
    found = json.loads(document)
    image = json.loads(zlib.decompress(b64decode(found["image"])))
    return Example(
        Ruling(**found["ruling"]),
        found["history"],
        Case.from_token(found["token"]),
        found["losses"],
        Image(frozenset(image["directories"]), {path: b64decode(content) for path, content in image["files"].items()}),
        found["due"],
        found["peer_kept"],
        found["own_kept"],
        found["own_broken"],
        found.get("how", "the smallest of the run"),
    )
