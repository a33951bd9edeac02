"""The Parquet files of a campaign: rows of complete shards, pages of others.

The three kinds of campaigns, of our store, of a foreign store and with a peer, differ in folders and columns
(`CampaignTable`). Those of our store have these names:

    campaign.json                                  the request
    histories/part-shard-NNNNNN.parquet            all rows of a shard; the last one is the row of the shard
    progress/shard-NNNNNN-FFFFFFF-LLLLLLL.parquet  a page: runs F to L of a shard, from 0, then rows of the shard so far

A page is the result of one turn (`pipeline.campaign.turns`). It has the rows of its runs (kind `history`), then those
that sum up the shard so far. The last of them has the kind `page`. Pages of equal runs have equal rows, so that a turn
which was done twice does no harm: the pages of a shard are followed from run 0 on, and the rest is ignored. The last
turn writes the file of the shard from its pages and removes them. Every file is complete once it has its name.

Rows are read in batches of at most `BATCH_ROWS`, so that memory does not grow with a shard.

`SharedPlace` shows a process whether it sees the directory of the driver, which has made a file with a random name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tornpage.pipeline.rows.outputs import OutputTaken, whole
from tornpage.pipeline.rows.schemas import arrow_schema, batch
from tornpage.pipeline.tables.described import CAMPAIGN_TABLE, Columns, described, kinds_of
from tornpage.properties.explore.crashes.rows import Row, is_complete

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

__all__ = ["BATCH_ROWS", "CRASHES", "CampaignFiles", "CampaignTable", "Pages", "SharedPlace", "parquet_of",
           "shared_place"]  # fmt: skip

BATCH_ROWS = 256
_FILE = re.compile(r"part-shard-(\d+)\.parquet")
_PAGE = re.compile(r"shard-(\d+)-(\d+)-(\d+)\.parquet")
_END_COLUMNS = ("kind", "shard", "verdict")

Answer = TypeVar("Answer")


class CampaignTable:
    """The columns of one kind of campaign, and the folders in its output directory.

    Complete shards are in the folder `rows`, pages in the folder `pages`.
    """

    def __init__(self, columns: Columns, *, rows: str, pages: str) -> None:
        self.columns = columns
        self.rows, self.pages = rows, pages
        self.kinds = kinds_of(columns)
        self.maps = tuple(name for name, kind in self.kinds.items() if kind.startswith("map"))
        self._empty: Row = {
            name: {"string": "", "double": 0.0, "boolean": False}.get(kind, {} if kind.startswith("map") else 0)
            for name, kind in self.kinds.items()
        }

    def row(self, **values: Any) -> Row:
        """Return a row; columns without a value are empty or 0."""
        return self._empty | values

    def schema(self, names: Iterable[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of some columns, or of all."""
        return arrow_schema({name: self.kinds[name] for name in (self.kinds if names is None else names)})


CRASHES = CampaignTable(CAMPAIGN_TABLE, rows="histories", pages="progress")
"""The table of campaigns of our store."""


