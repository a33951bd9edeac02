"""An interrupted comparison of a simulator has no finding about what has not happened yet.

Symptom: `sim raft` that was interrupted printed "vacuous" and "no election failed", before it had run a group.
Cause: the verdict was made as for a complete run.
Fix: an interrupted run has no such finding (tornpage/outcomes/simulated/virtual_time.py).
Found by: Ctrl-C.
"""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tornpage.bench.consumers import validation as consumers
from tornpage.bench.raft import validation as raft
from tornpage.cli.main import cli


@pytest.mark.parametrize(("name", "module"), [("consumers", consumers), ("raft", raft)])
def test_interrupted_comparison_is_not_judged(name: str, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Iterator[object]:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "validate_groups" if name == "consumers" else "validate_raft", interrupted)
    done = CliRunner().invoke(cli, ["sim", name])
    assert done.exit_code == 130
    assert "is allowed: interrupted" in done.stdout
    assert "no " not in done.stdout
