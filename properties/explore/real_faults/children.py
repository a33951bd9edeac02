"""A forked process that carries out one piece of work, and the page on which it tells its parent how far it got.

What it was answered is on the page before it asks for more, so whatever ends it, the parent knows what was promised.
How it ended is the parent's to say: by itself, by a broken promise that it found, or by a signal. It dies with its
parent, ignores the interrupt key (the parent answers that), and is killed when it hangs.
"""

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.real_faults.mounts import Unavailable, die_with_parent

__all__ = ["HANG_SECONDS", "Ending", "Page", "Stored", "in_child"]

HANG_SECONDS = 120

_HEAD = struct.Struct("=qqq")
_ENTRY = struct.Struct("=qqqq")
_VERB_AT, _VERB_BYTES = 64, 192
_FACTS_AT, _FACTS_BYTES = 256, 64 << 10
_ENTRIES_AT = _FACTS_AT + _FACTS_BYTES
_ENTRIES_MAX = 32_768
_PAGE_BYTES = _ENTRIES_AT + _ENTRIES_MAX * _ENTRY.size


@dataclass(frozen=True, slots=True)
class Stored:
    """A put that was answered with a place in the log; `promised` says that the answer was PUT_OK."""

    number: int
    offset: int
    end: int
    promised: bool


class Page:
    """What a child says, in memory that outlives it. One child writes at a time."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _PAGE_BYTES)
        self._facts: dict[str, Any] = {}

    def _head(self) -> tuple[int, int, int]:
        """Return the number of entries, the bytes of the facts, and the number of the put under way, 0 for none."""
        entries, facts_bytes, putting = _HEAD.unpack_from(self._page, 0)
        return entries, facts_bytes, putting

    @property
    def stored(self) -> list[Stored]:
        """Every put that was stored, in the order of the answers."""
        entries, _, _ = self._head()
        rows = (_ENTRY.unpack_from(self._page, _ENTRIES_AT + row * _ENTRY.size) for row in range(entries))
        return [Stored(number, offset, end, bool(promised)) for number, offset, end, promised in rows]

    @property
    def promised(self) -> list[Stored]:
        """Those that must not be lost: answered PUT_OK, and not behind the fact `promised_end`, if that was told."""
        end = self.facts.get("promised_end")
        return [stored for stored in self.stored if stored.promised and (end is None or stored.end <= end)]

    @property
    def putting(self) -> int:
        """The number of the put that has no answer yet, 0 if each has one."""
        return self._head()[2]

    @property
    def verb(self) -> str:
        """What the child was about to do, or did, last."""
        return self._page[_VERB_AT : _VERB_AT + _VERB_BYTES].rstrip(b"\0").decode("utf-8", "replace")

    @property
    def facts(self) -> dict[str, Any]:
        """Everything told so far."""
        _, facts_bytes, _ = self._head()
        told = json.loads(self._page[_FACTS_AT : _FACTS_AT + facts_bytes] or b"{}")
        assert isinstance(told, dict)
        return told

    def begin(self, verb: str, *, putting: int = 0) -> None:
        """Say what comes next, and which message it puts; a put that got no answer stays noted through other verbs."""
        text = verb.encode()[:_VERB_BYTES]
        self._page[_VERB_AT : _VERB_AT + _VERB_BYTES] = text.ljust(_VERB_BYTES, b"\0")
        entries, facts_bytes, before = self._head()
        _HEAD.pack_into(self._page, 0, entries, facts_bytes, putting or before)

    def store(self, stored: Stored) -> None:
        """Note a put that was stored; the count comes last, so that an entry is whole or not there."""
        entries, facts_bytes, _ = self._head()
        if entries == _ENTRIES_MAX:
            raise HarnessError(f"more than {_ENTRIES_MAX:,} puts in one fault")
        _ENTRY.pack_into(
            self._page,
            _ENTRIES_AT + entries * _ENTRY.size,
            stored.number,
            stored.offset,
            stored.end,
            stored.promised,
        )
        _HEAD.pack_into(self._page, 0, entries + 1, facts_bytes, 0)

    def forget_behind(self, end: int) -> None:
        """Drop the puts behind the offset at which a recovery ended the log."""
        kept = sum(stored.end <= end for stored in self.stored)
        _, facts_bytes, putting = self._head()
        _HEAD.pack_into(self._page, 0, kept, facts_bytes, putting)

    def answered(self) -> None:
        """Note that the put under way was answered and stored nothing."""
        entries, facts_bytes, _ = self._head()
        _HEAD.pack_into(self._page, 0, entries, facts_bytes, 0)

    def tell(self, **facts: Any) -> None:
        """Add facts for the parent."""
        self._facts = {**self.facts, **facts}
        text = json.dumps(self._facts).encode()
        if len(text) > _FACTS_BYTES:
            raise HarnessError("a child has more to tell than the page takes")
        self._page[_FACTS_AT : _FACTS_AT + len(text)] = text
        entries, _, putting = self._head()
        _HEAD.pack_into(self._page, 0, entries, len(text), putting)

    @contextmanager
    def asking(self, verb: str, *, putting: int = 0) -> Iterator[None]:
        """Ask the store for something: an exception that is no verdict is an answer it must not give (contract 8)."""
        self.begin(verb, putting=putting)
        try:
            yield
        except (GuaranteeBroken, HarnessError):
            raise
        except Exception as error:
            raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: by itself, or by the signal named."""

    signal: str | None