def parquet_of(rows: Sequence[Row], table: CampaignTable = CRASHES) -> bytes:
    """Return rows as the content of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    values = [
        tuple(sorted(row[name].items()) if name in table.maps else row[name] for name in table.kinds) for row in rows
    ]
    sink = pa.BufferOutputStream()
    made = pa.Table.from_batches([batch(values, table.kinds)])
    pq.write_table(made.cast(described(made.schema, table.columns)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: the numbers of its first run and after its last one, and its file."""

    first: int
    end: int
    path: Path


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a shard: the number of their runs, and what sums up the shard so far.

    `sums` are rows, the last of which has the kind `page`.
    """

    runs: int
    sums: list[Row]


class CampaignFiles:
    """The files of one campaign.

    Methods raise OutputTaken if a file is damaged, and OSError.
    """

    def __init__(self, out: Path, table: CampaignTable = CRASHES) -> None:
        self.out = out
        self.table = table
        self._rows = out / table.rows
        self._pages = out / table.pages

    # ---- writing -----------------------------------------------------------------------------------------------------

    def keep_page(self, shard: int, first: int, end: int, content: bytes) -> None:
        """Write a page with the runs from `first` to before `end`."""
        _write(content, self._pages / f"shard-{shard:06}-{first:07}-{end - 1:07}.parquet")

    def keep_shard(self, shard: int, first: int, content: bytes) -> None:
        """Write the file of a shard: the runs before `first` from its pages, then its last rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pages = self._pages_to(shard, first)
        if not pages:
            _write(content, self._file_of(shard))
        else:
            with whole(self._file_of(shard)) as unfinished:
                schema = described(self.table.schema(), self.table.columns)
                with pq.ParquetWriter(unfinished, schema) as writer:
                    for page in pages:
                        table = _checked(page.path, partial(pq.read_table, page.path, partitioning=None))
                        writer.write_table(table.slice(0, _runs_in(table)).cast(schema))
                    writer.write_table(pq.read_table(pa.BufferReader(content)).cast(schema))
        for page in self._pages_of(shard):
            page.path.unlink(missing_ok=True)

    def keep_lost(self, shard: int, row: Row) -> None:
        """Write the only row of a shard that is lost until it is run again; its pages stay."""
        _write(parquet_of([row], self.table), self._file_of(shard))

    def remove_empty_folder(self) -> None:
        """Remove the folder of pages if it is empty. No worker may write a page meanwhile."""
        with suppress(OSError):
            self._pages.rmdir()

    # ---- reading -----------------------------------------------------------------------------------------------------

    def shards(self) -> list[int]:
        """Return the numbers of the shards with a file, in order."""
        try:
            names = [path.name for path in self._rows.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(found[1]) for name in names if (found := _FILE.fullmatch(name)))

    def complete(self) -> set[int]:
        """Return the numbers of the shards with all their rows."""
        return {number for number in self.shards() if is_complete(self._last_row(self._file_of(number)))}

    def _last_row(self, path: Path) -> Row:
        """Return some columns of the last row of a file; the others are not read."""
        import pyarrow.parquet as pq

        def read() -> Row:
            table = pq.read_table(path, columns=list(_END_COLUMNS), partitioning=None)
            [row] = table.slice(table.num_rows - 1).cast(self.table.schema(_END_COLUMNS)).to_pylist()
            return dict(row)

        return _checked(path, read)

    def rows(self, shards: Iterable[int], columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows of some shards, in order."""
        for number in sorted(shards):
            yield from self._rows_of(self._file_of(number), columns)

    def pages(self, shard: int) -> Pages | None:
        """Return how far the pages of a shard go, or None if it has none."""
        pages = self._pages_to(shard, None)
        if not pages:
            return None
        last = pages[-1]
        sums = [row for row in self._rows_of(last.path, None) if row["kind"] != "history"]
        if not sums or sums[-1]["kind"] != "page":
            raise OutputTaken(f"{last.path} does not end with the row of a page; remove it, and use --resume")
        return Pages(last.end, sums)

    def rows_of_pages(self, shard: int, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the rows of the runs in the pages of a shard, in order."""
        for page in self._pages_to(shard, None):
            yield from (row for row in self._rows_of(page.path, columns) if row["kind"] == "history")

    def _pages_of(self, shard: int) -> list[_Page]:
        paths = self._pages.glob(f"shard-{shard:06}-*.parquet")
        found = ((_PAGE.fullmatch(path.name), path) for path in paths)
        return [_Page(int(name[2]), int(name[3]) + 1, path) for name, path in found if name]

    def _pages_to(self, shard: int, end: int | None) -> list[_Page]:
        """Return the pages that follow each other from run 0 on, to `end` if it is not None."""
        pages = self._pages_of(shard)
        chain: list[_Page] = []
        while (reached := chain[-1].end if chain else 0) != end:
            following = [page for page in pages if page.first == reached and (end is None or page.end <= end)]
            if not following:
                break
            chain.append(max(following, key=lambda page: page.end))
        if end is not None and (chain[-1].end if chain else 0) != end:
            raise OutputTaken(f"{self._pages} lacks pages of shard {shard} before run {end}; use --resume")
        return chain

    def _file_of(self, shard: int) -> Path:
        return self._rows / f"part-shard-{shard:06}.parquet"

    def _rows_of(self, path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
        """Yield the rows of a file, with some of the columns or all."""
        import pyarrow.parquet as pq

        schema = self.table.schema(columns)
        with _checked(path, lambda: pq.ParquetFile(path)) as file:
            batches = file.iter_batches(batch_size=BATCH_ROWS, columns=schema.names)
            while (some := _checked(path, lambda: _next(batches, schema))) is not None:
                yield from _dicts(some, self.table.maps)


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """Name the output directory and a file that only this run of the driver has made in it."""

    out: str
    mark: str

    def is_seen(self) -> bool:
        """Return whether this process sees the directory."""
        return Path(self.out, self.mark).exists()

    def files(self, table: CampaignTable = CRASHES) -> CampaignFiles:
        """Return the files of the campaign."""
        return CampaignFiles(Path(self.out), table)


@contextmanager
def shared_place(out: Path) -> Iterator[SharedPlace]:
    """Yield the place of an output directory, which is marked meanwhile."""
    place = SharedPlace(str(out.absolute()), f".seen-{secrets.token_hex(8)}")
    for left in Path(place.out).glob(".seen-*"):  # by a driver that was killed
        left.unlink(missing_ok=True)
    mark = Path(place.out, place.mark)
    mark.touch()
    try:
        yield place
    finally:
        mark.unlink(missing_ok=True)


def _write(content: bytes, path: Path) -> None:
    with whole(path) as unfinished:
        unfinished.write_bytes(content)


def _runs_in(table: pa.Table) -> int:
    """Return the number of runs of a page, whose rows come first."""
    kinds: list[str] = table.column("kind").to_pylist()
    return kinds.count("history")


def _next(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch | None:
    some = next(batches, None)
    return None if some is None else some.select(schema.names).cast(schema)


def _dicts(some: pa.RecordBatch, maps: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a batch; maps become dicts.

    Arrow makes a Python object for each entry of a map, which takes most of the time of a row.
    """
    names = some.schema.names
    columns = [_maps(some.column(name)) if name in maps else some.column(name).to_pylist() for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _maps(column: Any) -> list[dict[str, int]]:
    keys = column.keys.dictionary_encode()
    words = keys.dictionary.to_pylist()
    entries = [words[number] for number in keys.indices.to_pylist()]
    counts = column.items.to_numpy(zero_copy_only=False).tolist()
    ends = column.offsets.to_pylist()
    return [dict(zip(entries[first:end], counts[first:end], strict=True)) for first, end in pairwise(ends)]


def _checked(path: Path, read: Callable[[], Answer]) -> Answer:
    """Return what `read` returns. Raises OutputTaken if the file is damaged."""
    import pyarrow as pa

    try:
        return read()
    except (OSError, pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OutputTaken(f"{path} cannot be read: {reason}; remove it, and --resume runs it again") from error
