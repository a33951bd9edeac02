"""Test the pytest plugin in a project directory and a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.properties.foreign.tracing import why_untraceable

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
TOY = Path(__file__).resolve().parents[3] / "examples" / "toy_store.py"
MARKED = """
import pytest
from toy_store import ToyStore

@pytest.mark.tornpage(store=ToyStore)
def test_marked():
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a directory with the toy store, which loses a file name.

    `stores.py` there has a mended one too, chosen by an argument.
    """
    source = TOY.read_text()
    (tmp_path / "toy_store.py").write_text(source)
    there = "        os.fsync(self.file)\n"
    mended = source.replace(there, f"{there}        os.fsync(os.open(directory, os.O_RDONLY))\n", 1)
    assert mended != source
    opens = "\ndef open_store(directory, mended=False):\n    return (Mended if mended else ToyStore)(directory)\n"
    inherited = mended[mended.index("class ToyStore") :].partition("\n\n\n")[0].replace("ToyStore", "Mended", 1)
    (tmp_path / "stores.py").write_text(f"{source}\n\n{inherited}\n\n{opens}")
    return tmp_path


def run(project: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (project / "test_it.py").write_text(test)
    options = ["-p", "tornpage.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers", "-W", "error", "-q"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_marked_store_fails_with_its_story_and_is_saved(project: Path) -> None:
    done = run(project, MARKED, "--tornpage-examples", "20", "--tornpage-out", "out")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "contract 2 is broken: a message that was promised to survive is lost" in done.stdout
    assert ".py:" not in done.stdout.replace("toy_store.py:", "").partition("short test summary")[0], "no frames"
    (case,) = (project / "out").iterdir()
    assert json.loads(case.read_text())["was"]["contract"] == 2
    assert f"kept in {case}" in done.stdout


@pytest.mark.slow
def test_fixture_names_the_line_of_the_test_and_passes_arguments(project: Path) -> None:
    test = """
def test_broken(assert_store_holds):
    assert_store_holds("stores.py:open_store", examples=20)

def test_mended(assert_store_holds):
    assert_store_holds("stores.py:open_store", examples=25, arguments={"mended": True})
"""
    done = run(project, test)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_it.py:3: AssertionError" in done.stdout
    assert "outcomes/targets.py" not in done.stdout


@pytest.mark.slow
def test_seconds_and_profile_limit_the_examples(project: Path) -> None:
    test = """
import hypothesis
from stores import open_store
import tornpage.outcomes.targets as targets

asked = []
targets.broken_promise = lambda name, **given: asked.append(given) or ""
hypothesis.settings.register_profile("mine", max_examples=7)

def test_options(assert_store_holds, pytestconfig):
    hypothesis.settings.load_profile("mine")
    assert_store_holds(open_store)
    assert_store_holds(open_store, examples=3)
    hypothesis.settings.load_profile("default")
    assert_store_holds(open_store)
    print([each.get("examples") for each in asked], [each.get("seconds") for each in asked])
"""
    for arguments, said in (
        ([], "[7, 3, None] [None, None, None]"),
        (["--tornpage-seconds", "2.5"], "[None, None, None] [2.5, 2.5, 2.5]"),
        (["--tornpage-examples", "4"], "[4, 4, 4] [None, None, None]"),
    ):
        done = run(project, test, "-s", *arguments)
        assert said in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_misuse_is_said_in_one_line(project: Path) -> None:
    test = """
import pytest

@pytest.mark.tornpage("nowhere.py:Store")
def test_no_store():
    pass

@pytest.mark.tornpage("nowhere.py:Store", example=3)
def test_no_argument():
    pass
"""
    done = run(project, test)
    assert "the store cannot be tested: nowhere.py:Store: there is no file nowhere.py" in done.stdout
    assert "'example' is no argument of a store's test; give arguments, disk," in done.stdout
    refused = run(project, test, "--tornpage-seconds", "0")
    assert (refused.returncode, "invalid _positive_seconds value: '0'" in refused.stderr) == (4, True)


def test_plugin_loads_nothing_heavy() -> None:
    program = "import sys, tornpage.pytest_plugin; print(sorted({'click', 'hypothesis', 'numpy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_workers_of_xdist_get_the_options(project: Path) -> None:
    pytest.importorskip("xdist")
    done = run(project, MARKED, "-p", "xdist.plugin", "-n", "1", "--tornpage-examples", "20", "--tornpage-out", "out")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "contract 2 is broken" in done.stdout
    assert len(list((project / "out").iterdir())) == 1
