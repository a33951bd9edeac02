"""Represent the results of a shard as plain rows, with a hash independent of the worker.

Each run has one row (kind `history`), and the shard has one (kind `shard`). The row of the shard means that the shard
is complete, unless its verdict is `harness`: then the worker died. `seconds` is the only measured column and the only
one left out of the hash.

A turn of a shard that is not complete ends with a row of the kind `page` instead. It has the sums of all turns so far
and is no part of the result: `progress_of` makes the `ShardProgress` of it and of the rows that do not hold.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import groupby
from typing import Any

from tornpage.properties.campaign.replay import signature
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.crashes.shards import SeedRun, Shard, ShardProgress, ShardRun, enough

__all__ = [
    "Row",
    "RowDigest",
    "break_of",
    "combined_hash",
    "death_row",
    "is_complete",
    "order",
    "progress_of",
    "result_hash",
    "rows_of",
    "that_count",
]

Row = dict[str, Any]
"""One row by column name; `armed`, `fired` and `mattered` are dicts."""

MEASURED = ("seconds",)


def rows_of(run: ShardRun) -> list[Row]:
    """Return the rows of a shard or of one turn; that of the shard or page is last."""
    histories = [_history(run, history) for history in run.histories]
    mattered = {f"judge_{name}": 1 for name in run.red}
    totals = {"states": run.states, "all_states": run.all_states, "seconds": run.spent_s}
    if run.paused:
        hit = dict(run.progress().hit)
        last = _row(run, "page", "", "holds", canary=run.canary, mattered=mattered, fired=hit, **totals)
    else:
        verdict = "holds" if run.canary or not run.needs_canary else "vacuous"
        last = _row(run, "shard", "", verdict, canary=run.canary, mattered=mattered, **totals)
    return [*histories, last]


def progress_of(page: Row, runs: int, broken: Iterable[Row]) -> ShardProgress:
    """Return the progress of a shard after `runs` runs.

    `page` is the last row of its last page. `broken` are the rows of all its runs that do not hold.
    """
    return ShardProgress(
        runs=runs,
        states=page["states"],
        all_states=page["all_states"],
        hit=page["fired"],
        breaks=tuple(map(break_of, broken)),
        canary=page["canary"],
        red=tuple(name.removeprefix("judge_") for name in page["mattered"]),
        seconds=page["seconds"],
    )


def death_row(shard: Shard, how: str) -> Row:
    """Return the only row of a shard whose worker died."""
    first = next(shard.run_seeds())
    sentence = f"the worker of shard {shard.number} died ({how}): nothing is known of its runs from {first} on"
    nothing = {"states": 0, "all_states": 0, "seconds": 0.0}
    return _row(ShardRun(shard), "shard", "", "harness", sentence=sentence, **nothing)


def is_complete(row: Mapping[str, Any]) -> bool:
    """Return whether this row marks the rows of a shard as complete."""
    return bool(row["kind"] == "shard" and row["verdict"] != "harness")


def that_count(rows: Iterable[Row], failures_max: int) -> list[Row]:
    """Return the rows of the shards up to the one with enough failures, or all, in order."""
    ordered = sorted(rows, key=order)
    shards = {number: list(some) for number, some in groupby(ordered, key=lambda row: int(row["shard"]))}
    last = enough(([break_of(row) for row in some if _is_broken(row)] for some in shards.values()), failures_max)
    kept = list(shards.values())[: None if last is None else last + 1]
    return [row for some in kept for row in some]


def _is_broken(row: Row) -> bool:
    return bool(row["kind"] == "history" and row["verdict"] != "holds")


def break_of(row: Row) -> Hashable:
    """Return what a run broke, by its row; equal values are the same failure."""
    if row["verdict"] == "harness":
        return str(row["sentence"])
    return signature(GuaranteeBroken(row["contract"], row["sentence"]))


class RowDigest:
    """Digest the rows of one shard, which are added in order, without their measured columns."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, row: Row) -> None:
        """Add a row."""
        kept = {name: value for name, value in row.items() if name not in MEASURED}
        self._hash.update(json.dumps(kept, sort_keys=True).encode() + b"\n")

    def digest(self) -> bytes:
        """Return the SHA-256."""
        return self._hash.digest()


def combined_hash(digests: Iterable[bytes]) -> str:
    """Return the SHA-256 of the digests of shards, in the order of the shards."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def result_hash(rows: Iterable[Row]) -> str:
    """Return the hash of rows in any order: the SHA-256 of the digests of their shards."""
    digests: dict[int, RowDigest] = {}
    for row in sorted(rows, key=order):
        digests.setdefault(row["shard"], RowDigest()).add(row)
    return combined_hash(digest.digest() for digest in digests.values())


def order(row: Mapping[str, Any]) -> tuple[int, bool, int]:
    """Return the sort key: shards by number, runs in order, the row of the shard last."""
    return row["shard"], row["kind"] == "shard", int(row["seed"].partition(":")[2] or 0)


def _history(run: ShardRun, history: SeedRun) -> Row:
    tally, failure = history.tally, history.failure
    told: Row = {}
    if history.fault:
        told = {"sentence": history.fault}
    elif failure is not None:
        broken = failure.broken
        told = {"contract": broken.contract, "sentence": broken.sentence, "token": failure.case.token()}
    return _row(
        run,
        "history",
        history.seed,
        history.verdict,
        mix=history.mix,
        levels="".join(tally.levels),
        states=tally.states,
        all_states=tally.all_states,
        images=len(tally.images),
        images_hash=_hash_of(tally.images),
        recovered=len(tally.recovered),
        recovered_hash=_hash_of(tally.recovered),
        proven_legal=tally.proven_legal,
        repeated=history.repeated,
        armed=_counts(tally.enabled),
        fired=_counts(tally.hit),
        mattered=_counts(tally.effective),
        seconds=history.seconds,
        **told,
    )


def _row(run: ShardRun, kind: str, run_seed: str, verdict: str, **told: Any) -> Row:
    nothing: Row = {
        "mix": "", "levels": "", "images": None,
        "images_hash": None, "recovered": None, "recovered_hash": None, "proven_legal": None,
        "repeated": False, "contract": None, "sentence": None, "token": None, "canary": None, "armed": {}, "fired": {},
        "mattered": {},
    }  # fmt: skip
    named = {"kind": kind, "shard": run.shard.number, "seed": run_seed, "verdict": verdict}
    return {**nothing, **named, **told}


def _counts(counter: Counter[str]) -> dict[str, int]:
    """Return the counts that are not 0. A counter may hold a 0 after a lookup."""
    return {name: count for name, count in counter.items() if count}


def _hash_of(hashes: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(hashes))).hexdigest()
