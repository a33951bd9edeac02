"""Symptom: a program that flushes or reads a store that it has closed broke a promise, "flush raises StoreClosed".

Cause: of the lab, not the store. All other operations do nothing then; a case that is made small may come to this
one, and is another failure then. Fix: nor do these two.
Found by: programs beside the smallest cases of planted bugs.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Close, Flush, Get, Operation, Put
from tornpage.properties.program.case import Settings


@pytest.mark.parametrize("operation", [Flush(), Get()])
def test_nothing_happens(attempt: Attempt, operation: Operation) -> None:
    assert attempt((Put(), Close(), operation), Settings(file_bytes=1024)) is None
