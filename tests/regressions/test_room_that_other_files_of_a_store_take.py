"""Symptom: the lab said that a put is answered otherwise than by the model, which found the disk full later, or that
two puts at once are explained by no order.

Cause: of the lab, not the store. On a disk for a few log files, what a restart finds of deleted topics, or files of
others, took the room of the last one. Fix: only what every store has takes room beside the log.
Found by: programs beside the smallest cases of planted bugs.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import Concurrent, Crash, DeleteTopics, HarmDerived, Put
from tornpage.properties.program.case import Settings

FULL, SMALL, AT_ONCE = Put(body_bytes=800), Put(), Put(advance_ms=0)


def test_deleted_topics_take_none(attempt: Attempt) -> None:
    program = (SMALL, DeleteTopics(), Crash(others="kept"), FULL, FULL)
    assert attempt(program, Settings(file_bytes=1024, files_max=2)) is None


def test_files_of_others_take_none(attempt: Attempt) -> None:
    both = Concurrent(first=(AT_ONCE,), second=(AT_ONCE,))
    program = (FULL, HarmDerived(file="checkpoint", harm="stray"), FULL, FULL, Put(body_bytes=700), both)
    assert attempt(program, Settings(file_bytes=1024, files_max=4)) is None
