"""A bench of queue files noted a promise for a file that was made after the flush.

Symptom: `explore interleavings` said that a queue file "was reported as durable to 40", with no file or zeros found.
Cause: a deletion and an append came between the end of a flush and the note of what it had made durable.
"""

import pytest

from tornpage.properties.explore.interleavings.programs.files import QueueFilesBench


def test_a_flush_promises_nothing_of_files_made_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = QueueFilesBench()
    bench.append(2)
    flush = bench.files.flush

    def flush_then_lose_the_turn() -> int:
        end = flush()
        bench.delete()
        bench.append(2)
        return end

    monkeypatch.setattr(bench.files, "flush", flush_then_lose_the_turn)
    bench.flush()
    assert not bench.promises
    bench.require_promises()


def test_a_flush_promises_what_it_made_durable() -> None:
    bench = QueueFilesBench()
    bench.append(2)
    bench.flush()
    assert [size_bytes for _, _, size_bytes in bench.promises] == [40]
    bench.require_promises()
