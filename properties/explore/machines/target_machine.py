"""Test foreign stores: their promises hold beside the reference, including crash faults.

It takes stores of every shape (properties/foreign/shapes); `check --target` runs it.
"""

from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import Call, Crash, Open, Operation
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.explore.machines.strategies import choices_of
from tornpage.properties.foreign.shapes.registry import SHAPES
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.program.case import Settings

__all__ = ["TargetMachine"]


class TargetMachine(TrialMachine):
    """Run writes, reads, flushes, restarts, kills and power losses; `fixed` names the target."""

    must_run: ClassVar[tuple[str, ...]] = ("flush", "close", "open", "crash")
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (("write",), ("kill",), ("power", "kills_only"))

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
    @rule(data=st.data(), count=st.integers(1, 4))
    def call(self, data: st.DataObject, count: int) -> None:
        """Read and write, as the shape of the store draws it."""
        for _ in range(count):
            operation = self.trial.book.draw(lambda options: data.draw(st.sampled_from(options)))
            self.effects["write"] += self._name(operation) == SHAPES[self.trial.shape].write
            self.carry_out(operation)

    @staticmethod
    def _name(operation: Operation) -> str:
        return operation.verb if isinstance(operation, Call) else operation.op

    @precondition(lambda self: self.trial.closed)
    @rule()
    def open(self) -> None:
        """Open again."""
        self.carry_out(Open())

    def _lose_power(self, data: st.DataObject, *, back: int) -> None:
        """Lose power if the recording allows it, unless only kills are asked for."""
        back = self._allowed(back)
        if self.trial.settings.disk == "kill" or self.trial.promises.kills_only:
            self.effects["kills_only"] += 1
        if self.trial.asks_power_loss:
            survived = data.draw(choices_of(self._open_facts(back=back)), label="survived")
            self.carry_out(Crash(back=back, survived=survived))

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
