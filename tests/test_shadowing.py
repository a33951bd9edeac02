"""A folder of the user that is named like one of our packages: harmless with a safe path, else named in one line."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage import guard

SAFE = guard.python_command("tornpage")
UNSAFE = [sys.executable, "-m", "tornpage"]
SCRIPT = [str(Path(sys.executable).with_name("tornpage"))]


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """Return a directory with a package for each of our rooms (the front door aside) that ends the process."""
    for name in {*guard.PACKAGES, "pipeline", "reports", "sim"} - {"tornpage"}:
        package = tmp_path / "decoys" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('decoy imported')\n", encoding="utf-8")
    return tmp_path / "decoys"


def run(command: list[str], *, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in `cwd`, without the settings of Python's path that this process was started with."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONSAFEPATH"}}
    environment = {**inherited, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def assert_refused(done: subprocess.CompletedProcess[str], decoys: Path) -> None:
    """Check for the one line that names a package, the path that shadows it, and the remedy."""
    first = guard.PACKAGES[0]
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"tornpage: package '{first}' is shadowed by {decoys / first}; start with `tornpage` or "
        f"`python -P -m tornpage`, and remove {decoys} from PYTHONPATH\n"
    )


@pytest.fixture(params=[SCRIPT, SAFE], ids=["script", "module"])
def command(request: pytest.FixtureRequest) -> list[str]:
    """Return each of the two recommended ways to start."""
    chosen: list[str] = request.param
    if not Path(chosen[0]).exists():
        pytest.skip(f"{chosen[0]} is not installed")
    return chosen


def test_recommended_start_works_among_decoys(command: list[str], decoys: Path) -> None:
    done = run([*command, "doctor", "--json"], cwd=decoys)
    assert done.returncode == 0, done.stderr
    assert "decoy imported" not in done.stdout + done.stderr


def test_decoys_on_pythonpath_are_refused(command: list[str], decoys: Path) -> None:
    assert_refused(run([*command, "doctor", "--json"], cwd=decoys.parent, PYTHONPATH=str(decoys)), decoys)


def test_refused_is_refused_though_nobody_can_read_why(decoys: Path) -> None:
    """It ended with 1, as if a guarantee were broken."""
    line = f"{' '.join(UNSAFE)} doctor 2>/dev/full"
    assert run(["bash", "-c", line], cwd=decoys).returncode == 2


def test_start_with_unsafe_path_among_decoys_is_refused(decoys: Path) -> None:
    assert_refused(run([*UNSAFE, "doctor", "--json"], cwd=decoys), decoys)


@pytest.mark.parametrize("package", [name for name in guard.PACKAGES if name != "tornpage"])
def test_each_package_is_guarded_against_a_module_of_its_name(package: str, tmp_path: Path) -> None:
    decoy = tmp_path / f"{package}.py"
    decoy.write_text("raise SystemExit('decoy imported')\n", encoding="utf-8")
    done = run(SAFE, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tornpage: package '{package}' is shadowed by {decoy};")


def test_folder_without_init_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    program = "from tornpage import guard; print(guard.shadowing())"
    assert run([sys.executable, "-c", program], cwd=tmp_path).stdout == "None\n"


def test_package_that_is_nowhere_is_named(tmp_path: Path) -> None:
    shadow = guard.shadowing(home=str(tmp_path), packages=("no_such_room",))
    assert shadow == guard.Shadow("no_such_room", None)
    assert guard.describe(shadow, home=str(tmp_path)) == (
        f"package 'no_such_room' is missing from {tmp_path}; install tornpage again"
    )


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
    """Otherwise an old Python would answer with a syntax error instead of the sentence."""
    for name in ("guard.py", "__main__.py"):
        source = Path(guard.HOME, "tornpage", name).read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 7))


def test_guard_loads_no_room() -> None:
    rooms = set(guard.PACKAGES) - {"tornpage"}
    program = f"import sys, tornpage.guard; print(sorted({rooms} & set(sys.modules)))"
    assert run([sys.executable, "-P", "-c", program], cwd=Path(guard.HOME)).stdout == "[]\n"
