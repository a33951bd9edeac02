"""Compare functions and parts of the store with references (contract 8).

None of them needs the disk of the run. Real files lie in a directory that is removed afterwards.
"""

import random

from tornpage.properties.lockstep.functions import files, filters, policies, records, statistics, texts
from tornpage.properties.lockstep.parts import (
    appends,
    clean_up,
    closes,
    delays,
    derived_floors,
    dispatch_services,
    dispatches,
    groups,
    held_pulls,
    index,
    log_files,
    mapped_files,
    numbers,
    pulls,
    queues,
    real_files,
    received,
    recovered_logs,
    services,
    small_files,
    waiting_puts,
)
from tornpage.properties.lockstep.settings import settings_are_checked

__all__ = ["functions_answer"]

_PARTS = (
    texts, records, policies, filters, files, statistics, small_files, delays, dispatches, dispatch_services, log_files,
    mapped_files, recovered_logs, queues, numbers, pulls, index, received, clean_up, services, real_files,
    appends, waiting_puts, held_pulls, derived_floors,
    closes,
    groups,
)  # fmt: skip


def functions_answer(fill: int) -> None:
    """Compare functions, parts, and the checks of some settings, with numbers drawn by `fill`.

    Raises GuaranteeBroken.
    """
    settings_are_checked(fill)
    for part in _PARTS:
        part.check(random.Random(f"{part.__name__} {fill}"))
