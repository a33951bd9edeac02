"""A size that is text is refused with the name of the setting.

Symptom: `MessageStoreConfig(max_message_size="1")` raised TypeError, which names no setting. So did
`mapped_file_size_commit_log` and `access_message_in_memory_max_ratio`. Every other number raised BadConfig.
Cause: three checks compared the value before its type was known.
Fix: the type is checked first (impl/config/config_checks.py).
Found by: the operation `try_settings`.
"""

from typing import Any

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig


@pytest.mark.parametrize(
    "name", ["max_message_size", "mapped_file_size_commit_log", "access_message_in_memory_max_ratio"]
)
def test_number_as_text_is_refused(name: str) -> None:
    given: dict[str, Any] = {name: "1"}
    with pytest.raises(BadConfig, match=f"configuration {name}='1' is invalid"):
        MessageStoreConfig(**given)
