"""Open a ZODB FileStorage that has zeros after its last transaction.

A power loss in a commit leaves such a tail: the file has its new size, and its new pages were not written. The commit
was not answered. Ends with 1 if the database does not open, with 0 if it does.
"""

import os
import sys
import tempfile

import transaction
import ZODB
from ZODB.FileStorage import FileStorage


def session(path, value=None):
    storage = FileStorage(path)
    try:
        database = ZODB.DB(storage)
    except Exception as error:
        storage.close()
        return f"{type(error).__name__}: {error}"
    connection = database.open()
    if value is not None:
        connection.root()["key"] = value
        transaction.commit()
    kept = dict(connection.root())
    connection.close()
    database.close()
    return kept


with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "Data.fs")
    session(path, "value")
    os.remove(path + ".index")  # a killed process leaves none that fits
    size = os.path.getsize(path)
    os.truncate(path, size + 150)
    first, second = session(path), session(path)
    print(f"150 zero bytes after {size}: the first open gives {first}; the second open gives {second}")
    sys.exit(0 if first == {"key": "value"} else 1)
