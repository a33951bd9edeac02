"""An open that fails in the middle releases all files.

Symptom: an open with a failing disk kept files of a queue mapped. One with a queue file that could not be removed ended
with `struct.error`.
Cause: a queue was registered only after it had been loaded, and unregistered before its extension was closed. A queue
in removal counted its units until its last file had gone.
Fix: a queue is registered before it is loaded and unregistered after its last flush. Its files are listed as they are
mapped. An interrupted erasure leaves the number of units that are still listed.
Found by: I/O fault rules at opens, `read-error` and `unlink-error`.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.model.operations import AimFault, Close, Crash, Flush, Open, Operation, Put, Step
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings

PUT, REPUT = Put(), Step(service="reput")
EXTENDED = Settings(file_bytes=1024, queue_ext=True)
EXTENSION = "/store/consumequeue_ext/T/0/00000000000000000000"
NAMES = [f"mkdir /store/{top}{below}" for top in ("consumequeue", "consumequeue_ext") for below in ("", "/T", "/T/0")]
ONLY_AN_EXTENSION = Crash(survived={**dict.fromkeys([*NAMES, f"create {EXTENSION}", f"size {EXTENSION}"], 1)})


class _RememberedAtTheEnd(dict[tuple[bytes, int], ConsumeQueue]):
    """Skips queues that have not been loaded when the files are closed."""

    def values(self) -> Iterator[ConsumeQueue]:  # type: ignore[override]
        return iter(queue for queue in super().values() if queue.max_physic_offset >= 0)


class _LoadedFirst(ConsumeQueues):
    def load(self) -> None:
        self._queues = _RememberedAtTheEnd()
        super().load()


@pytest.mark.parametrize(
    ("operations", "settings"),
    [
        ((PUT, REPUT, Close(), AimFault("read-error", "kind=extension and nth=1"), Open()), EXTENDED),
        (
            (PUT, PUT, PUT, REPUT, AimFault("read-error", "kind=queue and op=map and nth=2"), Open()),
            Settings(file_bytes=1024, queue_units=1),
        ),
        ((PUT, Flush(), AimFault("sync-error", "kind=extension and nth=1"), REPUT, ONLY_AN_EXTENSION), EXTENDED),
    ],
)
def test_a_refused_open_holds_nothing(operations: tuple[Operation, ...], settings: Settings, attempt: Attempt) -> None:
    assert attempt(operations, settings) is None


def test_a_queue_that_is_remembered_too_late_is_noticed(attempt: Attempt) -> None:
    operations = (PUT, REPUT, Close(), AimFault("read-error", "kind=extension and nth=1"), Open())
    broken = attempt(operations, EXTENDED, Parts({ConsumeQueues: _LoadedFirst}))
    assert broken is not None
    assert broken.contract == 11


def test_a_queue_file_that_cannot_be_removed_holds_no_units(attempt: Attempt) -> None:
    operations = (AimFault("unlink-error", "kind=marker or kind=queue and nth=2"), PUT, PUT, Open())
    settings = replace(EXTENDED, queue_units=1)
    assert attempt((AimFault("unlink-error"), PUT, Open()), EXTENDED) is None
    assert attempt(operations, settings) is None
    broken = attempt(operations, settings, parts_of("counts-what-is-gone"))
    assert broken is not None
    assert broken.contract == 7
