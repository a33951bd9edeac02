"""Symptom: `explore --seed 301` said that a damaged store served a record which it should have refused (contract 7).

Cause: the lab's. A misdirected page began inside of the record's trailer, in the byte that ends its name. What is left
is an ordinary property, and a record without a trailer is one that 4.9.3 may have written, so that its body alone
vouches for it. The lab knew that of a flipped bit and not of a page. Fix: where the name is touched, only what is
covered without a trailer has to be noticed.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Damage, Flush, Operation, Put
from tornpage.properties.program.case import Settings

IN_THE_NAME = Put(body_bytes=3_996)
"""A record that ends 12 bytes behind the first page: with what ends the name of its trailer, and the number."""


@pytest.mark.parametrize("amount", range(3))
def test_a_record_whose_trailer_has_lost_its_name_may_be_served(attempt: Attempt, amount: int) -> None:
    puts = [Put(body_bytes=1_000, fill=number) for number in range(9)]  # the other pages begin in bodies, not in zeros
    operations: list[Operation] = [IN_THE_NAME, *puts, Flush(), Damage("misdirect_page", record=1, amount=amount)]
    assert attempt(operations, Settings()) is None
