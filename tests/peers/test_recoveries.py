"""Test recoveries by one request: all modes answer alike, and as single requests do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tornpage.peers.both_stores import BothStores, expected_of
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.our_histories import OurHistory, OurState
from tornpage.peers.own_histories import OwnState
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.peers.rocketmq.store import MODES, Mode, Recovery, begin_recoveries, java_settings, opened, recoveries
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.image import AcknowledgedRecord, Truth, write_image
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import store_config

SAMPLE = 4


@pytest.fixture(scope="module")
def process(release: Release) -> Iterator[Process]:
    with Process(release, Limits(answer_s=60)) as made:
        yield made


@pytest.fixture(scope="module")
def crashed() -> tuple[OurHistory, list[OurState]]:
    with choose_tracker("auto") as tracker:
        history = OurHistory(Settings(disk="journal"), seed=3, number=1, every=40, tracker=tracker)
        return history, list(history.states())[:SAMPLE]


def recovered(
    process: Process, crashed: tuple[OurHistory, list[OurState]], number: int, directory: Path, *, mode: Mode
) -> Recovery:
    history, states = crashed
    write_image(states[number].image, directory)
    keys = expected_of(history.trial, states[number].after, 0).keys
    begin_recoveries(process, str(directory), java_settings(store_config(history.settings)), keys, mode=mode, times=1)
    (made,) = recoveries(process)
    return made


@pytest.mark.parametrize("number", range(SAMPLE))
def test_all_modes_answer_alike_on_a_sample_of_crash_images(
    process: Process, crashed: tuple[OurHistory, list[OurState]], number: int, tmp_path: Path
) -> None:
    found = {mode: recovered(process, crashed, number, tmp_path / mode, mode=mode) for mode in MODES}
    assert found["light"].loaded
    assert found["light"].everything is not None
    assert any(messages for _, messages, _ in found["light"].everything.queues)
    assert any(found["light"].everything.found)
    assert found["light"] == found["quick"] == found["stock"]
    assert process.starts == 1


def test_one_request_answers_as_single_requests(
    process: Process, crashed: tuple[OurHistory, list[OurState]], tmp_path: Path
) -> None:
    history, states = crashed
    together = recovered(process, crashed, 0, tmp_path / "together", mode="light")
    write_image(states[0].image, tmp_path / "single")
    keys = expected_of(history.trial, states[0].after, 0).keys
    with opened(process, str(tmp_path / "single"), java_settings(store_config(history.settings))) as store:
        said = store.everything(keys)
    assert together.everything is not None
    assert together.everything.log == said.log
    assert together.everything.found == said.found
    for (queue, messages, gaps), (wanted, each, missing) in zip(together.everything.queues, said.queues, strict=True):
        assert (queue, gaps) == (wanted, missing)
        assert [(m.place, m.offset, m.size_bytes, m.record_sha256) for m in messages] == [
            (m.place, m.offset, m.size_bytes, m.record_sha256) for m in each
        ]


def test_a_refused_directory_is_the_last_recovery(process: Process, tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "commitlog" / f"{0:020d}").write_bytes(b"short")
    begin_recoveries(process, str(tmp_path / "store"), {"mappedFileSizeCommitLog": 16384}, [], times=2)
    (made,) = recoveries(process)
    assert (made.loaded, made.reason, made.everything) == (False, "load() returned false", None)


def test_an_error_of_the_driver_is_no_answer_of_the_store(process: Process, tmp_path: Path) -> None:
    begin_recoveries(process, str(tmp_path), {"noSuchSetting": 7}, [])
    with pytest.raises(PeerUnavailable, match=r"the driver does not fit RocketMQ .*setNoSuchSetting"):
        recoveries(process)


class NeverAsked:
    """A process that must not be asked."""

    def begin(self, verb: str, **arguments: Any) -> None:
        raise AssertionError(verb)


def test_an_equal_image_with_an_equal_truth_is_judged_once(tmp_path: Path) -> None:
    """An empty image is judged without the stores. The second one is known."""
    record = AcknowledgedRecord(0, 5, "", flushed=True)
    truth = Truth({0: record}, power_loss=True, has_copies=False)
    state = OwnState(Image(frozenset({"/"}), {}), truth, puts=1, floor=5)
    stores = BothStores(NeverAsked(), tmp_path)  # type: ignore[arg-type]
    first, second = (stores.compare_own(state, bug="") for _ in range(2))
    assert (first.verdict.peer, first.verdict.is_new, len(first.rulings)) == ((2,), True, 1)
    assert (second.verdict.peer, second.verdict.is_new, second.rulings) == ((2,), False, ())
    stores.begin_history()
    assert stores.compare_own(state, bug="").verdict.is_new
