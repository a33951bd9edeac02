"""A run directory as the main job writes it, made by code from a seed."""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.reports.accounts import account
from tests.reports.browser import CHROMIUM, Browser
from tests.reports.documents import HOSTILE, history, many_findings, store_document, with_texts
from tornpage.reports.pages.counterexample import read_counterexample, render_counterexample
from tornpage.reports.pages.run_page import build_report
from tornpage.reports.pages.store_page import read_store_report, render_store_report
from tornpage.reports.pages.trends import render_trends
from tornpage.reports.results.history import history_rows

Tables = dict[str, Any]
MakeRun = Callable[..., Path]

_RATES = (1000, 5000, 20000)
_POLICIES = (
    # name, put latency (median µs, sigma), messages at risk per message/s
    ("sync group commit", 480.0, 0.45, 0.0),
    ("async, every 500 ms", 9.0, 0.6, 0.25),
    ("async, every 500 ms, at least 4 pages", 8.5, 0.6, 0.31),
    ("transient pool, 200 ms", 6.0, 0.5, 0.36),
)
_LOG = "/store/commitlog/{:020}"


def run_document() -> dict[str, Any]:
    return {
        "schema": 1,
        "command": "prove",
        "verdict": "holds",
        "figures": {"explore_states": 10000, "explore_states_per_s": 1843.217, "kills_killed": 200, "seconds": 141.9},
        "timings": ["explore_states_per_s", "seconds"],
        "findings": [],
        "seed": 0,
        "version": "0.1.0",
        "arguments": "prove --seed 0",
        "machine": {"cpus": 2, "kernel": "6.1.0-18-amd64", "file_system": "ext4", "python": "3.11.7"},
        "started": "2026-11-21T11:00:00Z",
    }


def table_documents(seed: int = 0) -> Tables:
    draw = random.Random(seed)
    simulated = {"source": "simulation", "seed": seed, "command": f"tornpage sim run --seed {seed} --messages 200000"}
    campaign = {"source": "crash campaign", "seed": seed, "command": f"tornpage explore --states 10000 --seed {seed}"}
    return {
        "steps": {"rows": _steps()},
        "put_latency": {"rows": _latencies(draw), "caption": simulated},
        "at_risk": {"rows": _risks(draw), "caption": simulated},
        "stalls": {"rows": _stalls(draw), "caption": simulated},
        "discovery": {"rows": _discovery(), "caption": campaign},
        "activation": {"rows": _activation(), "caption": campaign},
        "pairs": {"rows": _pairs(), "caption": campaign},
        "page_map": {"rows": [page_map()], "caption": {**campaign, "source": "canary"}},
        "audit": {"rows": _audits(), "caption": {"source": "audit on Spark", "command": "tornpage audit STORE"}},
    }


def page_map(pages: int = 4, files: int = 2) -> dict[str, Any]:
    fates = ("durable", "kept", "lost", "older", "torn")
    cells = [
        {"file": name, "number": 0, "versions": 1, "fate": "lost"}
        for name in ("/store/lock", "/store/config/durableFloor")
    ]
    cells += [
        {
            "file": _LOG.format(number * 16384),
            "number": page,
            "versions": 3,
            "fate": fates[(number * pages + page) % 5],
        }
        for number in range(files)
        for page in range(pages)
    ]
    return {
        "operations": [
            r"put(topic='%RETRY%group', body_bytes=2944, properties='TAGS\x01TagB')",
            r"put(body_bytes=900, properties='TAGS\x01TagB')",
            "crash(back=3, survived={'page /store/commitlog/00000000000000000000 0': 1})",
        ],
        "crash": 2,
        "disk": "posix-strict",
        "pages": cells,
        "facts": [
            {"fact": f"create {_LOG.format(16384)}", "fate": "kept"},
            {"fact": f"size {_LOG.format(16384)}", "fate": "kept"},
            {"fact": "size /store/lock", "fate": "lost"},
            {"fact": "unlink /store/abort (2)", "fate": "lost"},
        ],
        "sentences": [
            "directory operation of entry 0: durable since the sync at entry 1",
            "/store/checkpoint: 0 bytes, initial size, never synced before the crash",
            f"page 0 of {_LOG.format(0)}: version written at entry 28, after the last sync at entry 26",
            f"page 1 of {_LOG.format(0)}: initial content, last synced at entry 26",
        ],
        "sentence": "a byte cut by recovery is still on disk at offset 3079",
        "expected": "zero",
        "found": "",
        "token": "tp1-9c48e35c-" + "eNqNkEFrwzAMhf9KEfSWEKftYfFthbF7m8vYRnBcxTNLY2PLhRDy3yeX7TDYYbqJp" * 5,
        "bug": "no-erase-after-cut",
        "settings": {"file_bytes": 8192, "sync_flush": True},
    }


def _steps() -> list[dict[str, Any]]:
    sentences = {
        "kills": "200 writers killed by SIGKILL at 187 distinct steps",
        "check": "150 examples, 4,210 puts, 310 crashes, 290 recoveries",
        "explore": "10,000 crash states, 7,312 distinct images",
        "canary": "no-erase-after-cut found after 412 states, shrunk to 3 operations, replayed in another process",
        "simulate": "4 policies at 3 rates, 200,000 messages each",
    }
    rows = [
        {"step": step, "verdict": "holds", "sentence": sentence, "seconds": 20.25}
        for step, sentence in sentences.items()
    ]
    skipped = "skipped: there is no Java on this machine; install a Java 17 runtime"
    return [*rows, {"step": "campaign", "verdict": None, "sentence": skipped, "seconds": 0.0}]


