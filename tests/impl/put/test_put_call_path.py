"""Follow the calls of one put until its unit is in the memory of its queue.

The path begins at `MessageStore.put`. A hop is a function of the store that passes the message on: it runs while the
bytes of the record or of the unit are copied, or it wakes dispatch. Other functions (checks, encoding, counts) return
to the hops and are counted apart.
"""

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.support.impl.hand_runner import HandRunner
from tornpage import impl
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

HOPS_MAX = 20
FILES_MAX = 10
CALLS_MAX = 42
"""Calls of functions of the store in all, including those that return to the path.

Comprehensions do not count.
"""

IMPL = str(Path(impl.__file__).parent)
MESSAGE = Message("TopicTest", b"x" * 100)


class Tracer:
    """Records each call of a function of the store between two moments, in this thread."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []
        self.hops: dict[CodeType, None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(IMPL) or code.co_name.startswith("<"):
            return
        self.calls.append(code)
        if code in (OsFiles.mark.__code__, ReputMessages.note_readable.__code__):
            self._note_the_stack(frame)

    def _note_the_stack(self, frame: FrameType | None) -> None:
        way = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(IMPL):
                way.append(frame.f_code)
            frame = frame.f_back
        self.hops |= dict.fromkeys(reversed(way))


def test_one_put_takes_at_most_twenty_hops_in_ten_files(tmp_path: Path) -> None:
    runner, tracer = HandRunner(), Tracer()
    config = MessageStoreConfig(mapped_file_size_commit_log=1 << 20, message_index_enable=False)
    store = MessageStore.open(
        tmp_path, config, files=OsFiles(), clock=lambda: 1000, parts=Parts({ThreadRunner: runner})
    )
    with store:
        store.put(MESSAGE)
        runner.step("reput")  # files and queue exist
        sys.setprofile(tracer)
        try:
            store.put(MESSAGE)
            runner.step("reput")
        finally:
            sys.setprofile(None)
        assert store.max_offset_in_queue("TopicTest", 0) == 2
    last = max(at for at, code in enumerate(tracer.calls) if code is OsFiles.mark.__code__)
    assert [code for code in tracer.calls if code is MappedFile.append.__code__] == [MappedFile.append.__code__] * 2
    names = [code.co_qualname for code in tracer.hops]
    assert names[0] == "MessageStore.put"
    assert {"CommitLog.put", "ReputMessages.note_readable", "ReputMessages.step", "ConsumeQueue.append"} <= {*names}
    assert len(names) <= HOPS_MAX, names
    assert len({code.co_filename for code in tracer.hops}) <= FILES_MAX, names
    calls = [code.co_qualname for code in tracer.calls[: last + 1]]
    assert len(calls) <= CALLS_MAX, calls
