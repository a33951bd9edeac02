"""Test foreign stores: their promises hold beside the reference, including crash faults.

It takes any store that properties/foreign/protocol.py describes; `check --target` runs it.
"""

from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import Crash, Get, GetMessage, Open, Operation, Put, QueryKey
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.program.case import Settings

__all__ = ["TargetMachine", "target_puts"]

_SIZES = (0, 8, 40, 8, 300, 900, 5000)
_PROPERTIES = ("", "KEYS\x01k", "KEYS\x01k1 k2", "", "KEYS\x01k2")


def target_puts() -> st.SearchStrategy[Put]:
    """Draw messages of three queues, some longer than a page, some alike, some with keys."""
    return st.builds(
        Put,
        topic=st.sampled_from(("T", "T", "U")),
        queue_id=st.sampled_from((0, 0, 1)),
        body_bytes=st.sampled_from(_SIZES),
        fill=st.integers(0, 5),
        properties=st.sampled_from(_PROPERTIES),
    )


class TargetMachine(TrialMachine):
    """Run puts, reads, flushes, restarts, kills and power losses; `fixed` names the target."""

    must_run: ClassVar[tuple[str, ...]] = ("put", "flush", "close", "open", "crash")
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (("kill",), ("power", "kills_only"))

    from_first_answer: ClassVar[bool] = False
    """Whether no crash is inside the very first open."""
    next_sync_fails: Any = None  # the disk is a real one, and its syncs do not fail
    trial: TargetTrial  # type: ignore[assignment]  # both trials have what the rules use

    @initialize()
    def open_store(self) -> None:
        """Open the store in an empty directory."""
        self.start(Settings())

    def _new_trial(self) -> Any:
        return TargetTrial(self.settings)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=st.lists(target_puts(), min_size=1, max_size=4))
    def put(self, several: list[Put]) -> None:
        """Put messages."""
        for put in several:
            self.carry_out(put)

    @precondition(lambda self: not self.trial.closed and self.trial.promises.offsets)
    @rule(record=st.integers(0, 20))
    def get(self, record: int) -> None:
        """Get a message by its offset."""
        self.carry_out(Get(record=record))

    @precondition(lambda self: not self.trial.closed and self.trial.promises.queues)
    @rule(queue=st.integers(0, 3), number=st.integers(0, 8))
    def read(self, queue: int, number: int) -> None:
        """Read a message of a queue, or past its end."""
        self.carry_out(GetMessage(queue=queue, shift=number))

    @precondition(lambda self: not self.trial.closed and self.trial.promises.index)
    @rule(key=st.integers(0, 4))
    def find(self, key: int) -> None:
        """Query the messages with a key."""
        self.carry_out(QueryKey(key=key))

    @precondition(lambda self: self.trial.closed)
    @rule()
    def open(self) -> None:
        """Open again."""
        self.carry_out(Open())

    def _lose_power(self, data: st.DataObject, *, back: int) -> None:
        """Lose power if the recording allows it. The disk `kill` asks for kills only."""
        back = self._allowed(back)
        if self.trial.settings.disk == "kill":
            self.effects["kills_only"] += 1
        if not self.trial.why_no_power_loss:
            super()._lose_power(data, back=back)

    def carry_out(self, operation: Operation) -> None:
        """Carry out an operation. A kill inside the very first open may have to wait for its end."""
        if isinstance(operation, Crash) and operation.kill:
            operation = replace(operation, back=self._allowed(operation.back))
        super().carry_out(operation)

    def _allowed(self, back: int) -> int:
        return 0 if self.from_first_answer and self.trial.spans[-1].operations == 0 else back

    def teardown(self) -> None:
        """Close, and leave no process and no directory."""
        super().teardown()
        if hasattr(self, "trial"):
            self.trial.end()