def _latencies(draw: random.Random) -> list[dict[str, Any]]:
    rows = []
    for policy, median, sigma, _ in _POLICIES:
        samples = sorted(median * draw.lognormvariate(0, sigma) for _ in range(2000))
        samples[-12:] = [value * 40 for value in samples[-12:]]
        rows += [
            {"policy": policy, "latency_us": round(value, 3), "fraction": (place + 1) / len(samples)}
            for place, value in enumerate(samples)
        ]
    return rows


def _risks(draw: random.Random) -> list[dict[str, Any]]:
    rows = []
    for policy, median, sigma, risk in _POLICIES:
        for rate in _RATES:
            mean = rate * risk * draw.uniform(0.95, 1.05)
            latency = median * (1 + 4 * sigma) * (1 + rate / 30000)
            row = {"policy": policy, "rate_per_s": rate, "put_p99_us": latency}
            rows.append(row | {"at_risk_messages_mean": mean, "at_risk_messages_p99": 2.1 * mean})
    return rows


def _stalls(draw: random.Random) -> list[dict[str, Any]]:
    rows = []
    for allocation, median, calm in (("one-ahead", 90.0, 0.7), ("on-demand", 900.0, 0.0)):
        for roll in range(1, 41):
            stall = 0.0 if draw.random() < calm else median * draw.lognormvariate(0, 0.5)
            rows.append({"allocation": allocation, "roll": roll, "stall_us": stall})
    return rows


def _discovery() -> list[dict[str, Any]]:
    return [
        {
            "states": states,
            "distinct_images": round(8000 * (1 - 0.99994 ** (2 * states))),
            "distinct_recovered": round(240 * (1 - 0.9995**states)),
        }
        for states in [10, 20, 50, 100, 200, 350, 500, 750, *range(1000, 10001, 250)]
    ]


def _activation() -> list[dict[str, Any]]:
    counts = {"power loss": (10000, 10000, 7312), "torn page": (8211, 3120, 2876), "lost name": (912, 401, 388)}
    counts |= {"sync error": (1200, 0, 0), "clock step": (300, 300, 0)}
    return [{"fault": fault, "armed": a, "fired": f, "mattered": m} for fault, (a, f, m) in counts.items()]


def _pairs() -> list[dict[str, Any]]:
    counts = {("durability", "sync"): (90, 90), ("durability", "async"): (90, 90), ("fault_calls", "all"): (80, 31)}
    return [
        {"factor": factor, "level": level, "pairs": pairs, "exercised": exercised}
        for (factor, level), (pairs, exercised) in counts.items()
    ]


def _audits() -> list[dict[str, Any]]:
    finding = {"code": "record-crc", "severity": "error", "file": "commitlog/00000000000000016384", "offset": 20480}
    message = "the body of the record at 20480 does not have the checksum that its header names"
    return [
        {"store": "golden/01-plain-ascii", "what": "38 records, 3 queues", "verdict": "holds", "findings": []},
        {
            "store": "damaged copy",
            "what": "one page zeroed a moment before the audit; the audit must find it",
            "verdict": "broken",
            "findings": [{**finding, "message": message}, {**finding, "offset": None, "file": None, "message": "end"}],
        },
    ]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that writes a run directory.

    `without` names tables to leave out, others are replaced.
    """

    def make(
        name: str = "run", *, record: dict[str, Any] | None = None, without: tuple[str, ...] = (), **tables: Any
    ) -> Path:
        return write_run(tmp_path / name, record=record, without=without, **tables)

    return make


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return the one Chromium of this process."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def all_pages(page: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page of each kind by name.

    Most of them exist also with hostile text in all places (`… hostile`).
    """
    folder = tmp_path_factory.mktemp("pages")
    keep = frozenset({"fate", "kind", "severity", "verdict"})
    texts = {"run": page.read_text(encoding="utf-8")}
    for suffix, text_of in (("", str), (" hostile", _hostile)):
        case = with_texts(account(), text_of, keep=keep)
        texts[f"counterexample{suffix}"] = render_counterexample(read_counterexample(case))
        store = with_texts(store_document(), text_of, keep=keep)
        texts[f"store{suffix}"] = render_store_report(read_store_report(store))
    texts["trends"] = render_trends(history_rows(history(), path=folder))
    tables = with_texts(table_documents(), _hostile, keep=keep)
    record = with_texts(run_document() | {"findings": many_findings(3)}, _hostile, keep=keep)
    run = write_run(folder / "run", record=record, without=("put_latency", "at_risk", "discovery"), **tables)
    texts["run hostile"] = build_report(run).read_text(encoding="utf-8")
    paths = {name: folder / f"{name}.html" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    return paths


def _hostile(text: str) -> str:
    return f"{text}{HOSTILE}"


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of such a run, built once."""
    return build_report(write_run(tmp_path_factory.mktemp("page") / "run"))


def write_run(
    directory: Path, *, record: dict[str, Any] | None = None, without: tuple[str, ...] = (), **tables: Any
) -> Path:
    (directory / "tables").mkdir(parents=True)
    (directory / "run.json").write_text(json.dumps({**run_document(), **(record or {})}))
    given = {name: json.dumps(document) for name, document in tables.items()}
    for name, text in {**table_texts(), **given}.items():
        if name not in without:
            (directory / "tables" / f"{name}.json").write_text(text)
    return directory


@cache
def table_texts() -> dict[str, str]:
    """Return the files of the tables: thousands of rows, made once."""
    return {name: json.dumps(document) for name, document in table_documents().items()}
