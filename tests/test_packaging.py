"""Test wheel and source distribution: one top-level name, packages named like rooms."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tornpage.pipeline.spark.agreement import versions
from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages
from tornpage.properties.explore.exhaustive.resume import source_fingerprint

ROOMS = ("bench", "impl", "model", "peers", "pipeline", "properties", "reports", "sim")
BUILD = "import sys; from setuptools import build_meta as b; print(b.build_{kind}(sys.argv[1]))"


@pytest.fixture(scope="module")
def sources(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tracked files for a build.

    `build/` in the checkout may hold old modules.
    """
    home = tmp_path_factory.mktemp("packaging") / "sources"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    for name in filter(None, listed.stdout.split("\0")):
        path, copy = repository / name, home / name
        if name.startswith("tests/") or not (path.is_symlink() or path.exists()):
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            copy.symlink_to(path.readlink())
        else:
            copy.write_bytes(path.read_bytes())
    return home


def built(kind: str, sources: Path, target: Path) -> Path:
    """Build an `sdist` or a `wheel` without network; return the file."""
    target.mkdir(exist_ok=True)
    command = [sys.executable, "-P", "-c", BUILD.format(kind=kind), str(target)]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheels(sources: Path) -> dict[str, Path]:
    """Return the wheel of the checkout, and the wheel of the source distribution."""
    sdist = built("sdist", sources, sources.parent / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(sources.parent / "unpacked", filter="data")
    (unpacked,) = (sources.parent / "unpacked").iterdir()
    return {
        "checkout": built("wheel", sources, sources.parent / "wheel"),
        "sdist": built("wheel", unpacked, sources.parent / "wheel-of-sdist"),
    }


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], sources: Path) -> Path:
    """Return a directory with the content of a wheel.

    Beside it is a working directory with user packages.
    """
    home = sources.parent / "installed"
    with zipfile.ZipFile(wheels["sdist"]) as archive:
        archive.extractall(home / "site")
    for room in ROOMS:
        package = home / "work" / room
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemExit('a package of the user was imported')\n")
    return home


def run(installed: Path, *command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run Python in the user's working directory with the installed package, not the checkout."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join((str(installed / "site"), sysconfig.get_path("purelib")))
    return subprocess.run(
        [sys.executable, "-S", *command],
        cwd=installed / "work",
        env={**inherited, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_wheels_have_one_name_at_their_top_level(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"tornpage"}
        assert {name.split("/")[1] for name in names} >= set(ROOMS)
        assert "tornpage/reports/py.typed" in names
        assert any(name.startswith("tornpage/reports/templates/") for name in names)
        assert "tornpage/peers/rocketmq/java/Driver.java" in names


def test_both_wheels_hold_the_same(wheels: dict[str, Path]) -> None:
    contents = []
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name})
    assert contents[0] == contents[1]


def test_a_test_of_a_user_runs_beside_packages_named_like_our_rooms(installed: Path, repository: Path) -> None:
    program = (
        "import sys\n"
        "from tornpage.testing import assert_store_holds\n"
        "try:\n    assert_store_holds(sys.argv[1], examples=30)\n"
        "except AssertionError as error:\n    print(str(error).splitlines()[0])\n"
        f"print(sorted(set({ROOMS}) & set(sys.modules)), sys.modules['tornpage'].__file__)\n"
    )
    done = run(installed, "-c", program, f"{repository}/examples/toy_store.py:ToyStore")
    assert done.returncode == 0, done.stderr
    said, where = done.stdout.splitlines()
    assert said.startswith("contract 2 is broken")
    assert where == f"[] {installed / 'site' / 'tornpage' / '__init__.py'}"


def test_check_runs_beside_packages_named_like_our_rooms(installed: Path) -> None:
    done = run(installed, "-m", "tornpage", "check", "--examples", "2", "--seed", "1")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "a package of the user" not in done.stdout + done.stderr


def test_source_has_one_digest_however_it_is_installed(installed: Path) -> None:
    program = (
        "from tornpage.pipeline.spark.agreement import versions\n"
        "from tornpage.properties.explore.exhaustive.resume import source_fingerprint\n"
        "print(versions()['code of tornpage'], source_fingerprint())"
    )
    done = run(installed, "-c", program)
    assert done.stdout.split() == [versions()["code of tornpage"], source_fingerprint()], done.stderr


@pytest.mark.slow
def test_a_spark_task_runs_beside_packages_named_like_our_rooms(installed: Path, repository: Path) -> None:
    try:
        require_packages("pyspark", "pyarrow", "pandas")
        require_java()
    except SparkUnavailable as missing:
        pytest.skip(str(missing))
    store = repository / "tests" / "data" / "golden" / "01-plain-ascii" / "store"
    done = run(installed, "-m", "tornpage", "audit", str(store), "--engine", "tasks", "--master", "local[1]")
    assert done.returncode == 0, done.stdout + done.stderr
