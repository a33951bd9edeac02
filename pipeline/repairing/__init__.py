"""Mend a copy of a damaged store: every valid record at its offset, and everything else made from them.

1. The store itself is only read. What is written lies below the directory given, which must not exist before.
2. The copy holds every valid record of the log, in order, at its physical offset. Fillers stand for lost records.
   The damaged bytes are kept in `quarantine/`.
3. Queues, index and checkpoint of the copy are those of its log. Progress files are taken over.
4. The directory gets its name when everything is in it, durable and audited; until then it is named `….unfinished`.
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
