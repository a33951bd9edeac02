"""Every setting of the store has a docstring, and every time setting states its unit."""

import ast
import inspect
import re
from collections.abc import Iterator

from tornpage.impl.config import message_store_config, policy, retention_policy

_TIME_NAME = re.compile(r"(_|^)(interval|timeout|time|mills)(_|$)")
_NO_DURATION = {"time_zone"}
_UNIT = re.compile(r"\b(ms|hours)\b")


def settings_of(module: object) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of each annotated attribute of the classes in a module."""
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for setting, following in zip(kind.body, [*kind.body[1:], None], strict=True):
            if isinstance(setting, ast.AnnAssign) and isinstance(setting.target, ast.Name):
                text = following.value if isinstance(following, ast.Expr) else None
                yield setting.target.id, str(text.value) if isinstance(text, ast.Constant) else ""


def test_each_setting_has_a_docstring() -> None:
    assert [name for name, text in settings_of(message_store_config) if not text] == []


def test_time_settings_state_their_unit() -> None:
    settings = [
        setting for module in (message_store_config, policy, retention_policy) for setting in settings_of(module)
    ]
    times = {name: text for name, text in settings if _TIME_NAME.search(name) and name not in _NO_DURATION}
    assert len(times) > 15
    assert [name for name, text in times.items() if not _UNIT.search(text)] == []
