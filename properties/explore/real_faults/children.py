"""Run work in a forked process that reports its progress on a shared page.

Answers of the store are on the page before the child continues, so the parent knows what was promised, however the
child ends. The parent determines how it ended: by itself, by a broken promise that it found, or by a signal. The child
dies with its parent, ignores the interrupt key (the parent handles it), and is killed if it hangs.
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
    """Record a put that was answered with a place in the log.

    `promised` means that the answer was PUT_OK.
    """

    number: int
    offset: int
    end: int
    promised: bool


class Page:
    """Share memory in which a child reports and which outlives it. One child writes at a time."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _PAGE_BYTES)
        self._facts: dict[str, Any] = {}

    def _head(self) -> tuple[int, int, int]:
        """Return the number of entries, the bytes of the facts, and the running put or 0."""
        entries, facts_bytes, putting = _HEAD.unpack_from(self._page, 0)
        return entries, facts_bytes, putting

    @property
    def stored(self) -> list[Stored]:
        """Return every stored put in the order of the answers."""
        entries, _, _ = self._head()
        rows = (_ENTRY.unpack_from(self._page, _ENTRIES_AT + row * _ENTRY.size) for row in range(entries))
        return [Stored(number, offset, end, bool(promised)) for number, offset, end, promised in rows]

    @property
    def promised(self) -> list[Stored]:
        """Return the puts that must not be lost.

        They were answered PUT_OK and do not end past the fact `promised_end`, if that was reported.
        """
        end = self.facts.get("promised_end")
        return [stored for stored in self.stored if stored.promised and (end is None or stored.end <= end)]

    @property
    def putting(self) -> int:
        """Return the number of the put that has no answer yet, or 0."""
        return self._head()[2]

    @property
    def verb(self) -> str:
        """Return the last action that the child started."""
        return self._page[_VERB_AT : _VERB_AT + _VERB_BYTES].rstrip(b"\0").decode("utf-8", "replace")

    @property
    def facts(self) -> dict[str, Any]:
        """Return everything reported so far."""
        _, facts_bytes, _ = self._head()
        told = json.loads(self._page[_FACTS_AT : _FACTS_AT + facts_bytes] or b"{}")
        assert isinstance(told, dict)
        return told

    def begin(self, verb: str, *, putting: int = 0) -> None:
        """Report the next action, and the message that it puts.

        A put without an answer stays noted during later actions.
        """
        text = verb.encode()[:_VERB_BYTES]
        self._page[_VERB_AT : _VERB_AT + _VERB_BYTES] = text.ljust(_VERB_BYTES, b"\0")
        entries, facts_bytes, before = self._head()
        _HEAD.pack_into(self._page, 0, entries, facts_bytes, putting or before)

    def store(self, stored: Stored) -> None:
        """Record a stored put. The count is written last, so that an entry is complete or absent."""
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

    def forget_after(self, end: int) -> None:
        """Drop the puts past the offset at which a recovery ended the log."""
        kept = sum(stored.end <= end for stored in self.stored)
        _, facts_bytes, putting = self._head()
        _HEAD.pack_into(self._page, 0, kept, facts_bytes, putting)

    def answered(self) -> None:
        """Record that the running put was answered and stored nothing."""
        entries, facts_bytes, _ = self._head()
        _HEAD.pack_into(self._page, 0, entries, facts_bytes, 0)

    def tell(self, **facts: Any) -> None:
        """Add facts for the parent."""
        self._facts = {**self.facts, **facts}
        text = json.dumps(self._facts).encode()
        if len(text) > _FACTS_BYTES:
            raise HarnessError("the facts of a child do not fit into its page")
        self._page[_FACTS_AT : _FACTS_AT + len(text)] = text
        entries, _, putting = self._head()
        _HEAD.pack_into(self._page, 0, entries, len(text), putting)

    @contextmanager
    def asking(self, verb: str, *, putting: int = 0) -> Iterator[None]:
        """Call the store. An exception that is not a verdict is a forbidden answer (contract 8)."""
        self.begin(verb, putting=putting)
        try:
            yield
        except (GuaranteeBroken, HarnessError):
            raise
        except Exception as error:
            raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Ending:
    """Describe how a process ended: by itself, or by the named signal."""

    signal: str | None


def in_child(page: Page, work: Callable[[Page], None], *, hang_seconds: int = HANG_SECONDS) -> Ending:
    """Run work in a forked process and wait for its end.

    Raises what it found there: GuaranteeBroken, Unavailable, and HarnessError for any other exception and for a signal
    from outside. A process that hangs broke contract 16; with 0 seconds there is no limit.
    """
    page.tell(raised=None)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # it must not unwind this stack in the child
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
            raise HarnessError(f"another process killed the process in {page.verb}; is memory short?")
        return Ending(number.name)
    _raise(page.facts.get("raised"))
    if status != 0:
        raise HarnessError(f"the process left with exit status {os.WEXITSTATUS(status)} in {page.verb}")
    return Ending(None)


def _live(page: Page, work: Callable[[Page], None], parent: int, hang_seconds: int) -> NoReturn:
    """Work and exit; clean up nothing of the parent."""
    status = 1
    try:
        die_with_parent()
        if os.getppid() != parent:  # the parent ended before the request for its death signal
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(hang_seconds)
        faulthandler.disable()  # a death by signal is expected here, and needs no stack on the terminal
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
