"""The result of a run with a peer as a document and as text."""

import shutil
from pathlib import Path
from typing import Any

from tornpage import __version__
from tornpage.cli.document import Outcome, warn
from tornpage.outcomes.inspecting import printable
from tornpage.peers.exhausting import PeerExhaustion
from tornpage.peers.exploring import PeerExploration, PeerPlan, Writer
from tornpage.peers.own_histories import OWN_OVERRIDE
from tornpage.peers.rocketmq.store import Mode
from tornpage.peers.verdicts import Example
from tornpage.properties.explore.exhaustive.explored import Plan as ExhaustPlan
from tornpage.properties.findings import Finding
from tornpage.properties.judge.image import write_image
from tornpage.properties.judge.rulings import NAMES, counted
from tornpage.properties.program.case import Case, describe
from tornpage.reports.results.intervals import interval
from tornpage.reports.results.power_loss import ANY
from tornpage.run.directory import IMAGES

__all__ = ["exhaust_command", "exhaustion_outcome", "peer_command", "peer_outcome"]

_WRITERS = {"ours": "our store", "peer": "the peer"}


def peer_command(plan: PeerPlan, peer: str, *, shards: int = 0) -> str:
    """Return the command that runs a plan again; with `shards` it is a campaign."""
    settings = plan.settings
    parts = (
        f"--peer {peer}",
        f"--shards {shards} --states-per-shard {plan.states}" if shards else "",
        f"--states {plan.states}" if plan.states is not None and not shards else "",
        f"--seconds {plan.seconds:g}" if plan.seconds is not None else "",
        f"--every {plan.every} --seed {plan.seed} --disk {settings.disk} --file-bytes {settings.file_bytes}",
        f"--workers {plan.workers}" if plan.workers > 1 else "",
        f"--writer {plan.writer}" if plan.writer != "ours" else "",
        f"--peer-mode {plan.mode}" if plan.mode != "light" else "",
        f"--bug {settings.bug}" if settings.bug else "",
    )
    return " ".join(["tornpage campaign" if shards else "tornpage explore crashes", *filter(None, parts)])


def exhaust_command(plan: ExhaustPlan, peer: str, *, mode: Mode, workers: int, seconds: float | None) -> str:
    """Return the command that runs an exhaustive plan with a peer again."""
    parts = (
        f"tornpage exhaust --peer {peer} --ops {plan.ops} --facts {plan.facts} --disk {plan.disk} --mode {plan.mode}",
        f"--file-bytes {plan.file_bytes} --letters {','.join(plan.operation_names)}",
        f"--peer-mode {mode}" if mode != "light" else "",
        f"--workers {workers}" if workers > 1 else "",
        f"--seconds {seconds:g}" if seconds is not None else "",
        f"--bug {plan.bug}" if plan.bug else "",
    )
    return " ".join(filter(None, parts))


