"""`tornpage peer` and its verbs."""

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse, say

__all__ = ["command"]


@click.group("peer")
def command() -> None:
    """Install other implementations of the store.

    `judge` and `explore crashes` open the same images with them.

    \b
    tornpage peer install rocketmq 4.9.3
    tornpage judge STORE --peer rocketmq:4.9.3
    tornpage peer matrix
    tornpage peer consumers
    tornpage peer raft
    """


@command.command("install", short_help="Fetch a release and compile our driver for it.")
@click.argument("name", type=click.Choice(["rocketmq", "rocketmq-client", "rocketmq-dledger"]))
@click.argument("version", metavar="VERSION|all")
@click.option("--offline", is_flag=True, help="Take jars from Maven's local repository only.")
@options.json_option
def _install(name: str, version: str, offline: bool, as_json: bool) -> None:
    """Resolve the jars of a release with Maven, and compile our driver against them.

    The cache directory is $XDG_CACHE_HOME/tornpage, or ~/.cache/tornpage. Needs a JDK and Maven. rocketmq-client is
    the library of consumers, which `peer consumers` runs. rocketmq-dledger is the store with DLedger 0.2.3, which
    `peer raft` and `bugs holes --raft` run.

    \b
    tornpage peer install rocketmq 4.9.3
    tornpage peer install rocketmq 4.9.3 --offline
    tornpage peer install rocketmq all
    tornpage peer install rocketmq-client 4.9.3
    tornpage peer install rocketmq-dledger 4.9.3
    """
    from tornpage.peers.errors import PeerUnavailable
    from tornpage.peers.rocketmq.installing import COMPONENTS, install, require_version

    component = next(each for each in COMPONENTS if each.name == name)
    rows, lines = [], []
    try:
        if version != "all":
            require_version(version, component)
        for each in component.versions if version == "all" else (version,):
            say(f"resolving {name} {each}")
            release = install(each, component, offline=offline)
            jars = len(list(release.jars.glob("*.jar")))
            rows.append({"peer": f"{name}:{each}", "directory": str(release.jars.parent), "jars": jars})
            lines.append(f"{name}:{each} is installed: {jars} jars in {release.jars}")
    except PeerUnavailable as error:
        refuse(str(error))
    figures = {"peers": len(rows), "jars": sum(int(str(row["jars"])) for row in rows)}
    emit(Outcome("peer install", None, figures, extra={"peers": rows}), as_json=as_json, text="\n".join(lines))


@command.command("list", short_help="The known releases.")
@options.json_option
def _list(as_json: bool) -> None:
    """List the known releases, and whether each is installed.

    \b
    tornpage peer list
    """
    from tornpage.peers.rocketmq.installing import COMPONENTS, cache_directory, is_installed

    rows = [
        {
            "peer": f"{component.name}:{version}",
            "installed": is_installed(version, component),
            "directory": str(cache_directory() / version),
        }
        for component in COMPONENTS
        for version in component.versions
    ]
    lines = [
        f"{row['peer']:<22} " + (f"installed in {row['directory']}" if row["installed"] else "not installed")
        for row in rows
    ]
    figures = {"peers": len(rows), "installed": sum(bool(row["installed"]) for row in rows)}
    emit(Outcome("peer list", None, figures, extra={"peers": rows}), as_json=as_json, text="\n".join(lines))


