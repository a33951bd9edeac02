"""`tornpage ask`."""

import json
from typing import Any

import click

from tornpage.cli import options
from tornpage.cli.document import refuse

__all__ = ["command"]

_NUMBERS = frozenset({"queue", "offset", "max", "from", "member"})


@click.command("ask")
@click.argument("address", metavar="HOST:PORT")
@click.argument("operation")
@click.argument("fields", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--timeout", type=options.Seconds(0.1, 3600), default=60.0, show_default=True, help="Seconds to wait.")
@click.option("--json", "as_json", is_flag=True, help="One line, for programs.")
def command(address: str, operation: str, fields: tuple[str, ...], timeout: float, as_json: bool) -> None:
    """Send one request to a node that `tornpage serve` runs, and print the answer as JSON.

    \b
    tornpage ask 127.0.0.1:10911 status
    tornpage ask 127.0.0.1:10911 put topic=T queue=0 body=hello keys=order-1
    tornpage ask 127.0.0.1:10911 get topic=T queue=0 offset=0 max=10
    tornpage ask 127.0.0.1:10911 drain
    tornpage ask 127.0.0.1:10911 become role=SLAVE master=127.0.0.1:10922
    tornpage ask 127.0.0.1:10931 append body=hello

    Operations: put, get, query, queues, commit, progress, flush, status, drain, become, follow. A member of a Raft
    group has append, read, entries, status, transfer. Exits with 2 if the node does not answer or refuses.
    """
    from tornpage.impl.serving.client import Client

    request: dict[str, Any] = {}
    for text in fields:
        name, separator, value = text.partition("=")
        if not name or not separator:
            refuse(f"{text!r} is no NAME=VALUE")
        if name == "op":
            refuse(f"{text!r} is no field; the operation is the second argument")
        if name in _NUMBERS and not value.isdecimal():
            refuse(f"{name} is a whole number from 0 on, not {value!r}")
        request[name] = int(value) if name in _NUMBERS else value
    try:
        with Client(address, timeout_s=timeout) as client:
            answer = client.ask(operation, **request)
    except OSError as error:
        refuse(f"no answer from {address}: {error.strerror or error}")
    answer.pop("id", None)
    click.echo(json.dumps(answer, indent=None if as_json else 2))
    if not answer["ok"]:
        raise SystemExit(2)
