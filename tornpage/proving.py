"""The steps of the main job. Each returns an outcome; together they are one verdict."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tornpage.document import Outcome
from tornpage.guard import HOME, python_command

__all__ = ["STEPS", "Step", "combined"]

CANARY_BUG = "no-erase-after-cut"
KILLS = 200
EXPLORE_STATES = 10_000
CHECK_EXAMPLES = 150
WRITTEN = 200
GOLDEN = Path(HOME) / "tests" / "data" / "golden" / "01-plain-ascii"
"""A store written by RocketMQ 4.9.3, in a checkout of the project."""


@dataclass(frozen=True)
class Step:
    """One step's name, outcome and the sentence for the table."""

    name: str
    outcome: Outcome
    sentence: str


def kills(seed: int) -> Step:
    """Kill real writers. First of all, while the process has no thread."""
    from tornpage.kills import kill_outcome

    outcome, _ = kill_outcome(KILLS, seed=seed, directory=None, file_bytes=4096, bug="")
    figures = outcome.figures
    sentence = f"{figures['killed']} writers killed by SIGKILL at {figures['distinct_points']} distinct steps"
    return Step("kills", outcome, sentence)


def check(seed: int) -> Step:
    """Compare store and model."""
    from tornpage.commands.check import check_outcome

    outcome, text = check_outcome(CHECK_EXAMPLES, profile="quick", bug="", seed=seed, out=None)
    return Step("check", outcome, text.splitlines()[0])


def explore(seed: int) -> Step:
    """Explore crash states."""
    from tornpage.commands.explore import campaign_outcome

    outcome, _ = campaign_outcome(
        EXPLORE_STATES, None, file_bytes=16384, disk="posix-strict", bug="", seed=seed, out=None
    )
    figures = outcome.figures
    sentence = f"{figures.get('states', 0):,} crash states, {figures.get('distinct_images', 0):,} distinct images"
    return Step("explore", outcome, sentence)


def canary(seed: int) -> Step:
    """Find a planted bug, shrink it, and run it again from its token in another process."""
    from tornpage.commands.explore import campaign_outcome

    found, _ = campaign_outcome(None, 30, file_bytes=16384, disk="posix-strict", bug=CANARY_BUG, seed=seed, out=None)
    if found.verdict != "broken":
        return Step("canary", Outcome("canary", "vacuous", found.figures), f"{CANARY_BUG} was not found")
    failure = found.findings[-1]
    again = subprocess.run(
        python_command("tornpage", "replay", failure["token"], "--json"), capture_output=True, text=True, check=False
    )
    replayed = json.loads(again.stdout) if again.returncode == 1 else {}
    same = [finding["sentence"] for finding in replayed.get("findings", ())] == [failure["sentence"]]
    figures = {"operations": len(failure["program"]), "states_to_find": found.figures["all_states"]}
    sentence = (
        f"{CANARY_BUG} found after {figures['states_to_find']} states, shrunk to {figures['operations']} operations, "
        + ("replayed by token in another process" if same else "but its token does not replay")
    )
    return Step("canary", Outcome("canary", "holds" if same else "harness", figures), sentence)


def write_and_read(seed: int) -> Step:
    """Write a log through the public store and read it back with the judges' decoder."""
    from properties.decode.record import Record
    from properties.decode.store import iter_items, look
    from tornpage import Message, MessageStore, MessageStoreConfig

    with tempfile.TemporaryDirectory(prefix="tornpage-") as directory:
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


def inspect(seed: int) -> Step:
    """Read a store of RocketMQ 4.9.3, record for record as it said itself."""
    from tornpage.commands.inspect import inspect_outcome

    if not GOLDEN.exists():
        return Step(
            "inspect", Outcome("inspect", None, {}), "skipped: the store of RocketMQ comes with a checkout only"
        )
    outcome, _ = inspect_outcome(str(GOLDEN / "store"), limit=None, offset=0, file_bytes=None)
    said = json.loads((GOLDEN / "expected.json").read_text())["steps"][1]["state"]["log"]
    rows = outcome.extra["rows"]
    equal = [{name: row[name] for name in answer} for row, answer in zip(rows, said, strict=False)] == said
    verdict = outcome.verdict if equal and len(rows) == len(said) else "broken"
    sentence = f"{len(rows)} records of RocketMQ 4.9.3 read, each as RocketMQ answered"
    return Step("inspect", Outcome("inspect", verdict, outcome.figures, findings=outcome.findings), sentence)


STEPS = (kills, check, explore, canary, write_and_read, inspect)
"""In order; each is called with the seed."""


def combined(steps: list[Step], *, seed: int, seconds: float, interrupted: bool) -> Outcome:
    """Return the outcome of all steps: the worst verdict, figures under the step's name."""
    verdicts = [step.outcome.verdict for step in steps]
    order = ("harness", "broken", "vacuous", "unknown")
    worst = next((verdict for verdict in order if verdict in verdicts), "holds")
    figures: dict[str, float | int] = {"seconds": seconds}
    timings = ["seconds"]
    for step in steps:
        prefix = step.name.replace(" ", "_")
        figures |= {f"{prefix}_{name}": figure for name, figure in step.outcome.figures.items()}
        timings += [f"{prefix}_{name}" for name in step.outcome.timings]
    findings = [{"step": step.name, **finding} for step in steps for finding in step.outcome.findings]
    return Outcome("prove", worst, figures, timings, findings, seed=seed, interrupted=interrupted)