def in_child(page: Page, work: Callable[[Page], None], *, hang_seconds: int = HANG_SECONDS) -> Ending:
    """Carry out work in a forked process and wait for its end.

    Raises what it found out there: GuaranteeBroken, Unavailable, and HarnessError for any other exception and for a
    signal from outside. A process that hangs broke contract 16; with 0 seconds none does.
    """
    page.tell(raised=None)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # it must not unwind our stack in the child
    try:
        pid = os.fork()
        if pid == 0:
            _live(page, work, parent, hang_seconds)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _, status = os.waitpid(pid, 0)
        except BaseException:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        if number is signal.SIGALRM:
            raise GuaranteeBroken(16, f"{page.verb} did not return within {hang_seconds} s")
        if number in (signal.SIGKILL, signal.SIGTERM):
            raise HarnessError(f"somebody else killed the process in {page.verb}; is memory short?")
        return Ending(number.name)
    _raise(page.facts.get("raised"))
    if status != 0:
        raise HarnessError(f"the process left with exit status {os.WEXITSTATUS(status)} in {page.verb}")
    return Ending(None)


def _live(page: Page, work: Callable[[Page], None], parent: int, hang_seconds: int) -> NoReturn:
    """Work and leave; nothing of the parent's is cleaned up here."""
    status = 1
    try:
        die_with_parent()
        if os.getppid() != parent:  # it was gone before we asked to be told
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(hang_seconds)
        faulthandler.disable()  # a death by signal is looked for here, and needs no stack on the terminal
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work(page)
        status = 0
    except GuaranteeBroken as broken:
        page.tell(raised=["broken", broken.contract, broken.sentence, broken.expected, broken.found])
        status = 0
    except Unavailable as missing:
        page.tell(raised=["unavailable", str(missing)])
        status = 0
    except HarnessError as error:
        page.tell(raised=["harness", str(error)])
        status = 0
    except BaseException as error:
        page.tell(raised=["harness", f"{type(error).__name__}: {error} (in {page.verb or 'the beginning'})"])
        status = 0
    finally:
        os._exit(status)


def _raise(raised: list[Any] | None) -> None:
    """Raise in the parent what a child has raised."""
    match raised:
        case ["broken", contract, sentence, expected, found]:
            raise GuaranteeBroken(contract, sentence, expected, found)
        case ["unavailable", reason]:
            raise Unavailable(reason)
        case ["harness", text]:
            raise HarnessError(text)
