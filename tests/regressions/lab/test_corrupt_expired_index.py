"""Corruption of an index of expired messages is no loss.

Symptom: the crash lab reported that no finding names a corrupt index file, where nothing in it was lost.
Cause: a mistake of the lab. It counted all bytes of a queue or index file as promised. These included messages before
the begin of the log, and the seconds of the first entry of a file, which count from the file before and are not used.
Fix: the lab looks for an offset that the log still has, and leaves those seconds out.
Found by: a campaign, and `tornpage check --examples 1280 --seed 81`.
"""

import struct
from dataclasses import replace

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import Clean, Flush, HarmDerived, Put, Step
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.lockstep.corrupt_images import corrupted_image
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT

KEYED, PLAIN = Put(properties="KEYS\x01k", body_bytes=300), Put(body_bytes=300)
SETTINGS = Settings(file_bytes=1024)
REPUT, FLUSH_QUEUES = Step(service="reput"), Step(service="flush-queues", after_ms=60_000)
TORN = HarmDerived(file="index", harm="torn")


def test_what_nobody_can_ask_for_is_no_loss(attempt: Attempt) -> None:
    """The only key belongs to a message whose log file has gone."""
    program = (KEYED, *(PLAIN,) * 5, REPUT, Step(service="flush", after_ms=60_000), FLUSH_QUEUES, Clean(percent=88))
    assert attempt((*program, TORN), SETTINGS) is None


@pytest.mark.parametrize(("min_offset", "is_noticed"), [(0, True), (1024, True), (1025, False)])
def test_a_loss_is_an_entry_that_the_log_still_has(min_offset: int, is_noticed: bool) -> None:
    entry = struct.pack(">iqii", 7, 1024, 0, 0)
    path = f"{ROOT}/index/20231114221331022"
    image = Image(EMPTY_DISK.directories, {path: bytes(range(1, 41)) + bytes(3 * 4 + 20) + entry + bytes(20)})
    harmed = corrupted_image(TORN, image, EMPTY_DISK, min_offset=min_offset, index_slots=3)
    assert harmed is not None
    assert harmed.is_noticed is is_noticed


def test_seconds_that_count_from_a_file_that_is_gone_are_no_loss(attempt: Attempt) -> None:
    """The index file before the zeroed one has expired.

    The zeros begin after the offset of its only entry.
    """
    program = (KEYED, PLAIN, replace(KEYED, advance_ms=3_600_000), REPUT, Flush(), Clean(after_hours=73, manual=True))
    for byte in range(84, 92):
        harm = HarmDerived(file="index", harm="zeroed", amount=byte)
        assert attempt((*program, harm), Settings(file_bytes=1024, index_entries=2)) is None
