"""Run the example of SQL in the ways of docs/tables.md.

They are a plain session, `spark-submit`, and an installed wheel.

A packed environment and a standalone master are tested with docs/cluster.md (test_cluster_page.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.properties.handmade import golden_dirs
from tests.test_packaging import built, sources  # noqa: F401  # a fixture
from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages

pytestmark = pytest.mark.deep

STORE = {path.name: path for path in golden_dirs()}
EXAMPLE = "examples/store_sql.py"


@pytest.fixture(autouse=True)
def with_spark() -> None:
    """Skip where there is no Java or no Spark."""
    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        pytest.skip(str(error))


def printed(command: list[str], home: Path, packages: Path) -> str:
    """Run a command in a directory of its own, with the interpreter of the tests."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": str(packages),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
    }
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_the_store(said: str) -> None:
    """Compare the first table with the store, which the reader of the tests reads."""
    import json

    from tornpage.pipeline.readers.asking import Ask
    from tornpage.pipeline.readers.planning import plan
    from tornpage.pipeline.readers.reading import read_task

    ask = Ask.of("rocketmq-commitlog", {"paths": json.dumps([str(STORE["01-plain-ascii"] / "store")])})
    rows = [row for task in plan(ask) for batch in read_task(task, ask) for row in batch.to_pylist()]
    first = said.split("-- ")[1]
    for topic in {row["topic"] for row in rows}:
        sizes = [row["size"] for row in rows if row["topic"] == topic]
        assert re.search(rf"^\|{re.escape(topic)}\s*\|{len(sizes)}\s*\|{sum(sizes)}\s*\|\d{{4}}-", first, re.MULTILINE)
    assert re.search(r"^\|store_time\s*\|timestamp\|`store_timestamp` as a timestamp", said, re.MULTILINE)


@pytest.mark.parametrize("program", ["python", "spark-submit"])
def test_the_example_runs_in_a_session_that_is_not_ours(program: str, tmp_path: Path, repository: Path) -> None:
    ways = {
        "python": [sys.executable],
        "spark-submit": [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]"],
    }
    store = str(STORE["01-plain-ascii"] / "store")
    is_the_store(printed([*ways[program], str(repository / EXAMPLE), store], tmp_path, repository))


def test_the_example_runs_with_an_installed_wheel(sources: Path, tmp_path: Path, repository: Path) -> None:  # noqa: F811
    wheel = built("wheel", sources, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    home = tmp_path / "home"
    home.mkdir()
    store = str(STORE["01-plain-ascii"] / "store")
    is_the_store(printed([sys.executable, str(repository / EXAMPLE), store], home, tmp_path / "site"))
