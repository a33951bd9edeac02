"""What producers put, as values: messages, batches, and two producers at the same time."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["BatchDefect", "Concurrent", "Member", "Put", "PutBatch"]


@dataclass(frozen=True, slots=True)
class Put:
    """Put a message. The body has `body_bytes` bytes drawn from `fill`, hides a whole record, is zero, or is None.

    With `sums to zero` it is drawn too, but for the bytes that give its record the checksum 0 where it comes to lie.

    Properties are the string `properties`, or the mapping of `pairs` when there are any. `later` puts it with
    `put_async`, so that its answer comes with a Step; `born_now` leaves the born time to the store's clock.
    """

    topic: str = "T"
    queue_id: int = 0
    body_bytes: int = 0
    fill: int = 0
    body_kind: Literal["random", "record", "zeros", "none", "sums to zero"] = "random"
    properties: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    sys_flag: int = 0
    flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put"] = "put"


@dataclass(frozen=True, slots=True)
class Member:
    """One message of a batch; its body has `body_bytes` bytes drawn from `fill`."""

    body_bytes: int = 0
    fill: int = 0
    properties: str = ""
    flag: int = 0


BatchDefect = Literal["", "no body", "empty", "cut short", "wrong total", "negative length", "bytes left over"]


@dataclass(frozen=True, slots=True)
class PutBatch:
    """Put a batch; its client body is well-formed but for `defect`."""

    topic: str = "T"
    queue_id: int = 0
    members: tuple[Member, ...] = ()
    properties: str = ""
    sys_flag: int = 0
    born_v6: bool = False
    store_v6: bool = False
    defect: BatchDefect = ""
    later: bool = False
    born_now: bool = False
    advance_ms: int = 1
    op: Literal["put_batch"] = "put_batch"


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Two producers put at the same time; `schedule` says who goes on at each yield point (properties/scheduler).

    `jump_step` is the yield point at which the clock jumps by `jump_ms`; 0 is none. Born times are always given. In a
    store with a pool that `commits`, the commit service takes a step behind the puts of the first, and the second ends
    with a flush.
    """

    first: tuple[Put, ...] = ()
    second: tuple[Put, ...] = ()
    schedule: tuple[int, ...] = ()
    jump_step: int = 0
    jump_ms: int = 0
    commits: bool = False
    op: Literal["concurrent"] = "concurrent"
