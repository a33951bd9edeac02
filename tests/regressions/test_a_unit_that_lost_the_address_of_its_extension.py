"""Symptom: the lab said that a queue file which is zeroed goes unnamed.

Cause: of the lab, not the store. The zeros stood where a unit has the address of its extension unit; a message without
tags has the tags code 0, and a unit that says so is one that the store itself writes when the extension cannot be
written. Fix: such a unit counts as no loss; one that says the wrong tags code does.
Found by: the queue machine.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import HarmDerived, Put
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, queue_units=1, queue_ext=True)
ZEROS_FOR_AN_ADDRESS = HarmDerived(harm="zeroed", amount=12)


def test_the_tags_code_in_place_of_the_address_is_no_loss(attempt: Attempt) -> None:
    assert attempt((Put(), Put(), ZEROS_FOR_AN_ADDRESS), SETTINGS) is None


def test_another_tags_code_is_a_loss_that_the_store_names(attempt: Attempt) -> None:
    tagged = Put(properties="TAGS\x01TagA")
    assert attempt((tagged, tagged, ZEROS_FOR_AN_ADDRESS), SETTINGS) is None
