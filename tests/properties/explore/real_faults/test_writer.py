"""Test that the judge of a directory finds missing and foreign parts."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tornpage.impl.store import MessageStore
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.real_faults.children import Page, Stored
from tornpage.properties.explore.real_faults.writer import Writer, config_of, judge_log

CONFIG = config_of(file_bytes=32 << 10, sync=True)


def written(directory: Path, *, puts: int = 20) -> Page:
    """Return the page of a writer that put and closed."""
    page = Page()
    writer = Writer(page, str(directory), CONFIG, rng=random.Random(1))
    for _ in range(puts):
        assert writer.put().stored
    writer.check_promised_messages("at once")
    assert writer.close() is None
    return page


def test_a_log_as_it_was_put_holds_over_openings(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert judge_log(str(tmp_path), page) == page.stored[-1].end
    writer = Writer(page, str(tmp_path), CONFIG, rng=random.Random(2))
    writer.check_promised_messages("again")
    assert writer.put().stored
    writer.close()
    assert page.stored[-1].number == 21
    assert judge_log(str(tmp_path), page) == page.stored[-1].end


def test_a_put_without_an_answer_may_be_there_and_nothing_else(tmp_path: Path) -> None:
    page = written(tmp_path)
    shorter = Page()
    for stored in page.stored[:-1]:
        shorter.store(stored)
    with pytest.raises(GuaranteeBroken, match="contract 1"):
        judge_log(str(tmp_path), shorter)
    shorter.begin("put 20", putting=20)
    assert judge_log(str(tmp_path), shorter) == page.stored[-1].end
    shorter.forget_after(page.stored[17].end)
    with pytest.raises(GuaranteeBroken, match="contract 1"):
        judge_log(str(tmp_path), shorter)


def test_what_was_promised_and_is_gone_is_contract_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = written(tmp_path)
    end = page.stored[-1].end
    page.store(Stored(21, end, end + 200, promised=False))
    assert judge_log(str(tmp_path), page) == end
    page.store(Stored(22, end + 200, end + 400, promised=True))
    with pytest.raises(GuaranteeBroken, match="contract 2: 1 messages answered PUT_OK are gone, message 22 first"):
        judge_log(str(tmp_path), page)
    real, opened = MessageStore.open, []

    def noted(*given: Any, **named: Any) -> MessageStore:
        opened.append(real(*given, **named))
        return opened[-1]

    monkeypatch.setattr(MessageStore, "open", noted)
    with pytest.raises(GuaranteeBroken, match="contract 2"):
        Writer(page, str(tmp_path), CONFIG, rng=random.Random(1))
    opened[0].close()  # its threads would outlive the test otherwise


@pytest.mark.parametrize("field", ["number", "offset", "end"])
def test_a_record_that_was_not_put_there_is_contract_1(tmp_path: Path, field: str) -> None:
    page, otherwise = written(tmp_path), Page()
    *before, last = page.stored
    wrong = {"number": last.number, "offset": last.offset, "end": last.end}
    wrong[field] += 1
    for stored in (*before, Stored(**wrong, promised=True)):
        otherwise.store(stored)
    with pytest.raises(GuaranteeBroken, match="contract 1"):
        judge_log(str(tmp_path), otherwise)


def test_a_store_that_opens_read_only_is_contract_7(tmp_path: Path) -> None:
    page = written(tmp_path)
    first = tmp_path / "commitlog" / f"{0:020d}"
    damaged = bytearray(first.read_bytes())
    damaged[60] ^= 1
    first.write_bytes(damaged)
    with pytest.raises(GuaranteeBroken, match="contract 7"):
        Writer(page, str(tmp_path), replace(CONFIG, check_whole_log_on_recover=True), rng=random.Random(1))
