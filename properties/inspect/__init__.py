"""Inspect a store directory and return its content as one document, free of presentation.

The guarantees of `properties.decode.store` hold: nothing is written, locked or recovered, and a live store is left
alone. A document has verdict, figures, rows and findings. The verdict is None if only a part was read, unless that part
is damaged or could not be judged.
"""

from __future__ import annotations

from tornpage.properties.decode.opening import InspectError
from tornpage.properties.inspect.log import inspect_store
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import row_of
from tornpage.properties.inspect.views import VIEWS, inspect_view

__all__ = ["VIEWS", "InspectError", "Query", "inspect_store", "inspect_view", "row_of"]
