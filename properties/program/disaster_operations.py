"""What crashes and damage leave of a store, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from properties.disk.choosing import Others
from properties.disk.images import Choice

__all__ = ["Crash", "Damage", "DamageKind", "DerivedFile", "DerivedHarm", "HarmDerived"]

DamageKind = Literal["truncate", "flip", "misdirect", "zero_page", "stale_page", "misdirect_page", "missing"]
DerivedFile = Literal["queue", "index", "extension", "checkpoint", "floor", "derived-floor", "marker"]
DerivedHarm = Literal["lost", "zeroed", "torn", "stale", "misdirected", "resized", "stray"]


@dataclass(frozen=True, slots=True)
class Crash:
    """Power loss, or kill of the process, and recovery. `back` events before the answer of the last verb; 0 is at rest.

    `survived` names facts, and the version of each that reached the disk: 0 is the one of its last sync. What it does
    not name is as `others` says: lost, or kept in its latest version (in a kill everything is). The recovery begins
    `later_ms` after the last verb.
    """

    kill: bool = False
    back: int = 0
    survived: Mapping[str, Choice] = field(default_factory=dict)
    others: Others = "lost"
    later_ms: int = 0
    op: Literal["crash"] = "crash"


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage the closed store outside the crash model, then open it: it must say so and serve only what verifies.

    `truncate` cuts the newest log file at `amount` (modulo its size), `flip` flips bit `amount` of record `record`,
    `misdirect` writes another record of equal size over record `record`. The page in which record `record` begins is
    zeros after `zero_page`, holds one of its earlier contents after `stale_page`, and another page of the log after
    `misdirect_page`, number `amount` of those there are (modulo). `missing` takes the file of record `record` away.

    A file `beside` the log is harmed as well (`beside_harm`, as in `HarmDerived`): of its kind number `record`, at byte
    `amount`. A store that opens read-only makes nothing anew, so that its readers meet what is wrong there.
    """

    kind: DamageKind = "flip"
    record: int = 0
    amount: int = 0
    beside: Literal["", "queue", "index"] = ""
    beside_harm: DerivedHarm = "misdirected"
    op: Literal["damage"] = "damage"


@dataclass(frozen=True, slots=True)
class HarmDerived:
    """Harm a file of the closed store that the log can do without, then open it: everything is there, read-write.

    Of the files of that kind it is number `number` (modulo). It is `lost`, `zeroed` from byte `amount` on (modulo its
    size), `torn` (a sector of it is zero, the one with byte `amount`), `stale` (as the last recovery found it, or as it
    was made), `misdirected` (the page with byte `amount` holds a page of another file), `resized` to `amount` bytes, or
    a `stray` file lies beside it. A marker can only be stale: there, although the exit was clean.
    """

    file: DerivedFile = "queue"
    harm: DerivedHarm = "lost"
    number: int = 0
    amount: int = 0
    op: Literal["harm_derived"] = "harm_derived"
