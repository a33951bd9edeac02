"""Test the progress of delivery: reading, correcting and saving it.

A save never counts copies that a crash may still lose.
"""

from pathlib import Path

import pytest

from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.io.os_files import OsFiles

FILE = "delayOffset.json"


class Offsets:
    """A table in a real directory; a flush returns `durable`, and `flushes` counts them."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.durable = durable
        self.flushes = 0
        self.path = directory / FILE
        self.table = DelayOffsets(
            ConfigFile(OsFiles(), str(self.path)), interval_ms=10_000, make_copies_durable=self._flush
        )

    def _flush(self) -> bool:
        self.flushes += 1
        return self.durable


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    here = Offsets(tmp_path)
    here.table.load()
    assert here.table.next_number(1) is None
    here.table.advance(2, 5)
    here.table.advance(1, 3)
    here.table.save()
    assert here.path.read_text() == '{\n\t"offsetTable":{1:3,2:5\n\t}\n}'
    there = Offsets(tmp_path)
    there.table.load()
    assert there.table.by_level() == {1: 3, 2: 5}
    there.table.save()
    assert (here.flushes, there.flushes) == (1, 0)


def test_nothing_is_saved_while_the_copies_are_not_durable(tmp_path: Path) -> None:
    here = Offsets(tmp_path, durable=False)
    here.table.advance(1, 1)
    for _ in range(2):
        with pytest.raises(OSError, match="not durable"):
            here.table.save()
    assert not here.path.exists()
    here.durable = True
    here.table.save()
    assert here.path.exists()


def test_a_save_without_news_writes_nothing(tmp_path: Path) -> None:
    here = Offsets(tmp_path)
    here.table.save()
    assert not here.path.exists()
    here.table.advance(1, 1)
    here.table.save()
    here.path.unlink()
    here.table.save()
    assert (here.flushes, here.path.exists()) == (1, False)


def test_what_lies_outside_of_its_queue_is_brought_back_and_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"offsetTable":{1:9,2:1,"3":4,7:1}}')
    here = Offsets(tmp_path)
    here.table.load()
    bounds = {0: (0, 5), 1: (3, 8), 2: (0, 9)}
    here.table.correct(lambda topic, queue_id: bounds.get(queue_id, (0, 0)))
    assert here.table.by_level() == {1: 5, 2: 3, 3: 4, 7: 0}
    assert [finding.code for finding in here.table.findings] == ["progress_corrected"]
    assert "3 delay offsets" in here.table.findings[0].message
    here.table.save()
    assert here.flushes == 0  # it was recovered, and is durable
    assert "{1:5,2:3,3:4,7:0" in here.path.read_text()


@pytest.mark.parametrize(
    "said",
    [
        "",
        "{",
        "[]",
        '{"offsetTable":[]}',
        '{"offsetTable":{1:-1}}',
        '{"offsetTable":{x:1}}',
        '{"offsetTable":{1:true}}',
        '{"offsetTable":{1:9223372036854775808}}',
    ],
)
def test_a_file_that_says_nothing_is_named_and_its_backup_counts(tmp_path: Path, said: str) -> None:
    (tmp_path / FILE).write_text(said)
    here = Offsets(tmp_path)
    here.table.load()
    assert here.table.by_level() == {}
    assert [finding.code for finding in here.table.findings] == ["config_file_unreadable"]
    (tmp_path / f"{FILE}.bak").write_text('{"offsetTable":{1:2}}')
    here.table.load()
    assert here.table.by_level() == {1: 2}
    assert [finding.code for finding in here.table.findings] == ["config_file_from_backup"]
