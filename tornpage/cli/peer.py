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
    """


@command.command("install", short_help="Fetch a release and compile our driver for it.")
@click.argument("name", type=click.Choice(["rocketmq"]))
@click.argument("version")
@click.option("--offline", is_flag=True, help="Take jars from Maven's local repository only.")
@options.json_option
def _install(name: str, version: str, offline: bool, as_json: bool) -> None:
    """Resolve the jars of a release with Maven, and compile our driver against them.

    The cache directory is $XDG_CACHE_HOME/tornpage, or ~/.cache/tornpage. Needs a JDK and Maven.

    \b
    tornpage peer install rocketmq 4.9.3
    tornpage peer install rocketmq 4.9.3 --offline
    """
    from tornpage.peers.errors import PeerUnavailable
    from tornpage.peers.rocketmq.installing import install, require_version

    try:
        require_version(version)
        say(f"resolving {name} {version}")
        release = install(version, offline=offline)
    except PeerUnavailable as error:
        refuse(str(error))
    jars = len(list(release.jars.glob("*.jar")))
    text = f"{name}:{version} is installed: {jars} jars in {release.jars}"
    extra = {"peer": f"{name}:{version}", "directory": str(release.jars.parent)}
    emit(Outcome("peer install", None, {"jars": jars}, extra=extra), as_json=as_json, text=text)


@command.command("list", short_help="The known releases.")
@options.json_option
def _list(as_json: bool) -> None:
    """List the known releases, and whether each is installed.

    \b
    tornpage peer list
    """
    from tornpage.peers.rocketmq.installing import VERSIONS, cache_directory, is_installed

    rows = [
        {
            "peer": f"rocketmq:{version}",
            "installed": is_installed(version),
            "directory": str(cache_directory() / version),
        }
        for version in VERSIONS
    ]
    lines = [
        f"{row['peer']:<16} " + (f"installed in {row['directory']}" if row["installed"] else "not installed")
        for row in rows
    ]
    figures = {"peers": len(rows), "installed": sum(bool(row["installed"]) for row in rows)}
    emit(Outcome("peer list", None, figures, extra={"peers": rows}), as_json=as_json, text="\n".join(lines))
