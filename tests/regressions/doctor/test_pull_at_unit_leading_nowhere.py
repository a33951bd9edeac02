"""Symptom: a consumer of a damaged, read-only store pulled the same queue offset for ever.

Cause: a unit that points past the readable end ends a pull, for its record may come. The log of a damaged store does
not grow.
Fix: in a store that was opened damaged such a unit is passed with MESSAGE_WAS_REMOVING.
"""

import struct
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import change, config, filled
from tests.support.impl.stores import open_store
from tornpage.impl.message.message import GetStatus


@pytest.mark.parametrize("offset", [1 << 20, (1 << 63) - 1, 0x7FFF_FFFF, 1])
@pytest.mark.parametrize("number", [0, 4, 8])
def test_every_other_message_comes(number: int, offset: int, tmp_path: Path) -> None:
    results = filled(tmp_path)
    bad = results[2].offset
    change(tmp_path, bad + 88, b"rot")
    queue_file = next((tmp_path / "consumequeue" / "T" / "0").iterdir())
    with open(queue_file, "r+b") as file:
        file.seek(20 * number)
        file.write(struct.pack(">q", offset))
    with open_store(tmp_path, config=config()) as store:
        assert store.read_only_reason is not None
        at, statuses, found = 0, [], []
        while at < store.max_offset_in_queue("T", 0):
            with store.get_message("T", 0, at, max_msg_nums=1) as result:
                assert result.next_begin_offset > at
                statuses.append(result.status)
                found += [message.message().body for message in result.messages]
                at = result.next_begin_offset
        assert found == [f"{each:03d}".encode() for each in range(9) if each not in (2, number)]
        assert set(statuses) <= {GetStatus.FOUND, GetStatus.MESSAGE_WAS_REMOVING}
