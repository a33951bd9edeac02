"""A planned failure met one of two overlapping syncs, as in no order of whole calls.

Symptom: `explore interleavings` said of the directories of queues that "no order of whole calls of the part tree
explains its answers and its end state". One sync had failed, and the other one had not.
Cause: a sync makes the root durable before it notes that. Another sync then makes the root durable once more, and met
the planned failure. The answers of both were compared with those of whole calls.
Fix: a planned failure is no answer. A sync that returns without it still has to leave its names durable.
"""

import pytest

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.interleavings.programs.tables import TreeBench


def test_a_planned_failure_of_a_sync_is_no_answer() -> None:
    bench = TreeBench()
    bench.make(1, 0)
    bench.fail_sync(1)
    bench.sync(1, 0)
    assert bench.state() == ["/s", "/s/t1", "/s/t1/0"]


def test_a_sync_that_hides_its_failure_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = TreeBench()
    bench.make(1, 0)
    monkeypatch.setattr(bench.disk, "sync_directory", lambda path: None)
    with pytest.raises(GuaranteeBroken, match="before a name of its path is durable"):
        bench.sync(1, 0)


def test_a_directory_that_is_missing_is_an_error() -> None:
    bench = TreeBench()
    bench.made.add("/s/t1/0")
    with pytest.raises(FileNotFoundError):
        bench.sync(1, 0)
