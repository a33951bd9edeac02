"""Represent the results of a shard as plain rows, with a hash independent of the worker.

Each run has one row (kind `history`), and the shard has one (kind `shard`). The row of the shard means that the shard
is complete, unless its verdict is `harness`: then the worker died. `seconds` is the only measured column and the only
one left out of the hash.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import groupby
from typing import Any

from tornpage.properties.campaign.replay import signature
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.crashes.shards import SeedRun, Shard, ShardRun, enough

__all__ = ["Row", "death_row", "is_complete", "order", "result_hash", "rows_of", "that_count"]

Row = dict[str, Any]
"""One row by column name; `armed`, `fired` and `mattered` are dicts."""

MEASURED = ("seconds",)


def rows_of(run: ShardRun) -> list[Row]:
    """Return the rows of a shard; the row of the shard is the last one."""
    histories = [_history(run, history) for history in run.histories]
    totals = {name: sum(row[name] for row in histories) for name in ("states", "all_states")}
    mattered = {f"judge_{name}": 1 for name in run.red}
    verdict = "holds" if run.canary or not run.needs_canary else "vacuous"
    seconds = run.explored_s + sum(run.seconds.values())
    last = _row(run, "shard", "", verdict, canary=run.canary, mattered=mattered, seconds=seconds, **totals)
    return [*histories, last]


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
    last = enough(([_break(row) for row in some if _is_broken(row)] for some in shards.values()), failures_max)
    kept = list(shards.values())[: None if last is None else last + 1]
    return [row for some in kept for row in some]


def _is_broken(row: Row) -> bool:
    return bool(row["kind"] == "history" and row["verdict"] != "holds")


def _break(row: Row) -> Hashable:
    if row["verdict"] == "harness":
        return str(row["sentence"])
    return signature(GuaranteeBroken(row["contract"], row["sentence"]))


def result_hash(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of rows in any order, leaving out measured columns."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=order):
        said = {name: value for name, value in row.items() if name not in MEASURED}
        digest.update(json.dumps(said, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


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
