"""Open SQLite with the log of before its checkpoint, the last bytes zeros.

wal_checkpoint(TRUNCATE) moves the log into the database, syncs it, and cuts the log to 0 bytes. On a disk where an
unsynced truncation may leave the old size with zeros in freed pages, the log then ends with a torn frame. Its earlier
frames are valid and older than the database. ext4, xfs and btrfs do not leave this. Ends with 1 if a committed row that
the checkpoint had made durable is missing.
"""

import os
import shutil
import sqlite3
import sys
import tempfile

with tempfile.TemporaryDirectory() as work:
    path, copy = os.path.join(work, "x.db"), os.path.join(work, "copy.db")
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("create table t (a)")
    database.execute("pragma wal_checkpoint(truncate)")
    for number in (1, 2):
        database.execute("insert into t values (?)", (number,))
    shutil.copy(path + "-wal", copy + "-wal")
    database.execute("pragma wal_checkpoint(truncate)")
    shutil.copy(path, copy)
    database.close()
    size = os.path.getsize(copy + "-wal")
    tail = size % 4096
    os.truncate(copy + "-wal", size - tail)
    os.truncate(copy + "-wal", size)
    database = sqlite3.connect(copy)
    rows = [row[0] for row in database.execute("select a from t")]
    database.close()
    print(f"two committed rows, a checkpoint, the last {tail} bytes of the old log as zeros: the rows are {rows}")
    sys.exit(0 if rows == [1, 2] else 1)
