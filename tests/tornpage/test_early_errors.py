"""Test that a mistake is answered before a command loads what it would work with.

Errors took seconds of processor time, since commands imported the store, the planted bugs or the plots first.
"""

import subprocess
import sys

import pytest

HEAVY = (
    "hypothesis", "matplotlib", "numba", "numpy", "pyspark", "tornpage.impl.store", "tornpage.properties.planted",
    "tornpage.properties.judge.judges",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--help", ""),
        ("--wrong", "No such option"),
        ("expplore", "Did you mean explore"),
        ("explore --wrong", "No such option"),
        ("audit /nope", "no such directory"),
        ("judge /nope", "no such directory"),
        ("inspect /nope", "no such directory"),
        ("export /nope", "no such directory"),
        ("report /nope", "is no run directory"),
        ("bugs show nope", "no planted bug"),
        ("bugs score nope", "no planted bug"),
        ("explore --bug nope", "no planted bug"),
        ("check --bug nope", "no planted bug"),
        ("exhaust --bug nope", "no planted bug"),
        ("explain nope", "neither a token"),
        ("shrink nope", "neither a token"),
        ("replay nope", "neither a token"),
        ("promote nope --name x", "neither a token"),
    ],
)
def test_a_mistake_is_answered_before_heavy_imports(line: str, said: str) -> None:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "tornpage", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if said else 0)
    imported = {each.rpartition("|")[2].strip() for each in done.stderr.splitlines() if each.startswith("import time")}
    assert "tornpage.cli.main" in imported
    assert said in done.stderr
    assert not imported & {*HEAVY}
