"""Judges rule on stores that no store should leave.

Symptom: on a broken store a judge ended in a traceback (exit code 1), or did not end, in place of a ruling.
Cause: judges relied on the checks of other judges: a promised log file exists, a queue file has whole units, file names
are numbers, the log is legal, the store answers, and it ends where a log of its files can end.
Fix: judges return rulings, ask the store through `observed`, and rule "unknown" where the log is none that may survive
(properties/judge/rulings.py).
Found by: reading (the first two), and tests/properties/judge/test_judges_never_raise.py.
"""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.impl.parts import Parts
from tornpage.model.operations import Clean, Flush, Operation, Put, Step
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.crashes.violations import right_recovery
from tornpage.properties.explore.interleavings.judges import promises_are_kept
from tornpage.properties.explore.interleavings.stage import Stage
from tornpage.properties.judge.evidence import Recovered, derived_on
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.log import nothing_behind_the_end
from tornpage.properties.judge.queues import extensions_hold_the_log, queues_are_right, queues_hold_the_log
from tornpage.properties.judge.rulings import judge
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT

FIRST = f"{LOG_DIRECTORY}/{0:020d}"


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as made:
        yield made


@pytest.fixture
def found(tracker: DirtyTracker) -> Recovered:
    return right_recovery(tracker)


def seen(found: Recovered, **changed: bytes) -> Recovered:
    content = {path: found.files.peek(path, 0, 1 << 40) for path in found.files.paths()}
    content.update(changed)
    files: Any = SimpleNamespace(
        paths=lambda: sorted(content), peek=lambda path, at, size: content[path][at : at + size], base=found.files.base
    )
    return replace(found, files=files)


def says(found: Recovered, **answers: object) -> Recovered:
    class Lying:
        def __getattr__(self, name: str) -> Any:
            return answers[name] if name in answers else getattr(found.store, name)

    store: Any = Lying()
    return replace(found, store=store)


def test_promised_log_file_that_is_gone_breaks_number_2(tracker: DirtyTracker) -> None:
    stage = Stage(Settings(file_bytes=1024, index=False), tracker=tracker, parts=Parts())
    for step in (Put(), Flush()):
        stage.do(0, step)
    assert promises_are_kept(stage).verdict == "holds"
    stage.files.unlink(FIRST)
    ruling = promises_are_kept(stage)
    assert (ruling.contract, ruling.verdict, ruling.found) == (2, "broken", "no file")


def test_short_queue_file_of_a_harmed_store_breaks_number_4(tracker: DirtyTracker) -> None:
    settings = Settings(file_bytes=1024, queue_units=4, index_entries=4)
    run = lockstep_of(settings, tracker=tracker)
    settled = (Step(service="reput"), Flush(), Step(service="flush-queues", after_ms=60_000))
    operations: tuple[Operation, ...] = (*[Put(body_bytes=300)] * 5, *settled, Clean(percent=88), Put(body_bytes=300))
    for operation in (*operations, *settled):
        run.run(operation)
    content = dict(derived_on(run.pair.durable(run.files)))
    name = next(name for name in sorted(content) if name.startswith("consumequeue/"))
    is_right = judge(4)(queues_are_right)
    for size in (0, 5, 30, 79):
        ruling = is_right(
            {**content, name: content[name][:size]},
            run.pair.memory.derived,
            run.log.end_offset,
            settings=settings,
            min_offset=run.log.min_offset,
            was_corrupted=True,
        )
        assert (ruling.contract, ruling.verdict) == (4, "broken"), size


@pytest.mark.parametrize("name", ["stray", "0000000000000000.bak", "0000000000000000000\u0663"])
def test_file_whose_name_is_no_offset_is_refused(found: Recovered, name: str) -> None:
    queue = queues_hold_the_log(seen(found, **{f"{ROOT}/consumequeue/T/0/{name}": b"x"}))
    assert (queue.contract, queue.verdict) == (4, "broken")
    extension = extensions_hold_the_log(seen(found, **{f"{ROOT}/consumequeue_ext/T/0/{name}": b"x"}))
    assert (extension.contract, extension.verdict) == (4, "broken")
    durable = Image(found.durable.directories, {**found.durable.files, f"{LOG_DIRECTORY}/{name}": b"x"})
    log = nothing_behind_the_end(replace(found, durable=durable))
    assert (log.contract, log.verdict) == (1, "broken")


def test_unit_is_compared_beside_an_extension_file_of_another_name(found: Recovered) -> None:
    name = f"{ROOT}/consumequeue/T/0/{0:020d}"
    flipped = b"\1" + found.files.peek(name, 1, 1 << 20)
    ruling = queues_hold_the_log(
        seen(found, **{name: flipped, f"{ROOT}/consumequeue_ext/T/0/0000000000000000.bak": b"x"})
    )
    assert (ruling.contract, ruling.verdict) == (4, "broken")


@pytest.mark.parametrize("end", [-1, 1, 1 << 63])
def test_end_that_no_log_of_these_files_has_is_ruled_on_by_every_judge(found: Recovered, end: int) -> None:
    rulings = {each.__name__: each(says(found, max_offset=end)).verdict for each in JUDGES}
    assert rulings["covers_the_floor"] == "broken"
    assert rulings["checkpoint_is_not_ahead"] == rulings["times_are_found"] == "unknown"


def test_store_that_fails_when_it_is_asked_breaks_a_number(found: Recovered) -> None:
    def fail(*_: object, **__: object) -> object:
        raise OSError("the disk is gone")

    verbs = ("min_offset_in_queue", "max_offset_in_queue", "query_offset", "queues", "delay_offsets", "get_message")
    for verb in verbs:
        rulings = [each(says(found, **{verb: fail})) for each in JUDGES]
        assert "broken" in {ruling.verdict for ruling in rulings}, verb