def exhaustion_outcome(result: PeerExhaustion, *, command: str) -> tuple[Outcome, str]:
    """Return the outcome and the text of an exhaustive run with a peer.

    The verdict is that of our store. What a peer breaks is a result.
    """
    verdict = "broken" if result.own_workloads else "vacuous" if result.is_cut or not result.states else "holds"
    figures: dict[str, float | int] = {
        "ops": result.ops,
        "workloads": result.workloads,
        "states": result.states,
        "images": result.images,
        "certified": result.certified,
        "own_workloads_broken": result.own_workloads,
        "peer_states_broken": result.peer_states,
        "workloads_kept": result.again,
        **{f"peer_broken_{number}": count for number, count in sorted(result.peer_broken.items())},
    }
    rows: list[dict[str, Any]] = [
        {
            "number": number,
            "name": NAMES[number],
            "states_broken": count,
            "share": count / result.states,
            "sentence": printable(result.first[number][1]),
            "operations": [describe(each) for each in Case.from_token(result.first[number][0]).operations],
            "token": result.first[number][0],
        }
        for number, count in sorted(result.peer_broken.items())
    ]
    findings = [Finding("own", "broken", result.own_sentence).document()] if result.own_workloads else []
    peer = {"peer": result.peer, "states": result.states, "states_broken": result.peer_states, "by_number": rows}
    outcome = Outcome(
        "exhaust", verdict, figures, ["workloads_kept"], findings, extra={"peers": [peer]},
        interrupted=result.interrupted,
    )  # fmt: skip
    finished = (
        f"all workloads of up to {counted(result.ops, 'operation')}" if result.ops >= 0 else "no length is finished"
    )
    lines = [
        f"{counted(result.states, 'crash state')} of {counted(result.workloads, 'workload')}, "
        f"{counted(result.images, 'image')}; {finished}",
        "",
        f"{result.peer}: {counted(result.peer_states, 'state')} with a broken promise, "
        f"{result.peer_states / max(result.states, 1):.1%} of the states of the bound",
    ]
    for row in rows:
        lines.append(f"{row['number']:>3}  {row['name']:<16}{row['states_broken']:>7,}  {row['sentence']}")
        lines.append(f"     first: {'; '.join(row['operations']) or 'open'}")
    lines += [
        "",
        f"our store: {counted(result.own_workloads, 'workload')} with a broken promise {result.own_sentence}".rstrip(),
    ]
    lines += ["", command, f"verdict: {'interrupted' if result.interrupted else verdict}"]
    return outcome, "\n".join(lines)


def log_file_bytes(plan: PeerPlan) -> int:
    """Return the size of the log files of a run."""
    return OWN_OVERRIDE.numbers["mappedFileSizeCommitLog"] if plan.writer == "peer" else plan.settings.file_bytes


def peer_outcome(
    result: PeerExploration, plan: PeerPlan, *, command: str, out: str | None, verb: str = "explore"
) -> tuple[Outcome, str]:
    """Return the outcome and the text of a run with a peer.

    With `out` the first image of each number that the peer breaks is written below it. The verdict is that of our
    store. What a peer breaks is a result.
    """
    verdict = "broken" if result.own_states else "holds" if result.states else "vacuous"
    low, high = interval(result.peer_states, result.states)
    figures: dict[str, float | int] = {
        "states": result.states,
        "histories": result.histories,
        "distinct_images": result.distinct,
        "proven_legal": result.proven_legal,
        "own_states_broken": result.own_states,
        "peer_states_broken": result.peer_states,
        "peer_starts": result.starts,
        **{f"peer_broken_{number}": count for number, count in sorted(result.peer_broken.items())},
    }
    measured = {
        "seconds": result.seconds,
        "states_per_s": result.states / max(result.seconds, 1e-9),
        "peer_s": result.peer_seconds,
    }
    rows = [
        {
            "number": number,
            "name": NAMES[number],
            "states_broken": count,
            "share": count / result.states,
            "low": interval(count, result.states)[0],
            "high": interval(count, result.states)[1],
            "sentence": result.examples[number].ruling.sentence,
        }
        for number, count in sorted(result.peer_broken.items())
    ]
    peer: dict[str, Any] = {
        "peer": result.peer,
        "writer": plan.writer,
        "disk": plan.settings.disk,
        "mode": plan.mode,
        "states": result.states,
        "states_broken": result.peer_states,
        "share": result.peer_states / max(result.states, 1),
        "low": low,
        "high": high,
        "by_number": rows,
        "by_flush": {name: dict(counts) for name, counts in sorted(result.by_flush.items())},
    }
    outcome = Outcome(
        verb,
        verdict,
        figures | measured,
        list(measured),
        [Finding(f"contract-{n}", "broken", text).document() for n, text in sorted(result.own_sentences.items())],
        seed=plan.seed,
        extra={"peers": [peer]},
        interrupted=result.interrupted,
        tables=peer_tables(result, plan, command),
    )
    if out is not None:
        _write_images(result, Path(out) / IMAGES, outcome)
    return outcome, _text(result, outcome, rows, command, writer=plan.writer)


