"""Repair a copy of a damaged store.

1. The store itself is only read. Everything is written below the given directory, which must not exist before.
2. The copy has every valid record of the log, in order, at its physical offset. Fillers stand for lost records. Damaged
   bytes are kept in `quarantine/`.
3. Queues, index and checkpoint of the copy are rebuilt from its log. Progress files are copied.
4. The directory gets its name when everything is in it, durable and audited. Until then it is named `….unfinished`.
"""

from __future__ import annotations

from tornpage.pipeline.repairing.carrying_out import RepairDone, carry_out
from tornpage.pipeline.repairing.plan import Prepared, RepairPlan, RepairRefused, prepare_repair
from tornpage.pipeline.repairing.rebuilding import RebuildDone, rebuild

__all__ = [
    "Prepared",
    "RebuildDone",
    "RepairDone",
    "RepairPlan",
    "RepairRefused",
    "carry_out",
    "prepare_repair",
    "rebuild",
]
