"""Compare the functions of the store that need no disk with the model (contract 8)."""

import random

from tornpage.properties.lockstep.functions import filters, policies, statistics, texts

__all__ = ["functions_answer"]


def functions_answer(fill: int) -> None:
    """Compare all functions; the numbers drawn depend on `fill`. Raises GuaranteeBroken."""
    for part in (texts, policies, filters, statistics):
        part.check(random.Random(f"{part.__name__} {fill}"))
