"""Check docs/contract.md: quoted guarantees, short cells, and existing names."""

import re
from importlib import import_module
from pathlib import Path

from tornpage.properties.promises import PROMISES

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")]
GUARANTEES = re.findall(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|$", TEXT, re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
WORDS_MAX = 25
"""Words of a cell; what needs more stands below the table."""


def test_commands_quote_the_page() -> None:
    told = {int(row[0]): LINK.sub(r"\1", row[2]) for row in ROWS if row[0].isdecimal() and len(row) == 4}
    assert told == PROMISES


def test_cells_are_short() -> None:
    assert [cell for row in ROWS for cell in row if len(cell.split()) > WORDS_MAX] == []


def test_guarantees_name_code_that_exists() -> None:
    homes = {
        "crash": "tornpage.model.crash",
        "commitlog": "tornpage.model.commitlog",
        "holding": "tornpage.model.holding",
        "message": "tornpage.model.message",
        "numbering": "tornpage.model.damage.numbering",
        "admission": "tornpage.model.admission",
        "salvage": "tornpage.model.salvage",
        "verifying": "tornpage.model.verifying",
        "concurrent": "tornpage.properties.lockstep.concurrent",
        "queues": "tornpage.model.queues",
        "index": "tornpage.model.index",
        "reading": "tornpage.model.reading",
        "retention": "tornpage.model.retention",
        "schedule": "tornpage.model.schedule",
        "progress": "tornpage.model.progress",
        "linearise": "tornpage.properties.judge.linearizability.linearise",
        "replication": "tornpage.model.replication.step",
        "consumers": "tornpage.model.consumers.step",
        "consumer_shares": "tornpage.model.consumers.allocation",
        "group_judge": "tornpage.properties.consumers.judge",
        "cluster_judge": "tornpage.properties.cluster.judge",
        "Corruption": "tornpage.properties.lockstep.corruption",
        "sigkill_judge": "tornpage.properties.explore.kills.judge",
        "open_harm": "tornpage.properties.lockstep.open_harm",
        "Recovery": "tornpage.properties.lockstep.recovery",
        "closing": "tornpage.properties.lockstep.closing",
        "compare": "tornpage.properties.lockstep.compare",
        "deleting": "tornpage.properties.lockstep.deleting",
        "number_harm": "tornpage.properties.lockstep.copies.number_harm",
        "proofs": "tornpage.properties.lockstep.proofs",
        "puts": "tornpage.properties.lockstep.puts",
        "reads": "tornpage.properties.lockstep.reads",
        "services": "tornpage.properties.lockstep.services",
    }
    numbers = [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
        "16",
        "17",
        "18",
        "19",
        "20",
        "21",
        "22",
        "23",
        "24",
    ]
    assert [number for number, _, _ in GUARANTEES] == numbers
    for name in [name for row in GUARANTEES for name in re.findall(r"`([^`]+)`", " ".join(row[1:]))]:
        if name.endswith(".py"):
            assert (ROOT / name).is_file()
        else:
            if name.startswith("judge."):
                home, _, attribute = name.removeprefix("judge.").partition(".")
                module = import_module(f"tornpage.properties.judge.{home}")
            else:
                home, _, attribute = name.partition(".")
                module = import_module(homes[home])
            assert not attribute or hasattr(module, attribute) or hasattr(getattr(module, home), attribute), name
