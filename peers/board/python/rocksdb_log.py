"""RocksDB through rocksdict."""

from collections.abc import Iterable

from rocksdict import Options, Rdict, WriteOptions

from tornpage.peers.board.python.record_log import RecordLog

__all__ = ["RocksdbLog"]


class RocksdbLog(RecordLog):
    """One column family; `sync` is the option of each write."""

    name = "RocksDB"
    open_many = True

    def _open(self, sync: bool = True) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(64 << 10)
        options.set_keep_log_file_num(1)
        self._database = Rdict(str(self.directory), options)
        self._write = WriteOptions()
        self._write.sync = sync
        self._database.set_write_options(self._write)

    def _records(self) -> Iterable[str]:
        return [bytes(value).decode() for value in self._database.values()]

    def _push(self, number: int, record: str) -> None:
        self._database.put(number.to_bytes(8, "big"), record.encode(), write_opt=self._write)

    def flush(self) -> None:
        """Sync the write-ahead log."""
        self._database.flush_wal(True)

    def close(self) -> None:
        """Sync the write-ahead log and close; a close of RocksDB makes nothing durable."""
        self._database.flush_wal(True)
        self._database.close()
