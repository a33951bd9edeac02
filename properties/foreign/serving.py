"""Serve requests to a Python store: one JSON object per line in, one per line out.

Bodies are base64. The first request opens the store, so that an error of the opening is an answer too. What the store
prints goes to standard error.
"""

import base64
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tornpage.properties.foreign.protocol import VERSION, Target
from tornpage.properties.foreign.shapes.adapters import answer_of_shape, answer_together
from tornpage.properties.foreign.shapes.registry import MESSAGES

__all__ = ["serve"]

_SENTENCE_CHARACTERS_MAX = 300
_VERBS_OF_EVERY_RUN: dict[str, tuple[str, ...]] = {
    MESSAGES: ("put",),
    "key-value": ("put", "delete", "get"),
    "queue": ("put", "take"),
    "log": ("append", "read", "bounds"),
    "file": ("write", "read"),
}


def serve(open_store: Callable[[Path], Target], directory: Path, *, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the store is closed or the input ends.

    A store with an attribute `open_many` that is true lets this process open other directories after a close.
    """
    store: Target | None = None

    def say(answer: dict[str, Any]) -> None:
        if "error" in answer:
            answer["error"] = answer["error"][:_SENTENCE_CHARACTERS_MAX]
        sys.stderr.flush()
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "open":
                store, directory, request = None, Path(request["dir"]), {"do": "hello"}
            if store is None:
                store = open_store(directory)
            if request["do"] == "together":
                answer_together(getattr(store, "shape", MESSAGES), store, request["calls"], say)
                continue
            answer = _answer(store, request)
            if request["do"] == "hello":
                answer["ahead"] = True  # requests are read from a buffer, one line after the other
                if getattr(store, "open_many", False):
                    answer["open"] = True
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(answer)
        if request["do"] == "close" and not getattr(store, "open_many", False):
            return


def _answer(store: Any, request: dict[str, Any]) -> dict[str, Any]:
    shape = getattr(store, "shape", MESSAGES)
    match request["do"]:
        case "hello":
            name = getattr(store, "name", type(store).__name__)
            _require_verbs(store, shape)
            return {"tornpage": VERSION, "name": name, "shape": shape, "promises": dict(store.promises)}
        case "flush":
            store.flush()
        case "close":
            store.close()
        case _ if shape == MESSAGES:
            return _answer_of_messages(store, request)
        case _:
            return answer_of_shape(shape, store, request)
    return {}


def _require_verbs(store: Any, shape: Any) -> None:
    """Require promises, and the methods of its shape that every run calls.

    Raises TypeError and AttributeError.
    """
    if not isinstance(getattr(store, "promises", None), Mapping):
        raise TypeError(f"{type(store).__name__} has no promises; give it a mapping such as {{'durable': 'put'}}")
    verbs = ["flush", "close", *_VERBS_OF_EVERY_RUN.get(shape, ())]
    if shape == MESSAGES:
        promised = dict(store.promises)
        verbs += ["get"] * bool(promised.get("offsets", True)) + ["read"] * bool(promised.get("queues", True))
    missing = [verb for verb in verbs if not callable(getattr(store, verb, None))]
    if missing:
        raise AttributeError(f"{type(store).__name__} lacks {', '.join(missing)}; give it these methods")


def _answer_of_messages(store: Target, request: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "put":
            body = base64.b64decode(request["body"])
            offset, number = store.put(request["topic"], request["queue"], body, request["keys"])
            return {"offset": offset, "number": number}
        case "get":
            return {"body": _coded(store.get(request["offset"]))}
        case "read":
            return {"body": _coded(store.read(request["topic"], request["queue"], request["number"]))}
        case "find":
            return {"bodies": [_coded(body) for body in store.find(request["topic"], request["key"])]}
        case unknown:
            raise ValueError(f"unknown request {unknown!r}")


def _coded(body: bytes | None) -> str | None:
    return None if body is None else base64.b64encode(body).decode()
