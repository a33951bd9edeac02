"""Test the subcommands of `tornpage explore`, their options, and the options before them.

In the last release an option chose the subcommand.
"""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tornpage.cli.document import Outcome
from tornpage.cli.explore import command as explore
from tornpage.cli.main import cli
from tornpage.outcomes import exploring
from tornpage.outcomes.exploring import Request

VERBS = (
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
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explore", *arguments])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Request]]:
    """Run nothing; return the chosen subcommands and their requests."""
    found: list[tuple[str, Request]] = []

    def noting(verb: str) -> Any:
        def note(request: Request) -> tuple[Outcome, str]:
            found.append((verb, request))
            return Outcome("explore", "holds", {}), "done"

        return note

    for verb in VERBS:
        monkeypatch.setattr(exploring, f"explore_{verb}", noting(verb))
    return found


@pytest.mark.parametrize(
    ("arguments", "verb", "request_"),
    [
        ((), "crashes", Request()),
        (("--states", "7", "--seed", "3"), "crashes", Request(states=7, seed=3)),
        (("crashes", "--states", "7"), "crashes", Request(states=7)),
        (("kills",), "kills", Request(kills=200)),
        (("kills", "9", "--kill-at", "bytecode"), "kills", Request(kills=9, kill_at="bytecode")),
        (("restarts", "2"), "restarts", Request(restarts=2)),
        (("damage", ".", "--damages", "9"), "damage", Request(stores=(".",), damages=9)),
        (("recovery", "--disk", "journal"), "recovery", Request(disk="journal")),
        (("interleavings", "--states", "4"), "interleavings", Request(states=4)),
        (("cluster", "--nodes", "3", "--states", "5"), "cluster", Request(nodes=3, states=5)),
        (("cluster", "--all-of", "2"), "cluster", Request(length=2)),
        (("raft", "--all-of", "2,0,1"), "raft", Request(bound=(2, 0, 1), members=3)),
        (("target", "a:b", "--answer-seconds", "3"), "target", Request(target="a:b", answer_seconds=3.0)),
    ],
    ids=str,
)
def test_verb_runs_with_its_options(
    asked: list[tuple[str, Request]], arguments: tuple[str, ...], verb: str, request_: Request
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "done\n", "")
    assert asked == [(verb, request_)]


@pytest.mark.parametrize(
    ("former", "verb", "now"),
    [
        (("--kills", "60", "--workers", "2"), "kills", ("kills", "60", "--workers", "2")),
        (("--seed", "4", "--kills=60"), "kills", ("kills", "60", "--seed", "4")),
        (("--restarts", "3"), "restarts", ("restarts", "3")),
        (("--recovery", "--bug", "no-erase-after-cut"), "recovery", ("recovery", "--bug", "no-erase-after-cut")),
        (("--states", "20", "--interleavings"), "interleavings", ("interleavings", "--states", "20")),
        (("--target", "cmd:./s --dir {dir}"), "target", ("target", "cmd:./s --dir {dir}")),
    ],
    ids=str,
)
def test_former_option_runs_its_verb_with_a_notice(
    asked: list[tuple[str, Request]], former: tuple[str, ...], verb: str, now: tuple[str, ...]
) -> None:
    done = run(*former)
    assert (done.exit_code, done.stdout) == (0, "done\n")
    assert done.stderr.count("\n") == 1
    assert f"is `explore {verb}` now" in done.stderr
    assert run(*now).stderr == ""
    assert asked[0] == asked[1]
    assert asked[0][0] == verb


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kills", "3", "--recovery"), "--kills and --recovery are two ways to explore"),
        (("kills", "3", "--recovery"), "--recovery and `explore kills` are two ways to explore"),
        (("--kills",), "--kills needs a value"),
        (("--recovery", "--states", "3"), "--states goes with `explore crashes`, `explore target`, `explore interl"),
        (("recovery", "--states", "3"), "not with `explore recovery`"),
        (("kills", "3", "--strategy", "covering"), "--strategy goes with `explore crashes`, not with `explore kills`"),
        (("target", "a:b", "--bug", "lying-flush"), "not with `explore target`"),
        (
            ("--directory", "/"),
            "--directory goes with `explore kills`, `explore restarts`, `explore pair`, `explore group`, not",
        ),
    ],
    ids=str,
)
def test_option_of_another_verb_is_refused_in_one_line(
    asked: list[tuple[str, Request]], arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert asked == []


@pytest.mark.parametrize("arguments", [("kils",), ("kills", "0"), ("kills", "--bogus"), ("target",)], ids=str)
def test_misspelt_verb_or_option_is_a_usage_error(asked: list[tuple[str, Request]], arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout, asked) == (2, "", [])
    assert "Error: " in done.stderr


def test_every_option_of_a_verb_is_an_argument_of_its_request() -> None:
    """Otherwise the subcommand would read and ignore it."""
    assert isinstance(explore, click.Group)
    assert sorted(explore.commands) == list(VERBS)
    fields = set(Request.__dataclass_fields__) | {"as_json", "history"}
    for verb in explore.commands.values():
        assert {parameter.name for parameter in verb.params} <= fields


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_its_options_alone(verb: str) -> None:
    assert isinstance(explore, click.Group)
    shown = run(verb, "--help").stdout
    own = {parameter.opts[0] for parameter in explore.commands[verb].params if isinstance(parameter, click.Option)}
    others = {
        parameter.opts[0]
        for other in explore.commands.values()
        for parameter in other.params
        if isinstance(parameter, click.Option)
    } - own
    listed = {line.split()[0] for line in shown.splitlines() if line.startswith("  --")}
    assert own <= listed
    assert not others & listed
    assert f"tornpage explore {verb}" in shown
