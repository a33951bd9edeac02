"""A checker of the JSON schema of documents (docs/schema/) for the few keywords in use."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["RUN_SCHEMA", "Schema", "definition", "objections", "sample"]

Schema = Mapping[str, Any]

RUN_SCHEMA: Schema = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "run.json").read_text())

_KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties",
    "items", "enum", "const", "minimum", "anyOf",
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list, tuple), "object": (dict,),
}  # fmt: skip
_SAMPLES: dict[str, Any] = {
    "string": "x", "integer": 1, "number": 1.5, "boolean": True, "null": None, "array": [], "object": {},
}  # fmt: skip


def definition(name: str) -> Schema:
    """Return a definition of the schema; the empty name is the run document itself."""
    found: Schema = RUN_SCHEMA["$defs"][name] if name else RUN_SCHEMA
    return found


def objections(value: Any, schema: Schema = RUN_SCHEMA, place: str = "run") -> Iterator[str]:
    """Yield the errors of a value. Raises AssertionError for a keyword without a check here."""
    assert schema.keys() <= _KEYWORDS, schema.keys() - _KEYWORDS
    if "$ref" in schema:
        yield from objections(value, definition(schema["$ref"].rpartition("/")[2]), place)
    if "anyOf" in schema and all(any(objections(value, each)) for each in schema["anyOf"]):
        yield f"{place} is none of what it may be"
    if "const" in schema and value != schema["const"]:
        yield f"{place} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}"
    if "type" in schema and not any(_is_a(value, name) for name in _types(schema)):
        yield f"{place} is no {schema['type']}"
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        yield f"{place} is less than {schema['minimum']}"
    if isinstance(value, list | tuple) and "items" in schema:
        for number, item in enumerate(value):
            yield from objections(item, schema["items"], f"{place}[{number}]")
    if isinstance(value, dict):
        yield from _of_object(value, schema, place)


def _of_object(value: dict[str, Any], schema: Schema, place: str) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{place} has no {name}" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        if name in properties:
            yield from objections(item, properties[name], f"{place}.{name}")
        elif others is False:
            yield f"{place} has the unknown key {name}"
        elif others is not True:
            yield from objections(item, others, f"{place}.{name}")


def _types(schema: Schema) -> list[str]:
    named = schema["type"]
    return [named] if isinstance(named, str) else list(named)


def _is_a(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, _TYPES[name])


def sample(schema: Schema, *, full: bool) -> Any:
    """Return a value that the schema allows.

    It has all keys and an item in each list, or as little as possible.
    """
    if "$ref" in schema:
        return sample(definition(schema["$ref"].rpartition("/")[2]), full=full)
    if "anyOf" in schema:
        return sample(schema["anyOf"][0 if full else -1], full=full)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = _types(schema)[0]
    if kind == "array" and "items" in schema and full:
        return [sample(schema["items"], full=full)]
    if kind == "object":
        properties = schema.get("properties", {})
        names = properties if full else schema.get("required", ())
        return {name: sample(properties[name], full=full) for name in names}
    return _SAMPLES[kind]
