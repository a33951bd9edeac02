"""A share that is no number is refused by its option.

Symptom: `sim choose --crash-share nan` printed a traceback of ValueError after all simulations.
Cause: `click.FloatRange` accepts nan.
Fix: numbers of options have to be finite (tornpage/cli/options.py).
Found by: trying the command line with wrong values.
"""

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli

CHOOSE = ["sim", "choose", "--device", "vm-ext4", "--max-loss", "1ms", "--max-p99", "1ms"]


@pytest.mark.parametrize(
    "arguments",
    [
        [*CHOOSE, "--rate", "10", "--crash-share", "nan"],
        ["sim", "experiment", "knee", "--effort", "nan"],
        ["sim", "run", "--producers", "2", "--think-us", "inf"],
    ],
    ids=["crash-share", "effort", "think-us"],
)
def test_share_without_a_value_is_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{arguments[-1]} is no finite number" in done.stderr
