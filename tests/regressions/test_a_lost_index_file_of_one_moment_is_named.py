"""Symptom: the last index file was lost after a clean exit, and no finding said that it was made anew.

Cause: what has the very time of the checkpoint may have come after it, so it was not taken for durable; behind a clean
exit it is. Fix: an open behind a clean exit counts that time in (impl/recovery/opening.py, `_recover`).
Found by: the queue machine, once messages of one time filled an index file.
"""

from tornpage.model.operations import HarmDerived, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.case import Case, Settings


def test_a_lost_index_file_whose_records_are_all_of_the_last_moment_is_named() -> None:
    keyed = Put(properties="KEYS\x01Aa", advance_ms=0)
    operations = (keyed, keyed, HarmDerived(file="index", harm="lost", number=1))
    with choose_tracker("auto") as tracker:
        assert replay(Case(Settings(index_entries=2), operations), tracker=tracker) is None
