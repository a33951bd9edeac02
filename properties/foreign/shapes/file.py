"""Define the shape of libraries that write whole files: write, read, remove.

| request | answer |
|---|---|
| `write` name, content | nothing; the file has this content alone |
| `read` name | the content, or null |
| `remove` name | nothing |
| `flush`, `close` | nothing |

Each file is a cell, and its effects are its contents. A file is replaced as a whole unless the library promises less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tornpage.model.operations import Call, Close, Flush, Open, Operation
from tornpage.properties.foreign.shapes.history import Cut, Effect, History, Orders, Row, rows_of
from tornpage.properties.foreign.shapes.language import Fault, Promises
from tornpage.properties.foreign.shapes.shape import (
    Answers,
    AtOnce,
    Book,
    Choose,
    Selection,
    Shape,
    Together,
    bytes_in,
    encoded,
    read_at_once,
)

__all__ = ["FileBook", "FilePromises", "WholeFile"]

_WRONG_READ = "a read returns another content than was written"
_NAMES = ("a", "a", "b")
_SIZES = (8, 8, 40, 300, 900, 5000, 9000)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePromises(Promises):
    """List the promises of a library that writes files.

    Without `atomic` a crash may leave anything in a file whose last write was not promised. `remove` is whether files
    can be removed. With `reads` as `durable` a content that a read returns is as safe as one whose write has an answer.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("write", "flush", "close")
    WORDS: ClassVar[dict[str, tuple[str, ...]]] = {"consistent": ("power", "kill"), "reads": ("early", "durable")}

    atomic: bool = True
    remove: bool = False
    reads: str = "early"
    content_bytes_max: int = 1 << 16

    def said_of_shape(self) -> list[str]:
        """Return what is promised beyond durability, as parts of a line."""
        return ["atomic writes" if self.atomic else "writes in parts", *Promises.said_of_shape(self)]


@dataclass(frozen=True, slots=True)
class WholeFile(Shape):
    """Judge libraries that write whole files."""

    promises: FilePromises

    NAME: ClassVar[str] = "file"
    PROMISES: ClassVar[type[Promises]] = FilePromises
    WRITE: ClassVar[str] = "write"
    WHAT: ClassVar[str] = "write"
    AT_ONCE: ClassVar[tuple[str, ...]] = ("write", "remove", "read")

    def value_bytes_max(self) -> int:
        """Return the longest content that the library accepts."""
        return self.promises.content_bytes_max

    def draw(self, choose: Choose, history: History) -> Call:
        """Draw a call."""
        verb = choose(("write",) * 6 + ("read",) * 2 + ("remove",) * self.promises.remove)
        return Call(verb, choose(_NAMES), size_bytes=choose(_SIZES) if verb == "write" else 0)

    def carry_out(self, call: Call, store: Answers, book: Book) -> list[Effect] | None:
        """Carry out a call; return the effects of a write."""
        match call.verb:
            case "write":
                content = book.next_value(call.size_bytes)
                store.call("write", name=call.name, content=encoded(content))
                return [Effect(0, 0, call.name, "write", content)]
            case "remove" if self.promises.remove:
                store.call("remove", name=call.name)
                return [Effect(0, 0, call.name, "remove")]
            case "read":
                answer = store.call("read", name=call.name)
                if not isinstance(store, Together):
                    book.has(call.name, bytes_in(store, "read", answer, "content"), _WRONG_READ)
        return None

    def at_once(self, at_once: AtOnce, effects: Sequence[Effect], store: Answers) -> tuple[Orders, frozenset[int]]:
        """Compare the reads of concurrent callers.

        Return the orders that explain them, and the callers of the writes that they read.
        """
        orders, _ = Shape.at_once(self, at_once, effects, store)
        contents = {
            caller: bytes_in(store, "read", answer, "content") for caller, answer in at_once.answers_to("read").items()
        }
        return read_at_once(self, at_once, effects, contents, orders, _WRONG_READ)

    def observe(self, store: Answers, history: History, book: Book) -> dict[str, Any]:
        """Read each file that was ever written."""
        names = dict.fromkeys(effect.cell for effect in (*history.effects, *history.gone))
        store.ahead("read", ({"name": name} for name in names))
        return {name: _content(store, name) for name in names}

    def value(self, cell: str, effects: Sequence[Effect]) -> bytes | None:
        """Return the content of a file after its effects."""
        return effects[-1].value if effects else None

    def fits(self, cell: str, row: Sequence[Effect], later: Sequence[Effect], found: Any) -> bool:
        """Return whether a row can give the content found.

        Its last effect decides, unless there is a later one.
        """
        return bool(later) or self.value(cell, row) == found

    def selections(
        self, cell: str, effects: Sequence[Effect], fault: Fault, found: Any, orders: Orders
    ) -> Iterator[Selection]:
        """Yield each legal selection that gives the content found.

        Without atomic writes an unpromised last write may have left anything. It then counts as a write of that.
        """
        yield from Shape.selections(self, cell, effects, fault, found, orders)
        if not self.promises.atomic and effects:
            *rows, last = rows_of(effects, orders)
            for effect in last.effects:
                kept = tuple(order for order in last.orders if last.sequence(order)[-1] == effect)
                if kept and not effect.promised(fault):
                    sequence = Cut((*rows, Row(last.effects, kept))).effects
                    torn = replace(effect, value=found, answered=False)
                    yield Selection((*sequence[:-1], torn), {effect.together: kept} if effect.together else {})

    def said(self, cell: str, value: Any) -> str:
        """Return the content of a file in words."""
        return f"file {cell}: {Shape.said(self, cell, value).partition(': ')[2]}"


class FileBook(Book):
    """Follow a run of a library that writes files."""

    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = (
        (),
        (Call("write", "a", size_bytes=8),),
        (Flush(),),
        (Close(), Open()),
        (Call("write", "b", size_bytes=40), Close()),
    )
    first_write: ClassVar[Operation] = Call("write", "a", size_bytes=8)


def _content(store: Answers, name: str) -> bytes | None:
    return bytes_in(store, "read", store.call("read", name=name), "content")
