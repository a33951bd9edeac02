"""Define the shape of key-value stores: put, delete, get, scan, and batches.

| request | answer |
|---|---|
| `put` key, value | nothing |
| `delete` key | nothing |
| `batch` changes, a list of keys with a value, or null to delete | nothing |
| `get` key | the value, or null |
| `scan` | all pairs of key and value, in any order |
| `flush`, `close` | nothing |

Each key is a cell, and its effects are its values. Keys are independent unless the store promises one order. A
transaction is a batch; its answer is the point `commit`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tornpage.model.operations import Call, Close, Flush, Open, Operation
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.shapes.history import Effect, History, Orders
from tornpage.properties.foreign.shapes.language import Promises
from tornpage.properties.foreign.shapes.shape import (
    Answers,
    AtOnce,
    Book,
    Choose,
    Shape,
    Together,
    bytes_in,
    decoded,
    encoded,
    read_at_once,
)

__all__ = ["KeyValue", "KeyValueBook", "KeyValuePromises"]

_KEYS = ("a", "b", "c")
_SIZES = (8, 8, 40, 300, 900, 5000)
_WRONG_GET = "a get returns another value than the last one put"
_VERBS = ("put", "put", "put", "put", "put", "put", "delete", "delete", "batch", "batch", "get", "scan")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValuePromises(Promises):
    """List the promises of a key-value store.

    `batch` is `atomic`, `each` (a crash may leave a part) or `none` (there are no batches). Without `scan` the judge
    gets each key. With `reads` as `durable` a value that a get returns is as safe as one whose put has an answer.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("put", "commit", "flush", "close")
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {
        "consistent": ("power", "kill"),
        "batch": ("none", "atomic", "each"),
        "reads": ("early", "durable"),
    }

    batch: str = "none"
    scan: bool = True
    reads: str = "early"
    value_bytes_max: int = 4096

    def said_of_shape(self) -> list[str]:
        """Return what is promised beyond durability, as parts of a line."""
        batches = {"none": [], "atomic": ["atomic batches"], "each": ["batches"]}[self.batch]
        return [*Promises.said_of_shape(self), *batches]