def peer_tables(result: PeerExploration, plan: PeerPlan, command: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a run: totals, shares by flush type, and smallest examples."""
    about = {"peer": result.peer, "writer": plan.writer, "disk": plan.settings.disk}
    shares = [
        {
            **about, "flush": flush, "number": number, "name": NAMES.get(number, "any number"), "broken": count,
            "states": counts["states"],
        }
        for flush, counts in sorted(result.by_flush.items())
        for number, count in [(ANY, counts["broken"]), *sorted(result.numbers_by_flush[flush].items())]
    ]  # fmt: skip
    examples = [{**about, **_example_row(example)} for _, example in sorted(result.examples.items())]
    totals = [
        {
            **about, "states": result.states, "histories": result.histories, "distinct": result.distinct,
            "proven_legal": result.proven_legal, "own_states": result.own_states, "mode": plan.mode,
            "seed": plan.seed, "every": plan.every, "log_file_bytes": log_file_bytes(plan),
        }
    ]  # fmt: skip
    caption = {"source": f"crash states, tornpage {__version__}", "seed": plan.seed, "command": command}
    rows = {"peer-runs": totals, "peer-shares": shares, "peer-examples": examples}
    return {name: {"rows": each, "caption": caption} for name, each in rows.items()}


def _example_row(example: Example) -> dict[str, Any]:
    ruling, operations = example.ruling, example.case.operations
    return {
        "number": ruling.contract,
        "name": ruling.name,
        "flush": "sync" if example.sync_flush else "async",
        "operations": [describe(operation) for operation in operations],
        "losses": example.losses,
        "due": example.due,
        "peer_kept": example.peer_kept,
        "own_kept": example.own_kept,
        "sentence": printable(ruling.sentence),
        "expected": printable(ruling.expected),
        "found": printable(ruling.found),
        "own_broken": example.own_broken,
        "token": example.case.token(),
        "how": example.how,
    }


def _write_images(result: PeerExploration, directory: Path, outcome: Outcome) -> None:
    for number, example in sorted(result.examples.items()):
        try:
            shutil.rmtree(directory / f"contract-{number}", ignore_errors=True)  # of the run that this one resumes
            write_image(example.image, directory / f"contract-{number}")
        except OSError as error:
            warn(f"an image was not written to {directory}: {error.strerror or error}")
            outcome.unwritten = True
            return


def _text(
    result: PeerExploration, outcome: Outcome, rows: list[dict[str, Any]], command: str, *, writer: Writer
) -> str:
    low, high = interval(result.peer_states, result.states)
    share = result.peer_states / max(result.states, 1)
    lines = [
        f"{counted(result.states, 'crash image')} of {counted(result.histories, 'history', 'histories')} of "
        f"{_WRITERS[writer]}, "
        f"{result.distinct:,} distinct in their history, {result.proven_legal:,} proven legal; "
        f"{outcome.figures['states_per_s']:.1f} states/s",
        "",
        f"{result.peer}: {counted(result.peer_states, 'image')} with a broken promise, {share:.1%} "
        f"(95 % interval {low:.1%} to {high:.1%})",
    ]
    for name, counts in sorted(result.by_flush.items()):
        lines.append(f"  {name} flush: {counts['broken']:,} of {counts['states']:,}")
    for row in rows:
        lines.append(
            f"{row['number']:>3}  {row['name']:<16}{row['states_broken']:>7,} {row['share']:>7.1%}  {row['sentence']}"
        )
    lines += ["", f"our store: {counted(result.own_states, 'image')} with a broken promise"]
    lines += [f"{number:>3}  {text}" for number, text in sorted(result.own_sentences.items())]
    lines += result.lost
    lines += ["", command, f"verdict: {'interrupted' if result.interrupted else outcome.verdict}"]
    return "\n".join(lines)
