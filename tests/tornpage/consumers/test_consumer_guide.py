"""Run the example of consumers and the blocks of their guide."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "consumers" / "guide.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_example_prints_what_the_guide_shows() -> None:
    assert blocks("sh")[0] == "python examples/consumer.py\n"
    done = subprocess.run(
        [sys.executable, "-P", str(ROOT / "examples" / "consumer.py")],
        capture_output=True, text=True, check=False, timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == blocks("text")[0]


def test_the_blocks_of_the_guide_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    found = blocks("python")
    assert len(found) == 4
    for block in found:
        exec(compile(block, "guide.md", "exec"), names)
    assert names["answer"].next_offset == 5
