"""List the rows of the board: stores, modes, documented promises and disks."""

import re
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tornpage.peers.board import places
from tornpage.peers.errors import PeerUnavailable

__all__ = ["ROWS", "Ecosystem", "Row", "named", "pinned"]

Ecosystem = Literal["python", "go", "rust", "java"]
DISKS = ("ext4", "journal", "posix-strict")
"""The disks of a store that does not name the file systems for which it promises anything."""

_HERE = Path(__file__).resolve().parent
_JAVA = "java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


@dataclass(frozen=True, slots=True)
class Row:
    """A store in one mode.

    `quote` is what its documents promise, `source` names the document. `package` is the pinned package, `part` names
    the version of a library inside it. `target` is the adapter with its arguments. `reproductions` name programs in
    peers/board/reproductions/ that show a failure of the row without tornpage. `allowed` says why the documents of the
    store allow a failure of the row.
    """

    name: str
    software: str
    mode: str
    ecosystem: Ecosystem
    package: str
    target: str
    quote: str
    source: str
    part: str = ""
    disks: Sequence[str] = DISKS
    reproductions: Sequence[str] = field(default=())
    allowed: str = ""

    @property
    def version(self) -> str:
        """The pinned version, with the version of a bundled library."""
        if not self.package:
            bare = sqlite3.sqlite_version if self.software == "SQLite" else sys.version.split()[0]
            return f"{bare} (Python {sys.version.split()[0]})" if self.software == "SQLite" else f"Python {bare}"
        version = pinned(self.ecosystem, self.package)
        return f"{self.part} ({self.package} {version})" if self.part else version

    @property
    def spec(self) -> str:
        """The target as `explore target` takes it."""
        match self.ecosystem:
            case "python":
                return f"tornpage.peers.board.python.{self.target}"
            case "go":
                return f"cmd:{places.go_program()} {self.target} {{dir}}"
            case "rust":
                return f"cmd:{places.rust_program()} {self.target} {{dir}}"
            case "java":
                place = places.java_directory()
                jars = "later" if self.package.endswith("later") else "lib"
                return f"cmd:{_JAVA} -cp {place}/classes:{place}/{jars}/* board.Board {self.target} {{dir}}"


def named(names: Sequence[str]) -> list[Row]:
    """Return the rows of some names, of a software or of an ecosystem; all without names.

    Raises PeerUnavailable for an unknown name.
    """
    if not names:
        return list(ROWS)
    found: dict[str, Row] = {}
    for name in names:
        matching = [row for row in ROWS if name.lower() in (row.name, row.software.lower(), row.ecosystem)]
        if not matching:
            raise PeerUnavailable(f"{name!r} is not on the board; `tornpage board list` has the names")
        found |= {row.name: row for row in matching}
    return list(found.values())