@dataclass(frozen=True, slots=True)
class KeyValue(Shape):
    """Judge key-value stores."""

    promises: KeyValuePromises

    NAME: ClassVar[str] = "key-value"
    PROMISES: ClassVar[type[Promises]] = KeyValuePromises
    WRITE: ClassVar[str] = "put"
    WHAT: ClassVar[str] = "write"
    AT_ONCE: ClassVar[tuple[str, ...]] = ("put", "delete", "batch", "get")

    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a call; keys are few, so that values replace each other."""
        verb = choose(_VERBS)
        if verb == "scan":
            return Call("scan" if self.promises.scan else "get", name="" if self.promises.scan else choose(_KEYS))
        if verb == "batch" and self.promises.batch != "none":
            keys = [key for key in _KEYS if choose((True, True, False))] or ["a"]
            return Call("batch", parts=tuple(self._change(choose, key) for key in keys))
        if verb == "get":
            return Call("get", choose(_KEYS))
        return self._change(choose, choose(_KEYS), delete=verb == "delete")

    def _change(self, choose: Choose, key: str, *, delete: bool | None = None) -> Call:
        delete = choose((False, False, True)) if delete is None else delete
        return Call("delete", key) if delete else Call("put", key, size_bytes=choose(_SIZES))

    def carry_out(self, call: Call, store: Answers, book: Book) -> list[Effect] | None:
        """Carry out a call; return the effects of a write."""
        match call.verb:
            case "put":
                value = book.next_value(call.size_bytes)
                store.call("put", key=call.name, value=encoded(value))
                return [Effect(0, 0, call.name, "put", value)]
            case "delete":
                store.call("delete", key=call.name)
                return [Effect(0, 0, call.name, "delete")]
            case "batch" if self.promises.batch != "none" and call.parts:
                return self._batch(call, store, book)
            case "get":
                answer = store.call("get", key=call.name)
                if not isinstance(store, Together):
                    book.has(call.name, bytes_in(store, "get", answer, "value"), _WRONG_GET)
            case "scan" if self.promises.scan:
                _has_pairs(_scanned(store), book)
        return None

    def at_once(self, at_once: AtOnce, effects: Sequence[Effect], store: Answers) -> tuple[Orders, frozenset[int]]:
        """Compare the gets of concurrent callers.

        Return the orders that explain them, and the callers of the writes that they read.
        """
        orders, _ = Shape.at_once(self, at_once, effects, store)
        values = {
            caller: bytes_in(store, "get", answer, "value") for caller, answer in at_once.answers_to("get").items()
        }
        return read_at_once(self, at_once, effects, values, orders, _WRONG_GET)

    def _batch(self, call: Call, store: Answers, book: Book) -> list[Effect]:
        group = book.state.serials + 1 if self.promises.batch == "atomic" else 0
        parts = {part.name: part for part in call.parts}
        effects = [
            Effect(0, 0, key, part.verb, book.next_value(part.size_bytes) if part.verb == "put" else None, group)
            for key, part in parts.items()
        ]
        store.call("batch", changes=[{"key": effect.cell, "value": encoded(effect.value)} for effect in effects])
        return effects

    def observe(self, store: Answers, history: History, book: Book) -> dict[str, Any]:
        """Read each key that was ever written, and scan."""
        keys = dict.fromkeys(effect.cell for effect in (*history.effects, *history.gone))
        store.ahead("get", ({"key": key} for key in keys))
        store.ahead("scan", [{}] if self.promises.scan else [])
        found = {key: bytes_in(store, "get", store.call("get", key=key), "value") for key in keys}
        if self.promises.scan:
            pairs = _scanned(store)
            there = {key: value for key, value in found.items() if value is not None}
            if unknown := sorted(pairs.keys() - found.keys()):
                raise GuaranteeBroken(1, "a scan finds a key that was never put", "only keys that were put", unknown[0])
            if pairs != there:
                key = next(key for key in sorted(pairs.keys() | there.keys()) if pairs.get(key) != there.get(key))
                raise GuaranteeBroken(
                    4,
                    "a scan and a get do not agree",
                    f"the get: {self.said(key, there.get(key))}",
                    f"the scan: {self.said(key, pairs.get(key))}",
                )
        return found

    def value(self, cell: str, effects: Sequence[Effect]) -> bytes | None:
        """Return the value of a key after its effects."""
        return effects[-1].value if effects else None

    def fits(self, cell: str, row: Sequence[Effect], later: Sequence[Effect], found: Any) -> bool:
        """Return whether a row can give the value found.

        Its last effect decides, unless there is a later one.
        """
        return bool(later) or self.value(cell, row) == found

    def said(self, cell: str, value: Any) -> str:
        """Return the value of a key in words."""
        return f"key {cell}: {Shape.said(self, cell, value).partition(': ')[2]}"


class KeyValueBook(Book):
    """Follow a run of a key-value store."""

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = (
        (),
        (Call("put", "a", size_bytes=8),),
        (Call("delete", "b"),),
        (Flush(),),
        (Close(), Open()),
        (Call("put", "b", size_bytes=40), Close()),
    )
    first_write: ClassVar[Operation] = Call("put", "a", size_bytes=8)


def _scanned(store: Answers) -> dict[str, bytes]:
    answer = store.call("scan")
    pairs = answer.get("pairs")
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise store.odd("scan", answer, "a list of pairs of key and value")
    found: dict[str, bytes] = {}
    for key, value in pairs:
        if not isinstance(key, str) or value is None:
            raise store.odd("scan", answer, "a list of pairs of key and value")
        if key in found:
            raise GuaranteeBroken(4, "a scan finds a key twice", "each key once", key)
        found[key] = decoded(store, "scan", answer, value)
    return found


def _has_pairs(found: dict[str, bytes], book: Book) -> None:
    keys = dict.fromkeys(effect.cell for effect in book.state.effects)
    for key in sorted(found.keys() | keys):
        book.has(key, found.get(key), "a scan returns another value than the last one put")
