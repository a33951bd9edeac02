"""Symptom: the lab said that the recovered log differs from what was put, behind a commit of which the disk took
half.

Cause: of the lab, not the store. The half ended within the zeros that a record without properties and without a
checksum ends with: the record was whole, since zeros are there before it is, and recovery rightly found it. Fix: what
is whole in the page cache counts.
Found by: programs beside the smallest cases of planted bugs.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import FailWrite, Open, Put
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, pool_buffers=2, trailer=False)


@pytest.mark.parametrize("topic", ["Cod", "Coda", "Codab"])
def test_the_record_counts(attempt: Attempt, topic: str) -> None:
    assert attempt((Put(topic=topic), FailWrite(), Put(), Open()), SETTINGS) is None