def pinned(ecosystem: Ecosystem, package: str) -> str:
    """Return the version of a package in the manifest of its ecosystem."""
    manifest, pattern = {
        "python": ("python/requirements.txt", rf"^{re.escape(package)}==(\S+)$"),
        "go": ("go/go.mod", rf"^\s*{re.escape(package)} (\S+)"),
        "rust": ("rust/Cargo.toml", rf'^{re.escape(package)} = .*"=([^"]+)"'),
        "java": ("java/pom.xml", rf"<{re.escape(package)}>([^<]+)</"),
    }[ecosystem]
    found = re.search(pattern, (_HERE / manifest).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise KeyError(f"{manifest} does not pin {package}")
    return found[1].removeprefix("v")


_SQLITE = "SQLite documentation, pragma.html, PRAGMA synchronous"
_QUEUES = "persist-queue README"

ROWS: Sequence[Row] = (
    Row(
        "sqlite-wal-full", "SQLite", "WAL, FULL", "python", "", "sqlite_log:SqliteLog(journal='wal',sync='full')",
        "The extra WAL sync following each transaction helps ensure that transactions are durable across a power loss.",
        _SQLITE,
    ),
    Row(
        "sqlite-wal-truncate", "SQLite", "WAL, FULL, wal_checkpoint(TRUNCATE)", "python", "",
        "sqlite_log:SqliteLog(journal='wal',sync='full',checkpoint='truncate')",
        "The extra WAL sync following each transaction helps ensure that transactions are durable across a power loss.",
        _SQLITE, reproductions=("sqlite_wal_tail.py",),
    ),
    Row(
        "sqlite-delete-extra", "SQLite", "DELETE, EXTRA", "python", "",
        "sqlite_log:SqliteLog(journal='delete',sync='extra')",
        "EXTRA provides additional durability if the commit is followed closely by a power loss.", _SQLITE,
    ),
    Row(
        "sqlite-delete-full", "SQLite", "DELETE, FULL", "python", "",
        "sqlite_log:SqliteLog(journal='delete',sync='full')",
        "This ensures that an operating system crash or power failure will not corrupt the database.",
        _SQLITE, reproductions=("unsynced_unlink.py",),
        allowed="Only EXTRA syncs the directory after the journal is deleted.",
    ),
    Row(
        "sqlite-truncate-full", "SQLite", "TRUNCATE, FULL", "python", "",
        "sqlite_log:SqliteLog(journal='truncate',sync='full')",
        "This ensures that an operating system crash or power failure will not corrupt the database.", _SQLITE,
    ),
    Row(
        "sqlite-persist-full", "SQLite", "PERSIST, FULL", "python", "",
        "sqlite_log:SqliteLog(journal='persist',sync='full')",
        "This ensures that an operating system crash or power failure will not corrupt the database.", _SQLITE,
    ),
    Row(
        "sqlite-wal-normal", "SQLite", "WAL, NORMAL", "python", "",
        "sqlite_log:SqliteLog(journal='wal',sync='normal',durable='flush',kill='put')",
        "A transaction committed in WAL mode with synchronous=NORMAL might roll back following a power loss or system "
        "crash.", _SQLITE,
    ),
    Row(
        "lmdb-sync", "LMDB", "sync, after a first transaction", "python", "lmdb", "lmdb_log:LmdbLog",
        "LMDB always flushes the OS buffers upon commit as well, unless the environment was opened with MDB_NOSYNC or "
        "in part MDB_NOMETASYNC.", "lmdb.h, mdb_env_sync()",
        part="0.9.36", reproductions=("unsynced.py names lmdb",),
    ),
    Row(
        "lmdb-nometasync", "LMDB", "NOMETASYNC", "python", "lmdb",
        "lmdb_log:LmdbLog(metasync=False,durable='flush',kill='put')",
        "This optimization maintains database integrity, but a system crash may undo the last committed transaction.",
        "lmdb.h, MDB_NOMETASYNC", part="0.9.36",
        disks=("ext4", "journal"),
    ),
    Row(
        "lmdb-nosync", "LMDB", "NOSYNC", "python", "lmdb",
        "lmdb_log:LmdbLog(sync=False,durable='flush',kill='put')",
        "This optimization means a system crash can corrupt the database or lose the last transactions if buffers are "
        "not yet flushed to disk.", "lmdb.h, MDB_NOSYNC", part="0.9.36",
        disks=("ext4", "journal"), reproductions=("unsynced.py data lmdb-nosync",),
        allowed="A system crash can corrupt a database with NOSYNC.",
    ),
    Row(
        "rocksdb-sync", "RocksDB", "WriteOptions.sync", "python", "rocksdict", "rocksdb_log:RocksdbLog",
        "The write will be flushed from the operating system buffer cache before the write is considered complete.",
        "RocksDB, WriteOptions::sync", part="RocksDB", reproductions=("current_before_manifest.py rocksdb",),
    ),
    Row(
        "rocksdb-async", "RocksDB", "default writes", "python", "rocksdict",
        "rocksdb_log:RocksdbLog(sync=False,durable='flush',kill='put')",
        "If the machine crashes, some recent writes may be lost; if just the process crashes, no writes will be lost.",
        "RocksDB, WriteOptions::sync", part="RocksDB",
    ),
    Row(
        "leveldb-sync", "LevelDB", "WriteOptions.sync", "python", "plyvel", "leveldb_log:LeveldbLog",
        "A DB write with sync==true has similar crash semantics to a write() followed by fsync().",
        "LevelDB, WriteOptions::sync", part="1.22", reproductions=("leveldb_manifest.py",),
    ),
    Row(
        "duckdb", "DuckDB", "default", "python", "duckdb", "duckdb_log:DuckdbLog",
        "DuckDB provides transactional guarantees (ACID properties) through our custom, bulk-optimized Multi-Version "
        "Concurrency Control (MVCC).", "DuckDB documentation, Why DuckDB",
        reproductions=("duckdb_recovery.py", "unsynced.py names duckdb"),
    ),
    Row(
        "zodb-filestorage", "ZODB", "FileStorage", "python", "ZODB", "zodb_log:ZodbLog",
        "ZODB is an ACID Transactional database.", "ZODB README",
        reproductions=("zodb_zero_tail.py", "unsynced.py names zodb"),
    ),
    Row(
        "persist-queue-files", "persist-queue", "Queue, autosave", "python", "persist-queue",
        "persistqueue_log:FileQueueLog(kill='put')", "Each queued item is stored on disk to survive crashes.", _QUEUES,
        reproductions=("unsynced.py data persist-queue",),
    ),
    Row(
        "persist-queue-sqlite", "persist-queue", "FIFOSQLiteQueue", "python", "persist-queue",
        "persistqueue_log:SqliteQueueLog", "Each queued item is stored on disk to survive crashes.", _QUEUES,
    ),
    Row(
        "persist-queue-ack", "persist-queue", "FIFOSQLiteAckQueue", "python", "persist-queue",
        "persistqueue_log:AckQueueLog", "Each queued item is stored on disk to survive crashes.", _QUEUES,
    ),
    Row(
        "litequeue", "litequeue", "default (WAL, NORMAL)", "python", "litequeue",
        "litequeue_log:LitequeueLog(durable='nothing',kill='put')", "None for a power loss.",
        "litequeue README, which names persistence alone",
    ),
    Row(
        "diskcache-deque", "diskcache", "Deque (synchronous NORMAL)", "python", "diskcache",
        "diskcache_log:DequeLog(durable='nothing',kill='put')", "None for a power loss; operations are atomic.",
        "diskcache README, comparison of features",
    ),
    Row(
        "sqlitedict-commit", "sqlitedict", "commit()", "python", "sqlitedict",
        "sqlitedict_log:SqlitedictLog(durable='flush')", "Persist all data to disk.", "docstring of SqliteDict.commit",
        reproductions=("unsynced.py data sqlitedict",),
    ),
    Row(
        "dbm-dumb-sync", "dbm.dumb", "sync()", "python", "", "dbm_log:DumbLog(durable='flush')",
        "Synchronize the on-disk directory and data files.", "Python documentation, dbm.dumb",
        reproductions=("unsynced.py data dumb",),
    ),
    Row(
        "shelve-sync", "shelve", "sync() over dbm.dumb", "python", "", "dbm_log:ShelveLog(durable='flush')",
        "Also empty the cache and synchronize the persistent dictionary on disk, if feasible.",
        "Python documentation, Shelf.sync",
        reproductions=("unsynced.py data shelve",),
    ),
    Row(
        "semidbm-sync", "semidbm", "sync()", "python", "semidbm", "semidbm_log:SemidbmLog(durable='flush')",
        "These values are persisted to disk.", "semidbm README", reproductions=("zero_tail.py semidbm",),
    ),
    Row(
        "tinydb", "TinyDB", "default", "python", "tinydb", "tinydb_log:TinydbLog(durable='nothing',kill='put')",
        "None for a power loss.", "TinyDB documentation, Why Not Use TinyDB, which names ACID guarantees",
        reproductions=("half_json.py",),
    ),
    Row(
        "pickledb", "pickleDB", "save() after each set", "python", "pickledb",
        "pickledb_log:PickledbLog(durable='nothing',kill='put')", "Atomically save database to disk.",
        "docstring of PickleDB.save", reproductions=("unsynced.py data pickledb",),
    ),
    Row(
        "sqlite-values", "SQLite", "key-value with batches: WAL, FULL", "python", "", "sqlite_values:SqliteValues",
        "The extra WAL sync following each transaction helps ensure that transactions are durable across a power loss.",
        _SQLITE,
    ),
    Row(
        "lmdb-values", "LMDB", "key-value with batches: sync, after a first transaction", "python", "lmdb",
        "lmdb_values:LmdbValues",
        "LMDB always flushes the OS buffers upon commit as well, unless the environment was opened with MDB_NOSYNC or "
        "in part MDB_NOMETASYNC.", "lmdb.h, mdb_env_sync()",
        part="0.9.36", reproductions=("unsynced.py names lmdb",),
    ),
    Row(
        "diskcache-values", "diskcache", "key-value with batches: Cache.transact (NORMAL)", "python", "diskcache",
        "diskcache_values:CacheValues", "None for a power loss; operations are atomic.",
        "diskcache README, comparison of features",
    ),
    Row(
        "litequeue-queues", "litequeue", "queues with locks (WAL, NORMAL)", "python", "litequeue",
        "litequeue_queues:LitequeueQueues", "None for a power loss.", "litequeue README, which names persistence alone",
    ),
    Row(
        "persist-queue-queues", "persist-queue", "queues: FIFOSQLiteAckQueue", "python", "persist-queue",
        "persistqueue_queues:AckQueues", "Each queued item is stored on disk to survive crashes.", _QUEUES,
    ),
    Row(
        "bbolt", "bbolt", "default", "go", "go.etcd.io/bbolt", "bbolt sync",
        "This two phase write ensures that partially written data pages are ignored in the event of a crash since the "
        "meta page pointing to them is never written.", "bbolt README, Tx.Commit()",
        reproductions=("unsynced.py names bbolt",),
    ),
    Row(
        "pebble-sync", "Pebble", "WriteOptions.Sync", "go", "github.com/cockroachdb/pebble", "pebble sync",
        "Setting Sync is required for durability of individual write operations but can result in slower writes.",
        "Pebble, WriteOptions", reproductions=("current_before_manifest.py pebble",),
    ),
    Row(
        "badger-sync", "badger", "SyncWrites", "go", "github.com/dgraph-io/badger/v4", "badger sync",
        "When set to true, Badger would call an additional msync after writes to flush mmap buffer over to disk to "
        "survive hard reboots.", "badger, WithSyncWrites",
        reproductions=("killed.py badger",),
    ),
    Row(
        "raft-wal", "hashicorp/raft-wal", "default", "go", "github.com/hashicorp/raft-wal", "raft-wal sync",
        "Crashes at any point must not loose committed log entries or result in a corrupt file, even if in-flight "
        "sector writes are not atomic.", "raft-wal README, design goals",
        reproductions=("power_cut.py ext4 raft-wal fdatasync", "unsynced.py names raft-wal"),
    ),
    Row(
        "etcd-wal", "etcd WAL", "Save", "go", "go.etcd.io/etcd/server/v3", "etcd-wal sync",
        "WAL is a logical representation of the stable storage.", "etcd, type WAL",
        disks=("ext4", "xfs", "btrfs", "journal", "posix-strict"),
        reproductions=("power_cut.py btrfs etcd-wal renameat", "unsynced.py names etcd-wal"),
    ),
    Row(
        "goleveldb-sync", "goleveldb", "WriteOptions.Sync", "go", "github.com/syndtr/goleveldb", "goleveldb sync",
        "Sync being true means write followed by fsync.", "goleveldb, WriteOptions",
        reproductions=("goleveldb_manifest.go",),
    ),
    Row(
        "tidwall-wal", "tidwall/wal", "default", "go", "github.com/tidwall/wal", "tidwall sync",
        "Fsync after every write.", "tidwall/wal, Options.NoSync",
        reproductions=("tidwall_zero_tail.go", "unsynced.py names tidwall"),
    ),
    Row(
        "dque", "dque", "default", "go", "github.com/joncrlsn/dque", "dque sync",
        "forces an fsync to disk every time you enqueue or dequeue an item.", "dque README",
        reproductions=("killed.py dque", "zero_tail.py dque", "unsynced.py names dque"),
    ),
    Row(
        "buntdb-always", "buntdb", "SyncPolicy Always", "go", "github.com/tidwall/buntdb", "buntdb sync",
        "Always: fsync after every write, very durable, slower.", "buntdb README",
        reproductions=("buntdb_zero_tail.go", "unsynced.py names buntdb"),
    ),
    Row(
        "redb", "redb", "default (Immediate)", "rust", "redb", "redb sync",
        "Commits with this durability level are guaranteed to be persistent as soon as WriteTransaction::commit "
        "returns.",
        "redb, Durability::Immediate",
        reproductions=("unsynced.py names redb",),
    ),
    Row(
        "sled-flush", "sled", "insert and flush()", "rust", "sled", "sled sync",
        "If this succeeds, it is guaranteed that all previous writes will be recovered if the system crashes.",
        "sled, Tree::flush", reproductions=("killed.py sled", "unsynced.py data sled",),
    ),
    Row(
        "fjall-syncall", "fjall", "PersistMode::SyncAll", "rust", "fjall", "fjall sync",
        "Flushes data + metadata using fsync.", "fjall, PersistMode::SyncAll",
        reproductions=("power_cut.py ext4 fjall open fsync", "torn_put.py fjall", "unsynced.py names fjall"),
    ),
    Row(
        "mrecordlog", "mrecordlog", "SyncPolicy::OnAppend", "rust", "mrecordlog", "mrecordlog sync",
        "Sync and flush at each operation.", "mrecordlog, SyncPolicy",
        reproductions=("unsynced.py data mrecordlog", "unsynced.py names mrecordlog"),
    ),
    Row(
        "h2-mvstore", "H2 MVStore", "commit and sync", "java", "h2", "h2-mvstore sync",
        "Force all stored changes to be written to the storage.", "H2, MVStore.sync",
        reproductions=("H2KeysLost.java", "unsynced.py names h2-mvstore"),
    ),
    Row(
        "h2-mvstore-later", "H2 MVStore", "commit and sync", "java", "h2.later", "h2-mvstore sync",
        "Force all stored changes to be written to the storage.", "H2, MVStore.sync",
        reproductions=("unsynced.py names h2-mvstore-later",),
    ),
    Row(
        "mapdb", "MapDB", "transactionEnable", "java", "mapdb", "mapdb sync",
        "db.commit(); //persist changes into disk", "MapDB README, example", reproductions=("unsynced.py names mapdb",),
    ),
)  # fmt: skip
