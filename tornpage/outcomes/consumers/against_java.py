"""Run `tornpage peer consumers`: compare the consumer's library with that of RocketMQ."""

from __future__ import annotations

import json
from time import process_time
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import counted_progress
from tornpage.run.writing import write_whole

if TYPE_CHECKING:
    from tornpage.peers.consumers.comparing import Comparison

__all__ = ["consumers_outcome"]

_SHOWN_CHARACTERS = 400


def consumers_outcome(*, seed: int, recorded: bool, record: str | None) -> tuple[Outcome, str]:
    """Compare all suites with a live library, or with the recording that the package has.

    `record` is a file that gets a recording of the live library. The verdict is "broken" for a difference that is not
    listed, and "vacuous" for a listed difference that did not occur.
    """
    from tornpage.peers.consumers.comparing import RECORDED, SUITES, compare, compare_recorded, recording
    from tornpage.peers.errors import PeerFailed, PeerUnavailable
    from tornpage.peers.rocketmq.installing import CLIENT, REFERENCE, installed
    from tornpage.peers.rocketmq.process import Limits, Process

    if recorded and (seed or record is not None):
        refuse("--recorded compares with the recording of seed 0; leave out --seed and --record")
    if record is not None and seed:
        refuse("a recording has seed 0; leave out --seed")
    began = process_time()
    with counted_progress("comparing", total=sum(suite.chunks for suite in SUITES), unit="chunks") as show:
        if recorded:
            found = compare_recorded(json.loads(RECORDED.read_text(encoding="utf-8")), progress=show)
        else:
            try:
                with Process(installed(REFERENCE, CLIENT), Limits(heap_mib=512)) as process:
                    found = compare(process, seed=seed, progress=show)
            except (PeerUnavailable, PeerFailed) as error:
                refuse(str(error))
    unwritten = record is not None and not _written(record, recording(found, REFERENCE))
    return _outcome(found, seed, process_time() - began, recorded=recorded, unwritten=unwritten)


def _written(path: str, text: str) -> bool:
    from tornpage.cli.document import warn

    try:
        write_whole(path, text)
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror or error}")
        return False
    return True


def _outcome(found: Comparison, seed: int, seconds: float, *, recorded: bool, unwritten: bool) -> tuple[Outcome, str]:
    from tornpage.peers.consumers.comparing import SUITES

    differing = sum(found.differing.values())
    verdict = "broken" if differing else "vacuous" if found.unused_rules else "holds"
    findings: list[dict[str, Any]] = [
        {
            "code": "differs-from-java", "severity": "broken",
            "sentence": f"{each.suite}, chunk {each.chunk}: ours gives another answer than Java",
            "case": each.case, "java": each.java, "ours": each.ours,
        }
        for each in found.differences
    ]  # fmt: skip
    findings += [
        {"code": "differs-from-recording", "severity": "broken", "sentence": f"{name}: other answers than recorded"}
        for name in found.unknown
    ]
    findings += [
        {
            "code": "unused-difference",
            "severity": "vacuous",
            "sentence": f"listed difference {rule!r} did not occur",
        }
        for rule in found.unused_rules
    ]
    figures: dict[str, float | int] = {
        **{f"compared_{name.replace(' ', '_')}": count for name, count in found.compared.items()},
        "differing": differing,
        "listed_differences": sum(len(suite.rules) for suite in SUITES),
        "cpu_seconds": seconds,
    }
    rules = [
        {"suite": suite.name, "rule": rule, "sentence": sentence, "answers": found.rules[f"{suite.name}: {rule}"]}
        for suite in SUITES
        for rule, sentence in suite.rules.items()
    ]
    outcome = Outcome(
        "peer consumers", verdict, figures, ["cpu_seconds"], findings, seed=None if recorded else seed,
        extra={"differences": rules}, unwritten=unwritten,
    )  # fmt: skip
    return outcome, _text(found, rules, recorded=recorded)


def _text(found: Comparison, rules: list[dict[str, Any]], *, recorded: bool) -> str:
    beside = "the recording of RocketMQ 4.9.3" if recorded else "RocketMQ 4.9.3"
    unit = "chunks" if recorded else "cases"
    lines = [
        f"{name:<14} {count:>8,} answers compared with {beside}: {found.differing[name]} {unit} differ"
        for name, count in found.compared.items()
    ]
    lines += ["", "listed differences, and the answers that they changed:"]
    lines += [f"  {row['answers']:>7,}  {row['suite']}: {row['sentence']}" for row in rules]
    for each in found.differences:
        lines += ["", f"{each.suite}, chunk {each.chunk}: {_short(each.case)}"]
        lines += [f"  Java  {_short(each.java)}", f"  ours  {_short(each.ours)}"]
    lines += [f"{name}: other answers than recorded" for name in found.unknown]
    lines += [f"listed difference {rule!r} did not occur" for rule in found.unused_rules]
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
