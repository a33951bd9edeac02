"""The headline of a run in a few numbers; unmeasured numbers have no tile."""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.results.causes import Cause
from tornpage.reports.results.summaries import summarise_activation, summarise_discovery
from tornpage.reports.results.tables import Run
from tornpage.reports.text import counted, number

__all__ = ["Tile", "tiles_of"]


_BUGS_MIN = 5
"""The number of bugs from which their median time is shown."""
_SEARCHES = ("explore", "campaign")


@dataclass(frozen=True, slots=True)
class Tile:
    """A number, what it counts, and a note; `tone` is good, bad, unsure or empty."""

    value: str
    name: str
    said: str = ""
    tone: str = ""


def tiles_of(run: Run, causes: Sequence[Cause]) -> tuple[Tile, ...]:
    """Return the tiles of a run in reading order."""
    tiles = (
        _findings(run, causes), _steps(run), _killed(run), _states(run), _images(run), _discovered(run), _faults(run),
        _canary(run), _against(run), _seconds(run),
    )  # fmt: skip
    return tuple(tile for tile in tiles if tile is not None)


def _figure(run: Run, name: str) -> float | None:
    """Return a figure of the run, or of the crash campaign in the main job."""
    figures = run.record.figures
    return figures.get(name, figures.get(f"explore_{name}"))


def _findings(run: Run, causes: Sequence[Cause]) -> Tile:
    count = len(run.record.findings)
    if not count:
        return Tile("0", "findings", tone="good" if run.record.verdict == "holds" else "")
    grave = any(cause.severity in ("broken", "damage", "error", "harness") for cause in causes)
    said = counted(len(causes), "cause")
    return Tile(number(count), "finding" if count == 1 else "findings", said, "bad" if grave else "unsure")


def _steps(run: Run) -> Tile | None:
    if run.steps is None or not run.steps.rows:
        return None
    held = sum(row.verdict == "holds" for row in run.steps.rows)
    return Tile(f"{held} of {len(run.steps.rows)}", "steps hold", tone="good" if held == len(run.steps.rows) else "")


def _killed(run: Run) -> Tile | None:
    killed, bugs = _figure(run, "killed"), _figure(run, "bugs")
    if run.scoreboard is None or killed is None or bugs is None:
        return None
    median = _figure(run, "median_kill_s")
    said = "" if median is None or bugs < _BUGS_MIN else f"half of the bugs within {number(median)} s"
    return Tile(f"{number(killed)} of {number(bugs)}", "planted bugs killed", said, "good" if killed == bugs else "bad")


def _states(run: Run) -> Tile | None:
    states, rate = _figure(run, "states"), _figure(run, "states_per_s")
    if states is None:
        return None
    small = _figure(run, "all_states")
    if not states and small:  # a failure may be found before any history is long enough to count
        return Tile(number(small), "crash states judged", "all from short histories")
    return Tile(number(states), "crash states judged", "" if rate is None else f"{number(rate)} per second")


def _images(run: Run) -> Tile | None:
    images, recovered = _figure(run, "distinct_images"), _figure(run, "distinct_recovered")
    if images is None:
        return None
    said = "" if recovered is None else f"{number(recovered)} distinct recovered logs"
    return Tile(number(images), "distinct disk images", said)


def _discovered(run: Run) -> Tile | None:
    found = summarise_discovery(run.discovery.rows) if run.discovery else None
    if found is None:
        return None
    new = round(found.tail_recovered)
    return Tile(
        number(new), "new outcomes in the last 10 % of the run", f"and {counted(round(found.tail_images), 'new image')}"
    )


def _faults(run: Run) -> Tile | None:
    if run.activation is None or not run.activation.rows:
        return None
    activation = summarise_activation(run.activation.rows)
    silent = len(activation.never_fired)
    mattered = len(activation.rows) - silent - len(activation.never_mattered)
    said = f"{silent} never fired" if silent else "all of them fired"
    tone = "unsure" if silent or activation.never_mattered else "good"
    return Tile(f"{mattered} of {len(activation.rows)}", "faults, rules and judges had an effect", said, tone)


def _canary(run: Run) -> Tile | None:
    canaries, shards = _figure(run, "canaries"), _figure(run, "shards_complete")
    if canaries is None:
        return None
    said = "" if shards is None else f"in {counted(shards, 'shard')}"
    return Tile(number(canaries), "canaries caught", said, "good" if shards is None or canaries >= shards else "")


def _against(run: Run) -> Tile | None:
    if run.crash_images is None or not run.crash_images.rows:
        return None
    rows = run.crash_images.rows
    ours, theirs = sum(bool(row.broken) for row in rows), sum(bool(row.rocketmq_broken) for row in rows)
    tone = "good" if not ours else "bad"
    return Tile(
        f"{ours} of {len(rows)}",
        "crash images where tornpage breaks a promise",
        f"{theirs} where RocketMQ 4.9.3 does",
        tone,
    )


def _seconds(run: Run) -> Tile | None:
    seconds = run.record.figures.get("seconds")
    if seconds is None:
        return None
    if run.record.command in _SEARCHES:
        return Tile(f"{number(seconds)} s", "search time", "without start and shrinking")
    return Tile(f"{number(seconds)} s", "run time")
