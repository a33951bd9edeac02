"""Bodies, hosts and times of the messages that cases put: functions of small numbers, so that cases stay small."""

import random
from functools import lru_cache

from model.message import Message
from properties.case import Put

__all__ = ["BORN_TIMESTAMP", "body_of", "message_of"]

BORN_TIMESTAMP = 1_700_000_000_000
_HOSTS = {False: ("192.0.2.7", 50_000), True: ("2001:db8::7", 50_000)}
_STORE_HOSTS = {False: ("198.51.100.3", 10_911), True: ("2001:db8::3", 10_911)}
_WHOLE_RECORD = bytes.fromhex(
    "0000005cdaa320a700000000000000000000000000000000000000000000000000000000000000000000018bcfe56800"
    "7f0000010000c3500000018bcfe568017f00000100002a9f0000000000000000000000000000000001540000"
)
"""A complete, valid record with physical offset 0: what a body may contain without being taken for one."""


@lru_cache(maxsize=4096)
def body_of(kind: str, size_bytes: int, fill: int) -> bytes:
    """Return the body a Put asks for; equal arguments give equal bytes on every machine."""
    match kind:
        case "zeros":
            return bytes(size_bytes)
        case "record":
            return (_WHOLE_RECORD * (size_bytes // len(_WHOLE_RECORD) + 1))[: max(size_bytes, len(_WHOLE_RECORD))]
        case _:
            return random.Random(fill * 1_000_003 + size_bytes).randbytes(size_bytes)


def message_of(put: Put) -> Message:
    """Return the model's message for a Put."""
    return Message(
        topic=put.topic,
        body=body_of(put.body_kind, put.body_bytes, put.fill),
        queue_id=put.queue_id,
        properties=put.properties,
        flag=put.flag,
        sys_flag=put.sys_flag,
        born_timestamp=BORN_TIMESTAMP + put.fill,
        born_host=_HOSTS[put.born_v6],
        store_host=_STORE_HOSTS[put.store_v6],
    )
