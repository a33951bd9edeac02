"""Open a killed store of tornpage in RocketMQ at the kill places of a recorded history."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.model.operations import Flush, Operation, Put, Step
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import java_settings, opened
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose
from tornpage.properties.judge.image import write_image
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import store_config
from tornpage.properties.scratch import memory_directory, scratch_directory

PUTS = 40
SETTINGS = Settings(file_bytes=4096, queue_units=4, index_slots=20, index_entries=30, disk="kill")


def kill_images(bug: str = "") -> Iterator[Image]:
    """Yield the image of each kill place of a history of 40 puts.

    Equal images in a row are yielded once.
    """
    settings = replace(SETTINGS, bug=bug)
    with choose_tracker("auto") as tracker:
        trial = lockstep_of(settings, tracker=tracker)
        for number in range(PUTS):
            operations: tuple[Operation, ...] = (
                Put(topic=f"T{number % 3}", body_bytes=300 + 40 * number, properties=f"KEYS\x01k{number}"),
                Step(service="reput"),
            )
            for operation in (*operations, *((Flush(),) if number % 10 == 9 else ())):
                trial.run(operation)
        state = DiskState(trial.files.base, disk="kill")
        applied, before = 0, None
        for position in [*trial.files.events, len(trial.files.journal)]:
            state.apply_all(trial.files.journal[applied:position])
            applied = position
            image = compose(state, {})
            if before is None or (image.files, image.directories) != (before.files, before.directories):
                yield image
            before = image


def refused(release: Release, images: Iterator[Image]) -> tuple[int, int]:
    """Return how many images there are, and how many RocketMQ does not load."""
    count = refusals = 0
    settings = java_settings(store_config(SETTINGS))
    with Process(release) as process, scratch_directory("tornpage-kill-places-", below=memory_directory()) as work:
        for image in images:
            directory = Path(work) / str(count)
            write_image(image, directory)
            with opened(process, str(directory), settings) as store:
                refusals += not (store.loaded and store.dispatched)
            count += 1
    return count, refusals


def test_every_twentieth_kill_place_opens_in_rocketmq(release: Release) -> None:
    images = [image for number, image in enumerate(kill_images()) if number % 20 == 0]
    count, refusals = refused(release, iter(images))
    assert count > 10
    assert refusals == 0


@pytest.mark.deep
def test_every_kill_place_opens_in_rocketmq(release: Release) -> None:
    count, refusals = refused(release, kill_images())
    assert count > 300
    assert refusals == 0


@pytest.mark.deep
def test_some_kill_places_do_not_if_files_are_made_in_place(release: Release) -> None:
    count, refusals = refused(release, kill_images("made-in-place"))
    assert count > 300
    assert refusals > 0
