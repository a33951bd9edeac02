"""Steps that read logs back: one of ours, and one that RocketMQ wrote."""

import json
from pathlib import Path
from time import perf_counter

from properties.scratch import scratch_directory
from tornpage.document import Outcome
from tornpage.guard import HOME
from tornpage.steps.step import Step

__all__ = ["GOLDEN", "against_rocketmq", "inspect", "write_and_read"]

WRITTEN = 200
IMAGE_CRASHES = 2
"""File operations of the recovery of each image that it is crashed at."""
GOLDEN = Path(HOME) / "tests" / "data" / "golden" / "01-plain-ascii"
"""A store written by RocketMQ 4.9.3, in a checkout of the project."""


def write_and_read(seed: int) -> Step:
    """Write a log through the public store and read it back with the judges' decoder."""
    from properties.decode.record import Record
    from properties.decode.store import iter_items, look
    from tornpage import Message, MessageStore, MessageStoreConfig

    with scratch_directory("tornpage-") as directory:
        config = MessageStoreConfig(mapped_file_size_commit_log=16384)
        bodies = [f"message {seed + number} ".encode() * (1 + number % 40) for number in range(WRITTEN)]
        with MessageStore.open(directory, config) as store:
            results = [store.put(Message("Proof", body, properties={"KEYS": f"k{n}"})) for n, body in enumerate(bodies)]
        items = [located.item for located in iter_items(look(Path(directory)))]
    records = [item for item in items if isinstance(item, Record)]
    equal = [(record.offset, record.body) for record in records] == [
        (result.offset, body) for result, body in zip(results, bodies, strict=True)
    ]
    verdict = "holds" if equal else "broken"
    sentence = f"{len(records)} records written by the store, read back by a decoder that shares no code with it"
    return Step("write and read", Outcome("write", verdict, {"records": len(records)}), sentence)


def against_rocketmq(seed: int) -> Step:
    """Recover what RocketMQ 4.9.3 left behind after crashes, and compare with what it made of it itself."""
    from tornpage.judging import golden_outcome, judged_golden_images

    name = "against Java"
    if not GOLDEN.exists():
        return Step(name, Outcome("judge", None, {}), "skipped: the stores of RocketMQ come with a checkout only")
    started = perf_counter()
    rows = judged_golden_images(
        str(GOLDEN.parent), bug="", disk="posix-strict", samples=IMAGE_CRASHES, losses=1, seed=seed
    )
    outcome = golden_outcome(rows, seed=seed, command="tornpage judge tests/data/golden --golden")
    outcome.figures = {**outcome.figures, "seconds": perf_counter() - started}
    outcome.timings = ["seconds"]
    theirs = sum(bool(row.rocketmq_numbers) for row in rows)
    kept = "keeps every promise" if outcome.verdict == "holds" else "breaks a promise"
    sentence = f"our store {kept} on {len(rows)} crash images of RocketMQ 4.9.3, which breaks one on {theirs} of them"
    return Step(name, outcome, sentence)


def inspect(seed: int) -> Step:
    """Read a store of RocketMQ 4.9.3, record for record as it said itself."""
    from properties.inspect import Query
    from tornpage.commands.inspect import inspect_outcome

    if not GOLDEN.exists():
        return Step(
            "inspect", Outcome("inspect", None, {}), "skipped: the store of RocketMQ comes with a checkout only"
        )
    outcome, _ = inspect_outcome(str(GOLDEN / "store"), "log", None, Query(limit=None))
    said = json.loads((GOLDEN / "expected.json").read_text())["steps"][1]["state"]["log"]
    rows = outcome.extra["rows"]
    equal = [{name: row[name] for name in answer} for row, answer in zip(rows, said, strict=False)] == said
    verdict = outcome.verdict if equal and len(rows) == len(said) else "broken"
    sentence = f"{len(rows)} records of RocketMQ 4.9.3 read, each as RocketMQ answered"
    return Step("inspect", Outcome("inspect", verdict, outcome.figures, findings=outcome.findings), sentence)
