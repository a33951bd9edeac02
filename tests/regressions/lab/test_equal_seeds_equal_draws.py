"""Equal seeds draw equal examples.

Symptom: a search with a fixed seed killed its bug after 34 operations, and in one run of the tests not within 3,000.
Cause: Hypothesis mixes into its draws constants from the sources of the loaded local modules. These depend on earlier
actions of the process, and on where the project is installed.
Fix: it gets none (docs/adr/0047).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWS = """
import sys
sys.path[:0] = sys.argv[1:]
from hypothesis import HealthCheck, given, seed, settings, strategies as st
from tornpage.properties.explore.machines.equal_draws import use_seeds_only
use_seeds_only()
if sys.argv[2:]:
    import many_constants
drawn = []

@seed(7)
@settings(max_examples=300, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 1 << 40), max_size=8))
def draw(numbers):
    drawn.append(numbers)

draw()
print(drawn)
"""


@pytest.fixture
def constants(tmp_path: Path) -> Path:
    (tmp_path / "many_constants.py").write_text(f"MANY = {[7_919 * n + 100_003 for n in range(200)]}\n")
    return tmp_path


def test_what_is_loaded_changes_no_draw(constants: Path) -> None:
    root = str(Path(__file__).resolve().parents[3])
    outputs = [
        subprocess.run(
            [sys.executable, "-P", "-c", DRAWS, *paths], capture_output=True, text=True, check=True, cwd=constants,
            env={**os.environ, "PYTHONPATH": root},
        ).stdout
        for paths in ([root], [root, str(constants)])
    ]  # fmt: skip
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 1_000
