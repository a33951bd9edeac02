"""Hold a store open in a process of its own, with real threads and a real clock.

The first line of its input is an object with `directory`, `settings` (those of a case) and `bug`. The answer has what
the store serves, or that it was refused. Each further line is a put (its fields as in a case) or `close`, and is
answered after it has returned. The process is not told to end but killed.
"""

import json
import sys
import time
from typing import IO, Any

from isal.isal_zlib import crc32

from tornpage.impl.errors import StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.model.operations import Put
from tornpage.model.payloads import message_of
from tornpage.properties.planted import parts_of
from tornpage.properties.program.bit_maps import filters_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import store_config, store_message

__all__ = ["hold"]

_COMPILER = "numba"


def hold(lines: IO[str], answers: IO[str], components: Parts | None = None) -> None:
    """Do what the lines say; `components`, if given, replace the parts of the bug."""

    def answer(**said: Any) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    asked = json.loads(lines.readline())
    settings = Settings(**asked["settings"], bug=asked["bug"])
    try:
        store = MessageStore.open(
            asked["directory"],
            store_config(settings),
            files=OsFiles(),
            clock=lambda: time.time_ns() // 1_000_000,
            parts=components or parts_of(settings.bug),
            filter_bit_map=filters_of(settings),
        )
    except StoreInUse as error:
        answer(refused=str(error))
        return
    served = [[message.offset, crc32(message.body)] for message in store.messages()]
    answer(serves=served, read_only=store.read_only_reason, compiled=_COMPILER in sys.modules)
    for line in lines:
        asked = json.loads(line)
        if asked == "close":
            store.close()
            answer(read_only=store.read_only_reason)
            return
        message = store_message(message_of(Put(**asked)))
        result = store.put(message)
        answer(status=result.status.value, put=[result.offset, crc32(message.body or b"")])


if __name__ == "__main__":
    hold(sys.stdin, sys.stdout)
