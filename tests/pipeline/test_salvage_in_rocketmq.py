"""RocketMQ 4.9.3 opens mended copies and serves what our store serves of them.

`TORNPAGE_ROCKETMQ_JARS` names a directory with rocketmq-store 4.9.3 and the libraries it needs.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pipeline.test_salvage import STORES
from tests.support.pipeline.damages import damaged
from tests.support.pipeline.handmade import copied
from tornpage.pipeline.repairing import carry_out, prepare_repair
from tornpage.properties.decode.store import look
from tornpage.properties.judge.shape import SettingsOverride

PROGRAM = Path(__file__).parents[1] / "support" / "OpenStore.java"
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref", "java.lang", "java.util")
STORES_A_RUN = 5


def jars() -> str:
    directory = os.environ.get("TORNPAGE_ROCKETMQ_JARS")
    if not directory or shutil.which("java") is None:
        pytest.skip("no RocketMQ at hand: set TORNPAGE_ROCKETMQ_JARS to a directory with its jars, and install Java")
    return f"{Path(directory).absolute()}/*"


@pytest.mark.deep
@pytest.mark.parametrize("part", range(8))
def test_rocketmq_opens_copies_and_serves_every_record(part: int, tmp_path: Path) -> None:
    classes = jars()
    expected: list[tuple[int, set[int]]] = []
    arguments: list[str] = []
    for seed in range(1 + STORES_A_RUN * part, 1 + STORES_A_RUN * (part + 1)):
        root = copied(random.Random(seed).choice(STORES), tmp_path / f"store-{seed}")
        damaged(root, seed)
        prepared = prepare_repair(root, tmp_path / f"copy-{seed}", SettingsOverride())
        carry_out(prepared.plan, prepared.rows)
        salvage = prepared.plan.salvage
        expected.append((salvage.end, set(prepared.rows.wanted["offset"].tolist())))
        copy = tmp_path / f"copy-{seed}"
        arguments += [str(copy), str(look(copy).file_bytes), str(prepared.plan.queue_file_bytes)]
    said = subprocess.run(
        [
            "java",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-Duser.home={tmp_path}",
            "-cp",
            classes,
            str(PROGRAM),
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout.splitlines()
    for (end, offsets), line in zip(expected, [each for each in said if "end " in each or "load" in each], strict=True):
        words = line[line.index("end ") if "end " in line else 0 :].split()
        assert (words[:2], {int(each) for each in words[3:]}) == (["end", str(end)], offsets), line
