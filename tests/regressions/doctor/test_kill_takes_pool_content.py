"""Symptom: `judge --truth` called records lost that a transient store pool had held.

Cause: every acknowledged record was due after a kill, whatever the settings of the broker said.
Fix: with transientStorePoolEnable in the settings only flushed records are due.
"""

import hashlib
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import FILE_BYTES, change, filled
from tornpage.properties.judge.image import AcknowledgedRecord, Truth, read_image
from tornpage.properties.judge.judgement import judge_image
from tornpage.properties.judge.shape import SettingsOverride


@pytest.mark.parametrize(("has_pool", "verdict"), [(False, "unknown"), (True, "holds")])
def test_only_flushed_records_are_due(has_pool: bool, verdict: str, tmp_path: Path) -> None:
    results = filled(tmp_path)
    (tmp_path / "abort").touch()
    data = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()
    told = {
        put.offset: AcknowledgedRecord(
            put.offset,
            put.size_bytes,
            hashlib.sha256(data[put.offset : put.offset + put.size_bytes]).hexdigest(),
            flushed=number < 6,
        )
        for number, put in enumerate(results)
    }
    change(tmp_path, results[6].offset, bytes(FILE_BYTES - results[6].offset))
    override = SettingsOverride(switches={"transientStorePoolEnable": has_pool})
    judgement = judge_image(read_image(tmp_path), override=override, truth=Truth(told, False, False), samples=1)
    ruling = next(ruling for ruling in judgement.rulings if ruling.contract == 2)
    assert ruling.verdict == verdict, ruling
