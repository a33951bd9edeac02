"""`ask` refuses a wrong request and an answer that is none in one line.

Symptom: `tornpage ask` printed a traceback for an answer without `ok` (KeyError), for the field `op=x` (TypeError), and
for `--timeout nan` (ValueError). An answer with `"ok": "no"` exited with 0.
Cause: the fields were passed as arguments of a function, and the answer was taken for that of a node.
Fix: both are checked (impl/serving/client.py, tornpage/cli/nodes/ask.py).
Found by: trying the command line with wrong input, and with another server at the address.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """Serve one connection on loopback, which gets some bytes after its request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join()


@pytest.mark.parametrize("answer", [b'{"a":1}\n', b'{"ok":"no"}\n', b"{}\n"])
def test_answer_of_another_server_is_refused(answer: bytes) -> None:
    with answering(answer) as address:
        done = CliRunner().invoke(cli, ["ask", address, "status"])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "the peer is no node of tornpage: an answer has no `ok`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["put", "op=x"], "'op=x' is no field; the operation is the second argument"),
        (["put", "=x"], "'=x' is no NAME=VALUE"),
        (["put", "offset=-1"], "offset is a whole number from 0 on, not '-1'"),
        (["status", "--timeout", "nan"], "nan has no end; give a number of seconds"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_request_is_refused(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(cli, ["ask", "127.0.0.1:1", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_field_named_like_an_argument_is_sent() -> None:
    with answering(b'{"ok":true}\n') as address:
        done = CliRunner().invoke(cli, ["ask", address, "put", "self=x", "--json"])
    assert (done.exit_code, done.stdout) == (0, '{"ok": true}\n')
