"""Test members over a crash of the broker. Spec: consumers, C3, C7; contract 17."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.consumers import World, bodies_of
from tornpage.impl.consumer.messages import ConcurrentStatus, OrderlyStatus

MakeWorld = Callable[..., World]


def image_of(here: World, directory: Path) -> Path:
    """Copy the files of the store, as a kill of the broker leaves them."""
    shutil.copytree(here.directory, directory)
    return directory


def success(*, orderly: bool) -> ConcurrentStatus | OrderlyStatus:
    return OrderlyStatus.SUCCESS if orderly else ConcurrentStatus.CONSUME_SUCCESS


def test_saved_progress_survives_a_kill(world: MakeWorld, tmp_path: Path) -> None:
    here = world()
    here.put("m0", "m1", "m2")
    here.join()
    here.settle()
    here.consume()
    here.settle(for_ms=11_000)
    here.runner.step("progress")
    here.crash("a")
    here.restart(image_of(here, tmp_path / "image"))
    here.put("m3")
    here.join("b")
    here.settle()
    assert here.consume("b") == ["m3"]


@pytest.mark.parametrize("orderly", [False, True])
def test_message_at_the_offset_of_a_lost_one_is_not_passed_over(
    world: MakeWorld, tmp_path: Path, orderly: bool
) -> None:
    """C3: the log has lost its tail.

    New messages have the offsets of those that the member has finished.
    """
    here = world()
    here.put("m0", "m1")
    here.join("a", orderly=orderly)
    here.settle()
    seen = here.consume()
    here.settle(for_ms=11_000)
    here.runner.step("progress")
    image = image_of(here, tmp_path / "image")
    here.put("lost2", "lost3")
    here.settle(for_ms=1_000)
    (running, *_) = here.take_all()
    assert bodies_of(running) == ["lost2"]
    here.restart(image)
    here.put("new2", "new3", "new4")
    here.finish(running, success(orderly=orderly))
    here.settle(for_ms=70_000)
    seen += here.consume()
    assert seen == ["m0", "m1", "new2", "new3", "new4"]


def test_restarted_broker_hands_no_running_queue_to_another_member(world: MakeWorld, tmp_path: Path) -> None:
    """C7: the old owner notices the restart within the life of a lock."""
    here = world(queues=1, owners_survive=True)
    here.put("m0", "m1")
    here.join("a", orderly=True)
    here.settle(for_ms=61_000)
    (running,) = here.take_all("a")
    here.restart(image_of(here, tmp_path / "image"))
    here.crash("a", is_noticed=False)
    here.join("b", orderly=True)
    here.settle(for_ms=59_000)
    assert here.take_all("b") == []
    here.settle(for_ms=3_000)
    assert here.consume("b") == ["m0", "m1"]
    assert bodies_of(running) == ["m0"]


def test_concurrent_members_go_on_at_once(world: MakeWorld, tmp_path: Path) -> None:
    here = world(owners_survive=True)
    here.put("m0")
    here.join()
    here.settle()
    here.consume()
    here.settle(for_ms=2_000)
    here.restart(image_of(here, tmp_path / "image"))
    here.put("m1")
    here.settle(for_ms=5_000)
    assert here.consume() in (["m1"], ["m0", "m1"])
