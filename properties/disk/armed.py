"""An aimed fault that waits for its call, and counts."""

import random

from tornpage.properties.program.fault_calls import Call
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_language import parse_predicate
from tornpage.properties.program.fault_predicates import matcher_of

__all__ = ["ArmedFault"]


class ArmedFault:
    """`text` is how it was ordered, `met` how many calls it could have hit, `fired` how many it did."""

    def __init__(self, effect: str, where: str, seed: int) -> None:
        self.effect = EFFECTS[effect]
        self.text = f"{effect}: {where}" if where else effect
        self.met = 0
        self.fired = 0
        self._matches = matcher_of(parse_predicate(where, effect), random.Random(f"aim {seed}"))

    def strikes(self, call: Call) -> bool:
        """Whether the call has to fail; each call is asked about once, in order."""
        if call.operation not in self.effect.operations:
            return False
        self.met += 1
        if not self._matches(call):
            return False
        self.fired += 1
        return True
