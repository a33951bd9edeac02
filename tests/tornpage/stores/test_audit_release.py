"""Test the audit of stores of 4.8.0 and 4.9.0, whose batches join two properties."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.impl.old_batches import written
from tornpage.cli.main import cli


def audited(store: str, *options: str) -> tuple[str, list[str], int]:
    done = CliRunner().invoke(cli, ["audit", store, *options, "--json"])
    document: dict[str, Any] = json.loads(done.stdout)
    return document["verdict"], [each["code"] for each in document["findings"]], done.exit_code


@pytest.mark.parametrize(
    ("writer", "options", "verdict", "codes"),
    [
        ("4.9.0", [], "broken", ["IX_KEY_MISSING"] * 3),
        ("4.9.0", ["--rocketmq-version", "4.9.1"], "broken", ["IX_KEY_MISSING"] * 3),
        ("4.9.0", ["--rocketmq-version", "4.8.0"], "holds", []),
        ("4.9.0", ["--rocketmq-version", "4.9.0"], "holds", []),
        ("4.9.3", [], "holds", []),
        ("4.9.3", ["--rocketmq-version", "4.9.3"], "holds", []),
    ],
)
def test_the_release_decides_which_keys_are_due(
    tmp_path: Path, writer: str, options: list[str], verdict: str, codes: list[str]
) -> None:
    found = audited(written(tmp_path / "store", writer), *options)
    assert found == (verdict, codes, int(verdict == "broken"))


def test_a_key_that_the_release_drops_may_not_be_indexed(tmp_path: Path) -> None:
    verdict, codes, _ = audited(written(tmp_path / "store", "4.9.3"), "--rocketmq-version", "4.9.0")
    assert verdict == "broken"
    assert set(codes) == {"IX_WRONG_KEY"}


def test_a_rebuild_follows_the_release(tmp_path: Path) -> None:
    store = written(tmp_path / "store", "4.9.0")
    release = ("--rocketmq-version", "4.9.0")
    assert audited(store, "--rebuild", "index", *release)[0] == "holds"
    assert audited(store, *release) == ("holds", [], 0)


def test_a_mended_copy_follows_the_release(tmp_path: Path) -> None:
    store, copy = written(tmp_path / "store", "4.9.0"), str(tmp_path / "copy")
    release = ("--rocketmq-version", "4.9.0")
    assert audited(store, "--repair-to", copy, *release)[0] == "holds"
    assert audited(copy, *release) == ("holds", [], 0)


def test_what_names_no_release_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["audit", written(tmp_path / "store", "4.9.0"), "--rocketmq-version", "4.9"])
    assert (refused.exit_code, refused.output) == (
        2,
        "tornpage: '4.9' names no release; give a release of RocketMQ, such as 4.9.3\n",
    )