@command.command("matrix", short_help="Which release reads whose stores.")
@click.option(
    "--versions", metavar="VERSION,…", default="", help="Releases, separated by commas.  [default: all installed]"
)
@click.option(
    "--operations", type=click.IntRange(10, 2000), default=200, show_default=True, help="Puts of each writer."
)
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True, help="Releases at the same time.")
@click.option("--out", type=click.Path(file_okay=False), default=None, help="Directory that keeps stores and results.")
@click.option("--resume", is_flag=True, help="Continue in --out: use its finished stores and readers again.")
@click.option(
    "--page", type=click.Path(dir_okay=False), default=None, help="Write table and reasons into a page in Markdown."
)
@options.seed_option
@options.json_option
def _matrix(
    versions: str,
    operations: int,
    workers: int,
    out: str | None,
    resume: bool,
    page: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Let our store and each release write stores, and read those of all others.

    Each store is closed, killed, or closed after its first log files expired. All reads are compared with those of its
    writer. A difference without a known reason, and a finding of our store on a healthy store, make the verdict broken.

    \b
    tornpage peer matrix
    tornpage peer matrix --versions 4.9.3,5.3.1 --json
    tornpage peer matrix --out MATRIX --resume
    """
    from tornpage.outcomes.live_pages import write_part
    from tornpage.outcomes.peer_matrix import MatrixRequest, matrix_outcome, matrix_page, run_request

    if resume and out is None:
        refuse("--resume needs --out; give --out DIR too")
    chosen = tuple(filter(None, (version.strip() for version in versions.split(","))))
    request = MatrixRequest(chosen, operations, seed, workers, out, resume)
    matrix, missing = run_request(request)
    outcome, text = matrix_outcome(matrix, request, missing)
    if page is not None and not matrix.interrupted:
        again = f"tornpage peer matrix --operations {operations} --seed {seed}"
        write_part(
            page, "matrix", matrix_page(matrix, outcome, again + (f" --versions {versions}" if versions else ""))
        )
    emit(outcome, as_json=as_json, text=text)


@command.command("compare", short_help="Compare docs/against-java.md with live runs.")
@click.argument("stores", type=click.Path(), default="tests/data/golden")
@click.option("--page", type=click.Path(dir_okay=False), default="docs/against-java.md", show_default=True)
@click.option("--write", is_flag=True, help="Write rows that differ into the page.")
@options.json_option
def _compare(stores: str, page: str, write: bool, as_json: bool) -> None:
    """Run RocketMQ 4.9.3 on images of its own stores; compare figures with the page.

    STORES holds the images with their recorded steps [default: tests/data/golden]. RocketMQ opens each image, takes a
    few puts, is shut down and opened again. A row that differs makes the verdict broken. --write replaces such rows.

    \b
    tornpage peer compare
    tornpage peer compare STORES --page docs/against-java.md --write
    """
    from tornpage.outcomes.java_page import compare_outcome
    from tornpage.peers.errors import PeerUnavailable
    from tornpage.peers.rocketmq.installing import REFERENCE, installed

    try:
        release = installed(REFERENCE)
    except PeerUnavailable as error:
        refuse(str(error))
    outcome, text = compare_outcome(release, stores, page, write=write, progress=say)
    emit(outcome, as_json=as_json, text=text)


@command.command("consumers", short_help="Compare the consumer's library with that of 4.9.3.")
@click.option("--recorded", is_flag=True, help="Compare with answers that were recorded; needs no Java.")
@click.option("--record", type=click.Path(dir_okay=False), default=None, help="Write a recording into a file.")
@options.seed_option
@options.json_option
def _consumers(recorded: bool, record: str | None, seed: int, as_json: bool) -> None:
    """Compare parts of the consumer's library with the client of RocketMQ 4.9.3.

    Compared are the allocation of all numbers of queues and clients up to 16 and of 10,000 drawn views by each
    strategy, all fields of the process queue after each operation of 10,000 drawn sequences, and the bytes of 1,000
    drawn files of local offsets. A difference that is not listed makes the verdict broken. A listed difference that
    does not occur makes it vacuous.

    \b
    tornpage peer install rocketmq-client 4.9.3
    tornpage peer consumers
    tornpage peer consumers --seed 7 --json
    tornpage peer consumers --recorded
    """
    from tornpage.outcomes.consumers.against_java import consumers_outcome

    outcome, text = consumers_outcome(seed=seed, recorded=recorded, record=record)
    emit(outcome, as_json=as_json, text=text)


@command.command("raft", short_help="Exchange directories of a Raft log with DLedger 0.2.3.")
@click.option(
    "--entries", type=click.IntRange(20, 100_000), default=400, show_default=True, help="About how many entries."
)
@options.seed_option
@options.json_option
def _raft(entries: int, seed: int, as_json: bool) -> None:
    """Let DLedger 0.2.3 and tornpage's Raft log write the same directories in turns.

    File sizes and bodies are drawn. Each turn opens the directory, compares every entry, appends some, and ends with a
    close or a kill; tornpage also cuts. Every byte of the files is compared with the documented format. A log of
    DLedger after an old commit log, and a store of 4.9.3 on tornpage's log, are compared too. Needs Java.

    \b
    tornpage peer install rocketmq-dledger 4.9.3
    tornpage peer raft
    tornpage peer raft --entries 5000 --seed 7 --json
    """
    from tornpage.outcomes.raft.exchanging import exchange_outcome

    outcome, text = exchange_outcome(entries=entries, seed=seed)
    emit(outcome, as_json=as_json, text=text)
