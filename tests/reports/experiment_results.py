"""Results of experiments as commands write them, one for each kind of chart."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "table_of", "write_experiments"]

_X = {"column": "rate", "label": "rate", "unit": "messages/s", "scale": "log"}
_NAMES = {"column": "policy", "label": "policy", "unit": "", "scale": "names"}
_Y = {"column": "late_us", "label": "late, p99", "unit": "µs", "scale": "log"}
_RATES = (10.0, 100.0, 1_000.0)
_POLICIES = ("sync", "async 500 ms", "pool, async 500 ms")
KINDS: dict[str, dict[str, Any]] = {
    "lines": {
        "kind": "lines",
        "x": _X,
        "panels": [_Y, {**_Y, "column": "lost", "unit": "messages"}],
        "series": "policy",
    },
    "points": {"kind": "points", "x": _Y, "panels": [{**_Y, "column": "lost"}], "series": "policy", "label": "policy"},
    "bars": {
        "kind": "bars",
        "x": {**_Y, "scale": "linear"},
        "panels": [_NAMES],
        "panel_by": "rate",
        "low": "low",
        "high": "high",
        "range_label": "measured",
    },
    "shares": {
        "kind": "shares",
        "x": {**_Y, "scale": "linear"},
        "panels": [{**_NAMES, "column": "rate"}],
        "series": "policy",
    },
    "cells": {"kind": "cells", "x": _X, "panels": [{**_Y, "column": "every_ms"}], "value": {**_Y, "scale": "linear"}},
}


def table_of(kind: str, *, policies: tuple[str, ...] = _POLICIES, **about: Any) -> dict[str, Any]:
    """Return the table of an experiment drawn as `kind`.

    The last policy lost nothing, and some cells are empty.
    """
    rows = [
        {
            "policy": policy,
            "rate": rate,
            "every_ms": 10.0 * (number + 1),
            "late_us": 3.0 * (number + 1) * rate,
            "lost": 0.0 if number == len(policies) - 1 else rate / 7,
            "low": 2.0 * rate,
            "high": None if number else 4.0 * rate,
        }
        for number, policy in enumerate(policies)
        for rate in _RATES
    ]
    experiment = {
        "name": f"{kind}-chart",
        "place": list(KINDS).index(kind),
        "title": f"A chart of {kind}",
        "question": "What is it?",
        "setting": "Open load.",
        "answer": "It is this: 17.",
        "is_measured": kind == "points",
        "chart": deepcopy(KINDS[kind]),
        "overlays": [{"label": "formula, a", "x": [10.0, 1_000.0], "y": [20.0, 50.0], "panel": 0}],
    }
    caption = {
        "source": "simulation, device vm-ext4 (measured)",
        "seed": 4,
        "command": f"tornpage sim experiment {kind}",
    }
    return {"rows": rows, "caption": caption, "experiment": {**experiment, **about}}


def write_experiments(directory: Path, *tables: dict[str, Any], interrupted: bool = False) -> Path:
    """Write a run directory that holds these tables, or one of each kind."""
    (directory / "tables").mkdir(parents=True)
    run = {
        "schema": 1,
        "command": "sim experiment",
        "verdict": None,
        "figures": {"experiments": 5},
        "timings": [],
        "findings": [],
        "seed": 4,
        "version": "0.1.0",
        "arguments": "sim experiment --all --seed 4",
        "machine": {"cpus": 2},
        "started": "2026-11-22T11:00:00Z",
        "interrupted": interrupted,
    }
    (directory / "run.json").write_text(json.dumps(run))
    for table in tables or [table_of(kind) for kind in KINDS]:
        path = directory / "tables" / f"experiment-{table['experiment']['name']}.json"
        path.write_text(json.dumps(table))
    return directory
