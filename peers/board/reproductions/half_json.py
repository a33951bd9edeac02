"""Open a TinyDB whose last insert was cut at the old size of the file.

TinyDB overwrites its JSON file in place. A power loss in an insert may keep the new content and the old size. The
insert was not answered. Ends with 1 if the database does not open, with 0 if it does.
"""

import os
import sys
import tempfile

import tinydb

with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "x.json")
    database = tinydb.TinyDB(path)
    database.insert({"record": "one"})
    size = os.path.getsize(path)
    database.insert({"record": "two"})
    database.close()
    os.truncate(path, size)
    try:
        records = len(tinydb.TinyDB(path))
    except ValueError as error:
        print(f"the file of two documents with the size of one: {type(error).__name__}: {error}")
        sys.exit(1)
    print(f"{records} documents")
