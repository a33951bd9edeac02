"""Test that folders named like rooms are harmless, and that an unfit system is named."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage import guard

ROOMS = ("bench", "impl", "model", "peers", "pipeline", "properties", "reports", "sim")
SAFE = guard.python_command("tornpage")
UNSAFE = [sys.executable, "-m", "tornpage"]
SCRIPT = [str(Path(sys.executable).with_name("tornpage"))]


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """Return a directory with a package for each room that ends the process."""
    for name in ROOMS:
        package = tmp_path / "decoys" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('decoy imported')\n", encoding="utf-8")
    return tmp_path / "decoys"


def run(command: list[str], *, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in `cwd`, without the Python path settings of this process."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONSAFEPATH"}}
    environment = {**inherited, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def assert_works(done: subprocess.CompletedProcess[str]) -> None:
    """Check that a command succeeded and imported no decoy."""
    assert "decoy imported" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=[SCRIPT, SAFE, UNSAFE], ids=["script", "module", "module, unsafe path"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """Return each way to start."""
    chosen: list[str] = request.param
    if not Path(chosen[0]).exists():
        pytest.skip(f"{chosen[0]} is not installed")
    return chosen


def test_start_works_beside_folders_named_like_ours(command: list[str], decoys: Path) -> None:
    assert_works(run([*command, "doctor", "--json"], cwd=decoys))


def test_start_works_with_folders_named_like_ours_on_pythonpath(command: list[str], decoys: Path) -> None:
    assert_works(run([*command, "doctor", "--json"], cwd=decoys.parent, PYTHONPATH=str(decoys)))


def test_check_of_a_store_of_the_user_imports_no_decoy(decoys: Path) -> None:
    program = (
        "import tornpage.testing as t, sys; "
        f"print(sorted(set({ROOMS}) & set(sys.modules)), t.assert_store_holds.__module__.partition('.')[0])"
    )
    done = run([sys.executable, "-c", program], cwd=decoys)
    assert_works(done)
    assert done.stdout == "[] tornpage\n"


@pytest.mark.parametrize(
    ("platform", "version", "refusal"),
    [
        ("linux", (3, 11, 0), None),
        ("linux", (3, 14, 0), None),
        ("linux", (3, 10, 13), "needs Python 3.11 or newer; this is 3.10.13"),
        ("darwin", (3, 12, 1), "runs on Linux only; this is darwin"),
    ],
)
def test_unsupported_machine_is_named(platform: str, version: tuple[int, ...], refusal: str | None) -> None:
    assert guard.unsupported(platform, version) == refusal


def test_guard_can_be_read_by_an_old_python() -> None:
    """Otherwise an old Python would fail with a syntax error instead of the sentence."""
    for name in ("guard.py", "__main__.py"):
        source = Path(guard.HOME, "tornpage", name).read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 7))


def test_guard_loads_no_room() -> None:
    program = f"import sys, tornpage.guard; print([name for name in {ROOMS} if 'tornpage.' + name in sys.modules])"
    assert run([sys.executable, "-P", "-c", program], cwd=Path(guard.HOME)).stdout == "[]\n"
