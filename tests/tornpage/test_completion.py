"""Test completion: the offers to shells by their own scripts, and their speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.properties.planted import PLANTED
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.render.finding_codes import finding_codes

STORE = Path(__file__).parents[1] / "data" / "golden" / "01-plain-ascii" / "store"
HEAVY = (
    "numpy",
    "hypothesis",
    "numba",
    "matplotlib",
    "rich",
    "jinja2",
    "pyspark",
    "tornpage.impl.store",
    "tornpage.properties.planted",
)


def offered(*words: str, shell: str = "bash") -> list[str]:
    """Return the offers for the last word, as click's scripts request them."""
    environment = {"_TORNPAGE_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(words)}
    environment["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    done = CliRunner().invoke(cli, [], env=environment, prog_name="tornpage")
    return done.stdout.splitlines()


def plain(*words: str) -> list[str]:
    return [line.removeprefix("plain,") for line in offered("tornpage", *words) if line]


def test_commands_options_and_choices_are_offered() -> None:
    assert plain("repl") == ["replay"]
    assert {"run", "sweep", "validate"} <= set(plain("sim", ""))
    assert plain("explore", "--strat") == ["--strategy"]
    assert plain("explore", "--strategy", "c") == ["covering"]
    assert plain("explore", "") == [
        "cluster",
        "consumers",
        "crashes",
        "damage",
        "group",
        "interleavings",
        "kills",
        "pair",
        "raft",
        "recovery",
        "restarts",
        "target",
    ]
    assert plain("explore", "kills", "--kill-at", "b") == ["bytecode"]
    assert "--strategy" not in plain("explore", "kills", "--")
    assert {"commit-log", "put", "consumer"} <= set(plain("check", "--machine", ""))
    assert plain("bugs", "list", "--group", "") == ["durability"]


@pytest.mark.parametrize(
    "before", [("explore", "--bug"), ("check", "--bug"), ("bugs", "show"), ("bugs", "score", "RMQ-B13")]
)
def test_every_planted_bug_is_offered(before: tuple[str, ...]) -> None:
    assert plain(*before, "") == sorted(PLANTED)
    assert plain(*before, "lying") == ["lying-flush"]


def test_codes_of_findings_and_faults_are_offered() -> None:
    assert plain("explain", "C") == sorted(code for code in finding_codes() if code.startswith("C"))
    assert plain("explore", "--fault", "") == sorted(EFFECTS)


@pytest.mark.parametrize("command", ["explain", "replay", "shrink", "promote"])
def test_a_case_is_a_file(command: str) -> None:
    assert offered("tornpage", command, "run/ca") == ["file,run/ca"]


def test_names_of_a_store_are_offered(tmp_path: Path) -> None:
    assert plain("inspect", str(STORE), "queue", "Topic") == ["TopicTest/0"]
    assert plain("inspect", str(STORE), "config", "d") == ["delayOffset.json"]
    assert plain("inspect", str(STORE), "queues", "") == []
    assert plain("inspect", str(tmp_path / "none"), "queue", "") == []
    for topic in ("\x1b]0;x", "$(id)", "a b", "Fine"):
        (tmp_path / "consumequeue" / topic / "0").mkdir(parents=True)
    assert plain("inspect", str(tmp_path), "queue", "") == ["Fine/0"]


@pytest.mark.parametrize(
    "words",
    [
        ("explore", "--bug", "lying-flush", "--fault", "sync-lost", "--sta"),
        ("explore", "kills", "--bug", "lying-flush", "--wor"),
        ("bugs", "show", "RMQ"),
        ("explain", "CL_"),
        ("inspect", str(STORE), "queue", ""),
        ("faults", "--only", "x", "--s"),
    ],
    ids=" ".join,
)
def test_a_shell_does_not_wait(words: tuple[str, ...]) -> None:
    """No slow module is loaded: the rest takes a tenth of a second."""
    program = (
        "import sys\n"
        "from tornpage.cli.main import main\n"
        "try:\n    main()\n"
        f"finally:\n    print('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))"
    )
    line = ["tornpage", *words]
    environment = {"_TORNPAGE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(words))}
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    *some, loaded = run.stdout.splitlines()
    assert (loaded, run.stderr) == ("LOADED", "")
    assert some


def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    """Run the printed script in a real bash, which calls a real `tornpage`."""
    program = tmp_path / "tornpage"
    home = Path(__file__).parents[2]
    program.write_text(f'#!/bin/sh\nPYTHONPATH={home} exec {sys.executable} -P -m tornpage "$@"\n')
    program.chmod(0o755)
    steps = (
        f"PATH={tmp_path}:$PATH",
        'eval "$(tornpage completion bash)"',
        "COMP_WORDS=(tornpage explore --bug RMQ-B1); COMP_CWORD=3",
        "_tornpage_completion tornpage",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    )
    run = subprocess.run(["bash", "-c", "\n".join(steps)], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == sorted(bug for bug in PLANTED if bug.startswith("RMQ-B1")), run.stderr


@pytest.mark.parametrize(
    ("shell", "line"),
    [("bash", "complete -o nosort -F _tornpage_completion tornpage"), ("zsh", "#compdef tornpage"),
     ("fish", "_TORNPAGE_COMPLETE=fish_complete")],
)  # fmt: skip
def test_each_shell_has_a_script(shell: str, line: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0
    assert line in done.stdout
    assert json.loads(CliRunner().invoke(cli, ["completion", shell, "--json"]).stdout)["script"] in done.stdout
    assert offered("tornpage", "explain", "CL_G", shell=shell)


def test_another_shell_is_refused() -> None:
    assert CliRunner().invoke(cli, ["completion", "tcsh"]).exit_code == 2
