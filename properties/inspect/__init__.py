"""Look into a store directory and return what is there as one document, free of presentation.

Guarantees of `properties.decode.store` hold: nothing is written, locked or recovered, and a live store is left alone.
A document has verdict, figures, rows and findings; the verdict is None where only a part was looked at, unless that
part is damaged already or could not be judged.
"""

from __future__ import annotations

from tornpage.properties.decode.opening import InspectError
from tornpage.properties.inspect.log import inspect_store
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import row_of
from tornpage.properties.inspect.views import VIEWS, inspect_view

__all__ = ["VIEWS", "InspectError", "Query", "inspect_store", "inspect_view", "row_of"]
