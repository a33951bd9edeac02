"""A bench of a whole store for the locks that only the store as a whole uses."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from tornpage.impl.errors import StoreClosed
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.programs.bench import Bench, call, program, require_rule
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.translation import store_config

__all__ = ["BENCHES"]

_SETTINGS = Settings(file_bytes=1024, queue_units=3, index=False)
_BUDGET_BYTES = 1 << 26


class StoreBench(Bench):
    """Flushes, deletions, rounds of services and closes of one store."""

    modules = ("tornpage.impl.store", "tornpage.impl.durability", "tornpage.impl.retention.retention")

    def __init__(self) -> None:
        self.runners: dict[str, SteppedRunner] = {}
        self.files = UnmarkedDisk(EMPTY_DISK, tracker=CompareTracker(), budget_bytes=_BUDGET_BYTES)
        self.store = MessageStore.open(
            ROOT,
            store_config(_SETTINGS),
            files=self.files,
            clock=lambda: BORN_TIMESTAMP,
            parts=stepped_parts(Parts(), runner=self._runner),
            memory_bytes=1 << 33,
        )

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.runners[service.name] = SteppedRunner(service, lambda: BORN_TIMESTAMP)
        return runner

    def put(self, number: int) -> str:
        answer = self.store.put(Message("T", b"%d" % number))
        return answer.status.name

    def flush(self) -> None:
        self.store.flush()

    def delete(self) -> object:
        """Delete all topics; return their names, or that the store was closed before."""
        try:
            return self.store.clean_unused_topics(())
        except StoreClosed:
            return "closed"

    def clean(self) -> None:
        self.runners["clean"].step()

    def dispatch(self) -> None:
        self.runners["reput"].step()

    def close(self) -> None:
        self.store.close()

    def state(self) -> object:
        self.store.close()
        journal = len(self.files.journal)
        self.store.close()
        require_rule(len(self.files.journal) == journal, "a closed store writes", contract=11)
        return self.store.read_only_reason, sorted(self.files.paths())

    programs: ClassVar[tuple[Scenario, ...]] = (
        program("store", [call("close")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("close")], [call("close")], before=[call("put", 1)]),
        program("store", [call("close")], [call("delete")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("put", 2)], before=[call("put", 1)]),
        program("store", [call("flush")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("delete")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("delete")], [call("delete")], before=[call("put", 1), call("dispatch")]),
    )


BENCHES: Mapping[str, Callable[[], Bench]] = {"store": StoreBench}
