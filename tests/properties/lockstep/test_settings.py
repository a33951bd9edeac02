"""Test that wrong checks of settings are found."""

from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.config import config_checks, message_store_config
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig
from tornpage.model.broker.settings import LIMITS, cases
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.settings import settings_are_checked


def try_all() -> None:
    for part in range(4):
        settings_are_checked(part)


def test_all_settings_are_checked_rightly() -> None:
    try_all()
    assert {name for name, value, is_valid in cases() if is_valid} >= set(LIMITS)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("_require_numbers", lambda config: None),
        ("_require_policies", lambda config: None),
        ("require_log_paths", lambda *paths: None),
    ],
)
def test_missing_check_is_found(monkeypatch: pytest.MonkeyPatch, name: str, check: Callable[..., Any]) -> None:
    monkeypatch.setattr(config_checks, name, check)
    with pytest.raises(GuaranteeBroken, match=r"contract 8: the setting .* is not checked rightly"):
        try_all()


def test_check_of_valid_settings_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: MessageStoreConfig) -> None:
        raise BadConfig("max_message_size", config.max_message_size, "use another one")

    monkeypatch.setattr(message_store_config, "require_possible", refuse)
    with pytest.raises(GuaranteeBroken, match="is not checked rightly"):
        try_all()
