"""A planted bug that a command cannot plant is refused.

Symptom: `explore crashes --bug RB09` and `explore raft --bug CB01` ended with "verdict: holds", as if the bug was
missed. No run had a part that these bugs break.
Cause: each command took every id.
Fix: a bug of replication, of consumers or of Raft is for its own verb (tornpage/cli/options.py).
Found by: trying the command line with wrong values.
"""

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli


@pytest.mark.parametrize(
    ("verb", "bug", "remedy"),
    [
        (["explore", "crashes"], "RB09", "explore cluster"),
        (["explore"], "CB01", "explore consumers"),
        (["explore", "interleavings"], "CB01", "explore consumers"),
        (["explore", "raft"], "CB01", "explore consumers"),
        (["explore", "consumers"], "LB01", "explore raft"),
        (["explore", "cluster"], "LB01", "explore raft"),
        (["campaign"], "RB09", "explore cluster"),
        (["exhaust"], "LB01", "explore raft"),
    ],
)
def test_bug_of_another_command_is_refused(verb: list[str], bug: str, remedy: str) -> None:
    done = CliRunner().invoke(cli, [*verb, "--bug", bug])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"no run of `{verb[-1] if verb != ['explore'] else 'crashes'}` has the part" in done.stderr
    assert f"tornpage {remedy} --bug {bug}" in done.stderr
