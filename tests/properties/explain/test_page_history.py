"""Test the history of pages up to a crash: entries, changes by version, and survivors."""

import pytest

from tornpage.model.operations import Crash, Flush, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.journal import FileSynced, PageWritten
from tornpage.properties.explain.crash_context import CrashContext
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.explain.page_history import histories_of, versions_of
from tornpage.properties.program.case import Case, Settings

LOG = f"/store/commitlog/{0:020}"
FACT = f"page {LOG} 0"


def crash_of(survived: dict[str, int | tuple[int, int, int]], *, kill: bool = False) -> CrashContext:
    """Return the crash of a case with a put, a flush and two more puts in page 0 of the log."""
    puts = (Put(body_bytes=100), Flush(), Put(body_bytes=200), Put(body_bytes=300))
    crash = Crash(kill=True) if kill else Crash(survived=survived, others="kept")
    with choose_tracker("auto") as tracker:
        witness = Witness()
        replay(Case(Settings(file_bytes=8192), (*puts, crash)), tracker=tracker, witness=witness)
    assert witness.crash is not None
    return witness.crash


def test_entries_are_those_of_the_journal() -> None:
    crash = crash_of({})
    journal = crash.journal
    for history in histories_of(crash):
        inode = next(n for n, state in crash.state.inodes.items() if state.name == history.file)
        for number in history.writes:
            entry = journal[number]
            assert isinstance(entry, PageWritten)
            assert (entry.inode, entry.page) == (inode, history.number)
        syncs = [n for n, e in enumerate(journal) if isinstance(e, FileSynced) and e.succeeded and e.inode == inode]
        assert list(history.syncs) == syncs
    assert {(history.file, history.number) for history in histories_of(crash)} >= {(LOG, 0), (LOG, 1)}


@pytest.mark.parametrize(
    ("survived", "kill"),
    [({FACT: 0}, False), ({FACT: 1}, False), ({FACT: (0, 1, 0b101)}, False), ({}, False), ({}, True)],
    ids=["lost", "older", "torn", "kept", "killed"],
)
def test_the_versions_that_survived_make_up_the_page_on_the_disk(
    survived: dict[str, int | tuple[int, int, int]], kill: bool
) -> None:
    crash = crash_of(survived, kill=kill)
    history = next(history for history in histories_of(crash) if (history.file, history.number) == (LOG, 0))
    versions = versions_of(crash, history, file_bytes=8192)
    inode = next(state for state in crash.state.inodes.values() if state.name == LOG)
    contents = [inode.page(0), *inode.versions[0]]
    page = bytearray(4096)
    for version in versions:
        sectors = range(8) if version.survived == "whole" else []
        if version.survived.startswith("sectors "):
            sectors = [int(number) for number in version.survived.removeprefix("sectors ").split(", ")]
        for sector in sectors:
            page[512 * sector : 512 * sector + 512] = contents[version.number][512 * sector : 512 * sector + 512]
    assert bytes(page) == crash.image.files[LOG][:4096]
    assert [version.entry for version in versions[1:]] == [n for n in history.writes if n > max(history.syncs)]


def test_lines_of_a_version_are_those_that_differ_from_the_one_before() -> None:
    crash = crash_of({})
    history = next(history for history in histories_of(crash) if (history.file, history.number) == (LOG, 0))
    first, *others = versions_of(crash, history, file_bytes=8192)
    inode = next(state for state in crash.state.inodes.values() if state.name == LOG)
    contents = [inode.page(0), *inode.versions[0]]
    assert first.lines[0].position == 0
    assert others
    for version in others:
        before, after = contents[version.number - 1], contents[version.number]
        differing = {at // 16 * 16 for at in range(4096) if before[at] != after[at]}
        told = {line.position + 16 * more for line in version.lines for more in range(line.repeats + 1)}
        assert told == differing
        assert version.changed == sum(a != b for a, b in zip(before, after, strict=True))
    assert any("record of T/0" in line.frame for version in others for line in version.lines)


@pytest.mark.parametrize(
    ("bug", "said"), [("", "cut and erased"), ("no-erase-after-cut", "cut, its bytes left as they were")]
)
def test_the_account_tells_what_recovery_made_of_what_it_cut(bug: str, said: str) -> None:
    crash = Crash(survived={f"page {LOG} 1": 0}, others="kept")
    case = Case(Settings(file_bytes=8192, bug=bug), (Put(body_bytes=3444), Put(body_bytes=452), crash))
    with choose_tracker("auto") as tracker:
        witness = Witness()
        replay(case, tracker=tracker, witness=witness)
        evidence = witness.evidence()
    assert evidence is not None
    assert evidence.account is not None
    assert [frame.recovery for frame in evidence.account.frames] == ["kept", said]
