"""Test that the memory of a campaign's driver hardly grows with the campaign.

1.5 million rows are those of about 10^9 crash states in large shards. `TORNPAGE_SUMMARY_ROWS` gives another number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.pipeline.campaign.campaign import rows_of_shard
from tornpage.pipeline.campaign.cost import RUN_BYTES, SHARD_BYTES, SUMMARY_BYTES
from tornpage.pipeline.campaign.files import parquet_of
from tornpage.pipeline.rows.schemas import HISTORY_COLUMNS, arrow_schema
from tornpage.properties.explore.crashes.shards import Shard
from tornpage.properties.program.case import Settings

pytestmark = pytest.mark.deep

ROWS = int(os.environ.get("TORNPAGE_SUMMARY_ROWS", "1500000"))
SHARD_RUNS = 1_500
COUNTS = 10
SUM_UP = """
import json, sys, time
from pathlib import Path

def high_water_mark():  # that of getrusage includes the parent before exec
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

from tornpage.pipeline.campaign.files import CampaignFiles
from tornpage.pipeline.campaign.summary import summary_of
import pyarrow.parquet
files = CampaignFiles(Path(sys.argv[1]))
before = high_water_mark()
summary = summary_of(files, files.shards())
curve = summary.discovery()
print(json.dumps({"before": before, "peak": high_water_mark(), "runs": summary.runs,
                  "shards": summary.shards_complete, "states": curve[-1]["states"],
                  "images": curve[-1]["distinct_images"], "processor_s": time.process_time()}))
"""


def made_files(out: Path, rows: int) -> tuple[int, int]:
    """Write shards made from the rows of a small one; return the numbers of runs and shards.

    Rows have a few counts only, which saves time. Counts of other rows are in memory for one batch.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    *given, last = rows_of_shard(Shard(0, seed=3, states=300, settings=Settings()))
    for row in given:
        row |= {name: dict(sorted(row[name].items())[:COUNTS]) for name in ("armed", "fired", "mattered")}
    (out / "histories").mkdir(parents=True)
    schema = arrow_schema(HISTORY_COLUMNS)
    small = pq.read_table(pa.BufferReader(parquet_of([*given, last]))).cast(schema)
    shards = -(-rows // (SHARD_RUNS + 1))
    taken = pa.array([*(number % len(given) for number in range(SHARD_RUNS)), len(given)])
    for shard in range(shards):
        numbers = range(shard * SHARD_RUNS, (shard + 1) * SHARD_RUNS)
        changed = {
            "shard": [shard] * (SHARD_RUNS + 1),
            "seed": [*(f"3:{shard * 1_000_000 + number % SHARD_RUNS}" for number in numbers), ""],
            "images_hash": [*(f"{number:016x}{0:048x}" for number in numbers), None],
            "recovered_hash": [*(f"{number:016x}{1:048x}" for number in numbers), None],
        }
        table = small.take(taken)
        for name, values in changed.items():
            place = schema.get_field_index(name)
            table = table.set_column(place, schema.field(place), pa.array(values, schema.field(place).type))
        pq.write_table(table, out / f"histories/part-shard-{shard:06}.parquet")
    return shards * SHARD_RUNS, shards


def test_the_driver_sums_up_a_billion_states_in_its_bound(tmp_path: Path) -> None:
    """The driver kept a dict for each row: 24.5 KB, 35 GB for a billion states."""
    pytest.importorskip("pyarrow")
    runs, shards = made_files(tmp_path, ROWS)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SUM_UP, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(found)
    assert (found["runs"], found["shards"]) == (runs, shards)
    assert found["images"] > runs  # no run was taken for an earlier one
    assert found["peak"] < SUMMARY_BYTES + RUN_BYTES * runs + SHARD_BYTES * shards
