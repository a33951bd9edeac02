"""Compare functions and small parts of the store with the model (contract 8).

None of them needs the disk of the run.
"""

import random

from tornpage.properties.lockstep.functions import files, filters, policies, records, statistics, texts

__all__ = ["functions_answer"]


def functions_answer(fill: int) -> None:
    """Compare all functions; the numbers drawn depend on `fill`. Raises GuaranteeBroken."""
    for part in (texts, records, policies, filters, files, statistics):
        part.check(random.Random(f"{part.__name__} {fill}"))
