"""Make a page of each kind from small documents, as commands make it."""

import json
from pathlib import Path
from typing import Any

from tests.reports.accounts import account
from tests.reports.conftest import page_map, run_document, write_run
from tests.reports.documents import history, many_findings, store_document
from tests.reports.experiment_results import write_experiments
from tests.reports.test_power_loss import example_of, run_of, shares_of, write_tables
from tests.reports.test_scoreboard import SMALL, SURVIVAL, score
from tornpage.reports.pages.board_page import render_board
from tornpage.reports.pages.cluster_page import read_cluster_example, render_cluster_example
from tornpage.reports.pages.counterexample import read_counterexample, render_counterexample
from tornpage.reports.pages.power_loss_page import build_power_loss_page
from tornpage.reports.pages.run_page import build_report
from tornpage.reports.pages.simulation_page import build_simulation_page
from tornpage.reports.pages.store_page import read_store_report, render_store_report
from tornpage.reports.pages.trends import render_trends
from tornpage.reports.results.history import history_rows

__all__ = ["KINDS", "mutant", "pages_of_each_kind", "sweep_point"]

KINDS = (
    "prove", "run", "scoreboard", "counterexample", "cluster", "store", "simulation", "sweep", "power-loss", "trends",
    "board",
)  # fmt: skip


def pages_of_each_kind(folder: Path) -> dict[str, Path]:
    """Return a page of each kind, by name."""
    texts = {
        "counterexample": render_counterexample(read_counterexample(account())),
        "cluster": render_cluster_example(read_cluster_example(cluster_account())),
        "store": render_store_report(read_store_report(store_document())),
        "trends": render_trends(history_rows(history(), path=folder)),
        "board": render_board(["store", "version", "mode", "disk", "verdict"], [board_row()], "tornpage board"),
    }
    pages = {name: folder / f"{name}.html" for name in texts}
    for name, path in pages.items():
        path.write_text(texts[name], encoding="utf-8")
    found = {"command": "explore", "verdict": "broken", "arguments": "explore --bug lying-flush"}
    pages["prove"] = build_report(write_run(folder / "prove"))
    pages["run"] = build_report(
        write_run(
            folder / "run",
            record=run_document() | found | {"findings": many_findings(3)},
            without=("steps", "put_latency", "at_risk", "stalls", "audit"),
            page_map={"rows": [page_map()]},
        )
    )
    pages["scoreboard"] = build_report(scoreboard(folder / "scoreboard"))
    pages["simulation"] = build_simulation_page(write_experiments(folder / "simulation"))
    pages["sweep"] = build_simulation_page(sweep(folder / "sweep"))
    peers = folder / "peers"
    write_tables(
        peers / "a", [run_of("rocketmq:4.9.3", "journal", own=1)],
        shares_of("rocketmq:4.9.3", "journal", {0: (30, 25), 7: (30, 25)}),
        [example_of("rocketmq:4.9.3", "journal", 7)],
    )  # fmt: skip
    pages["power-loss"] = build_power_loss_page(peers)
    return pages


def scoreboard(folder: Path) -> Path:
    rows = [mutant(number) for number in range(24)]
    return write_run(
        folder,
        record=run_document() | {"command": "bugs score", "verdict": "vacuous", "arguments": "bugs score"},
        without=("steps", "put_latency", "at_risk", "stalls", "audit", "discovery", "activation", "page_map"),
        scoreboard={
            "rows": [
                score(),
                score(strategy="machine", kills=0, median_s=None),
                score(bug="RMQ-B13", kills=0),
            ]
        },
        survival={"rows": SURVIVAL},
        small={"rows": [SMALL]},
        mutants={"rows": rows},
    )


def mutant(number: int, **changes: Any) -> dict[str, Any]:
    verdict = ("killed", "killed", "difference not judged", "not reached", "presumed equivalent", "no result")[
        number % 6
    ]
    return {
        "mutant": f"put.put_path:PutPath.append:removed-condition:{number}",
        "package": ("put", "log", "replication")[number % 3],
        "operator": ("removed condition", "comparison")[number % 2],
        "module": "put.put_path",
        "line": 40 + number,
        "before": "if size > limit:\n    raise TooLarge",
        "after": "raise TooLarge",
        "verdict": verdict,
        "strategy": "random" if verdict == "killed" else "",
        "seconds": 1.5 if verdict == "killed" else None,
        "end": "killed" if verdict == "killed" else "",
        "contract": 2,
        "sentence": "",
        "token": "",
        "unit_tests": ("killed", "survived", "")[number % 3],
    } | changes


def sweep_point(number: int, **changes: Any) -> dict[str, Any]:
    kind = ("SYNC_FLUSH", "ASYNC_FLUSH")[number % 2]
    return {
        "point": number, "seed": 3, "flush": f"{'sync' if kind == 'SYNC_FLUSH' else 'async'} {10 * number} ms",
        "flush_disk_type": kind, "pool": "", "allocation": "one-ahead", "warm": 0, "device": "vm-ext4",
        "load": "open 5000/s", "messages": 20000, "put_p50_us": 0.5, "put_p99_us": 100.0 * (number + 1),
        "at_risk_messages_max": 60 * number, "exposed_max_us": 4_000.0 * number, "put_refused": 0,
    } | changes  # fmt: skip


def sweep(folder: Path) -> Path:
    folder.mkdir(parents=True)
    lines = [json.dumps(sweep_point(number)) for number in range(10)]
    (folder / "points.jsonl").write_text("\n".join([*lines, json.dumps({"point": 10, "error": "it died"})]) + "\n")
    return folder


def cluster_account() -> dict[str, Any]:
    states = [
        {"node": node, "role": role, "begin": 0, "end": 112 - 113 * (node == 1), "flushed": 112, "waiting_puts": 1,
         "finding": ""}
        for node, role in enumerate(("SYNC_MASTER", "SLAVE"))
    ]  # fmt: skip
    moments = [
        {"number": number, "text": text, "at_ms": 10 * number, "crashed": 1 if number == 2 else -1,
         "effects": ["bytes lost by a reset"], "nodes": states}
        for number, text in enumerate(("put()", "run_all()", "crash_node(node=1)"))
    ]  # fmt: skip
    frame = {"link": 0, "sender": 1, "receiver": 0, "what": "ACK received 112", "size_bytes": 24, "arrived_bytes": 12}
    return {
        "contract": 15, "sentence": "the master acknowledges more as durable than a replica has", "expected": "112",
        "found": "0", "bug": "RB01", "settings": {"nodes": 2}, "token": "tc1-" + "eNqNkEFrwzAMhf9K" * 6,
        "version": "0.2.0", "nodes": 2, "operations": 3, "lost_writes": 2, "moments": moments, "frames": [frame] * 4,
        "frames_left_out": 2,
    }  # fmt: skip


def board_row() -> dict[str, Any]:
    return {
        "cells": ["sqlite", "3.45", "synchronous=FULL", "posix-strict", "holds"], "verdict": "holds",
        "quote": "a transaction is durable after COMMIT", "source": "sqlite.org", "stories": ["1 message is lost"],
        "confirmation": "", "creation": [],
    }  # fmt: skip
