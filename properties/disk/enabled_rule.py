"""An enabled I/O fault rule, which waits for its call and counts."""

import random

from tornpage.properties.program.fault_calls import Call
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_language import parse_predicate
from tornpage.properties.program.fault_predicates import matcher_of

__all__ = ["EnabledRule"]


class EnabledRule:
    """One I/O fault rule.

    `text` is the rule as given, `met` counts the calls that it could hit, `fired` those that it hit.
    """

    def __init__(self, effect: str, where: str, seed: int) -> None:
        self.effect = EFFECTS[effect]
        self.text = f"{effect}: {where}" if where else effect
        self.met = 0
        self.fired = 0
        self._matches = matcher_of(parse_predicate(where, effect), random.Random(f"aim {seed}"))

    def strikes(self, call: Call) -> bool:
        """Return whether the call has to fail.

        Every call is passed once, in order.
        """
        if call.operation not in self.effect.operations:
            return False
        self.met += 1
        if not self._matches(call):
            return False
        self.fired += 1
        return True
