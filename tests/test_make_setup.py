"""Test the set-up of the Makefile: made once, repeated after changes, healed after a cut.

A shell script stands for Python: it records its calls and makes a venv with itself, so that nothing is installed.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

FAKE_PYTHON = """#!/bin/sh
case "$*" in
    "-c import pip, sys;"*) exit 0 ;;
    "-c print"* | *"print(sys.base_prefix"*) echo same; exit 0 ;;
    *"print("*) echo "$FAKE_VERSION"; exit 0 ;;
    *"sys.version_info < "*) [ "$FAKE_VERSION" != 3.9.2 ]; exit ;;
    *ensurepip*) [ -z "${FAKE_NO_VENV-}" ]; exit ;;
esac
case "$*" in
    *"-e .[dev,docs,spark]") call=install ;;
    *"-m venv .venv") call=venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    *pytest*) call="$*" ;;
    *) exit 0 ;;
esac
echo "$call" >> calls
[ "${FAKE_FAILS-}" != "$call" ]
"""


class Checkout:
    """A directory with the Makefile and the fake Python; `make` returns the calls of one run."""

    def __init__(self, root: Path, source: Path) -> None:
        self.root = root
        self.variables: dict[str, str] = {"FAKE_VERSION": "3.11.7"}
        for name in ("Makefile", "constraints.txt", "pyproject.toml"):
            shutil.copy2(source / name, root / name)
        (root / "bin").mkdir()
        self.program("python3", FAKE_PYTHON)

    def program(self, name: str, text: str) -> None:
        """Put a program before all others of that name."""
        path = self.root / "bin" / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run make without the variables of the make that runs this test."""
        inherited = {name: value for name, value in os.environ.items() if name not in INHERITED}
        path = f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["make", *arguments],
            cwd=self.root,
            env={**inherited, **self.variables, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def calls(self, *arguments: str) -> list[str]:
        """Run make and return its calls of the fake Python."""
        log = self.root / "calls"
        log.unlink(missing_ok=True)
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return log.read_text(encoding="utf-8").splitlines()


INHERITED = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PYTHON"}
TESTS = "-P -m pytest -m not deep and not slow"


@pytest.fixture
def checkout(tmp_path: Path, repository: Path) -> Checkout:
    """Return a fresh checkout on a machine that has make."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    return Checkout(tmp_path, repository)


def test_second_run_sets_up_nothing(checkout: Checkout) -> None:
    assert checkout.calls("test") == ["venv", "install", TESTS]
    assert checkout.calls("test") == [TESTS]


def test_arguments_reach_the_tool(checkout: Checkout) -> None:
    assert checkout.calls("test", "ARGS=-k recovery -n 0")[-1] == f"{TESTS} -k recovery -n 0"


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_requirement_is_installed_into_the_same_venv(checkout: Checkout, name: str) -> None:
    checkout.calls("test")
    stamp_ns = (checkout.root / ".venv" / ".installed").stat().st_mtime_ns
    os.utime(checkout.root / name, ns=(stamp_ns + 1_000_000_000, stamp_ns + 1_000_000_000))
    assert checkout.calls("test") == ["install", TESTS]


@pytest.mark.parametrize("step", ["venv", "install"])
def test_interrupted_installation_starts_over(checkout: Checkout, step: str) -> None:
    checkout.variables["FAKE_FAILS"] = step
    assert checkout.run("test").returncode != 0
    checkout.variables["FAKE_FAILS"] = ""
    assert checkout.calls("test") == ["venv", "install", TESTS]
    assert checkout.calls("test") == [TESTS]


def remove_python(root: Path) -> None:
    (root / ".venv" / "bin" / "python").unlink()


def pretend_a_move(root: Path) -> None:
    (root / ".venv" / ".installed").write_text("/elsewhere\n", encoding="utf-8")


@pytest.mark.parametrize("damage", [remove_python, pretend_a_move])
def test_venv_that_cannot_work_is_made_again(checkout: Checkout, damage: Callable[[Path], None]) -> None:
    checkout.calls("test")
    damage(checkout.root)
    assert checkout.calls("test") == ["venv", "install", TESTS]


def test_venv_of_another_maker_is_used(checkout: Checkout) -> None:
    checkout.calls("test")
    (checkout.root / ".venv" / ".installed").unlink()
    assert checkout.calls("test") == ["install", TESTS]


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"FAKE_VERSION": "3.9.2"}, "tornpage needs Python 3.11 or newer, and python3 is 3.9.2; name another: "),
        ({"FAKE_NO_VENV": "1"}, "python3 has no venv module; on Debian and Ubuntu: apt-get install python3-venv"),
        ({"PYTHON": "no-such-python"}, "tornpage needs Python 3.11 or newer, and no-such-python does not start; "),
    ],
)
def test_unfit_python_is_refused_in_a_sentence(checkout: Checkout, variables: dict[str, str], sentence: str) -> None:
    checkout.variables |= variables
    done = checkout.run("test")
    assert done.returncode != 0
    assert done.stderr.startswith(sentence)
    assert not (checkout.root / ".venv").exists()


def test_other_system_is_refused_in_a_sentence(checkout: Checkout) -> None:
    checkout.program("uname", "#!/bin/sh\necho Darwin\n")
    done = checkout.run("test")
    assert done.returncode != 0
    assert "tornpage runs on Linux only; this is Darwin." in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_plain_make_lists_the_commands(checkout: Checkout) -> None:
    listed = checkout.run().stdout
    assert all(f"make {name}" in listed for name in ("prove", "test", "lint", "bench", "clean", "help"))
    assert not (checkout.root / ".venv").exists()


def test_clean_removes_the_venv(checkout: Checkout) -> None:
    checkout.calls("test")
    checkout.run("clean")
    assert not (checkout.root / ".venv").exists()
