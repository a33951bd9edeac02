"""Symptom: `inspect` found nothing in damaged files of queues and index.

They were zeroed units, an empty queue file, a zeroed index header and a short index file.

Cause: the list of queues looked at the last file of each; an index file without entries was not looked into, and sizes
were not compared.
Fix: the list walks the units of each queue, compares the sizes of queue files and of index files, and looks past an
index header that counts no entry.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import config, put
from tests.support.impl.stores import open_store
from tornpage.impl.message.message import Message
from tornpage.properties.decode.opening import open_view
from tornpage.properties.inspect.index import index_files
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.queues import queue_list


def queue_files(root: Path) -> list[Path]:
    return sorted((root / "consumequeue" / "T" / "0").iterdir())


def index_paths(root: Path) -> list[Path]:
    return sorted((root / "index").iterdir())


def overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def codes(root: Path) -> set[str]:
    view = open_view(root)
    documents = queue_list(view, Query()), index_files(view, Query(slots=16))
    return {finding["code"] for document in documents for finding in document["findings"]}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with open_store(tmp_path, config=config()) as found:
        for number in range(70):
            put(found, number)
            found.put(Message("T", b"k", properties={"KEYS": f"k{number}"}))
    return tmp_path


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda root: overwrite(queue_files(root)[0], 100, bytes(60)), "CQ_NOT_CONTIGUOUS"),
        (lambda root: overwrite(queue_files(root)[0], 0, bytes(20)), "CQ_NOT_CONTIGUOUS"),
        (lambda root: queue_files(root)[-1].write_bytes(b""), "CQ_SHORT_FILE"),
        (lambda root: overwrite(index_paths(root)[0], 0, bytes(40)), "IX_BROKEN"),
        (lambda root: index_paths(root)[0].write_bytes(index_paths(root)[0].read_bytes()[:300]), "IX_MIXED_SIZES"),
    ],
)
def test_it_is_named(harm: Callable[[Path], object], code: str, store: Path) -> None:
    assert codes(store) == set()
    harm(store)
    assert code in codes(store)
