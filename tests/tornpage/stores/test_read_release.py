"""Test the rule for properties that inspect, export and readers of Spark use.

It is that of the release that wrote the store.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from tests.support.impl.old_batches import written
from tornpage.cli.main import cli
from tornpage.pipeline.readers.asking import Ask, ReaderError
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.reading import read_task

KEPT, OLD = "b0WAIT\x01true", ("--rocketmq-version", "4.9.0")
"""What 4.9.3 takes for the key of the first message; 4.9.0 drops the pair."""


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def inspected(*arguments: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(printed("inspect", *arguments, "--json"))["rows"]
    return shown


@pytest.mark.parametrize(("options", "key"), [((), KEPT), (("--rocketmq-version", "4.9.1"), KEPT), (OLD, None)])
def test_the_release_decides_which_keys_are_shown(tmp_path: Path, options: tuple[str, ...], key: str | None) -> None:
    store = written(tmp_path / "store", "4.9.0")
    assert inspected(store, *options)[0]["keys"] == key
    unit = inspected(store, "queue", "Topic/0", *options)[0]
    assert (unit["state"], unit["keys"]) == ("ok", key)
    first = json.loads(printed("export", store, *options).splitlines()[0])
    assert (first["properties"].get("KEYS"), first["properties"]["UNIQ_KEY"]) == (key, "u0")


def test_a_key_that_the_release_drops_is_not_found(tmp_path: Path) -> None:
    store = written(tmp_path / "store", "4.9.0")
    asked = (store, "--key", KEPT, "--scan")
    assert (len(inspected(*asked)), len(inspected(*asked, *OLD))) == (1, 0)


def rows(store: str, **options: str) -> list[dict[str, Any]]:
    asked = {"path": store, "columns": "keys,tags,properties", **options}
    ask = Ask.of("rocketmq-commitlog", asked)
    return [row for task in plan(ask) for row in pa.Table.from_batches(read_task(task, ask)).to_pylist()]


def test_readers_of_spark_take_the_release(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", "4.9.0"), written(tmp_path / "new", "4.9.3")
    assert [row["keys"] for row in rows(old)] == [[f"u{n}", f"b{n}WAIT\x01true"] for n in range(3)]
    assert [row["keys"] for row in rows(old, rocketmqVersion="4.8.0")] == [[f"u{n}"] for n in range(3)]
    assert dict(rows(old, rocketmqVersion="4.9.0")[0]["properties"]) == {"UNIQ_KEY": "u0"}
    assert rows(new, rocketmqVersion="4.9.3") == rows(new)
    with pytest.raises(ReaderError, match=r"rocketmqVersion '4.9' names no release"):
        rows(old, rocketmqVersion="4.9")


def test_what_names_no_release_is_refused(tmp_path: Path) -> None:
    store = written(tmp_path / "store", "4.9.0")
    for verb in ("inspect", "export"):
        refused = CliRunner().invoke(cli, [verb, store, "--rocketmq-version", "4.9"])
        assert (refused.exit_code, "'4.9' names no release" in refused.output) == (2, True)
