"""The results of sweeps: a Parquet dataset, partitioned by version, a file a finished chunk."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fontis._native import FontisError, __version__

#: A row for each metric of a run.
SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), False, {"meaning": "hash of what decides the run's result"}),
        pa.field("label", pa.string(), False, {"meaning": "what tells the run from others"}),
        pa.field("seed", pa.uint64(), False, {"meaning": "the run's seed"}),
        pa.field("seconds", pa.float64(), False, {"meaning": "computing that the run took"}),
        pa.field("metric", pa.string(), False, {"meaning": "what is measured, as in docs/recording.md"}),
        pa.field("subject", pa.string(), False, {"meaning": "of what"}),
        pa.field("value", pa.float64(), False, {"meaning": "its value"}),
    ]
)


class Done(NamedTuple):
    """A run that is done."""

    key: str
    label: str
    seed: int
    seconds: float
    #: Metric, subject, value.
    metrics: list[tuple[str, str, float]]


class Store:
    """Results in a folder. Every file is whole: it gets its name when all of it is on the disk."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, which is made when something is written."""
        self.folder = folder
        #: Results of other versions stay, and are not looked at.
        self.partition = folder / f"version={__version__}"

    def keys(self) -> set[str]:
        """Give the keys of the runs that are there."""
        table = self._read(["key"])
        return set(pc.unique(table["key"]).to_pylist())

    def read(self, keys: Iterable[str]) -> pa.Table:
        """Give the rows of these runs."""
        table = self._read(SCHEMA.names)
        wanted = pa.array(sorted(set(keys)), pa.string())
        return table.filter(pc.is_in(table["key"], value_set=wanted))

    def write(self, done: Sequence[Done]) -> None:
        """Keep runs."""
        columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
        for run in done:
            for metric, subject, value in run.metrics:
                row = (run.key, run.label, run.seed, run.seconds, metric, subject, value)
                for name, cell in zip(SCHEMA.names, row, strict=True):
                    columns[name].append(cell)
        name = hashlib.sha256("".join(sorted(run.key for run in done)).encode()).hexdigest()[:24]
        self.partition.mkdir(parents=True, exist_ok=True)
        # Readers of datasets skip names that begin with a dot.
        partial = self.partition / f".{name}.{os.getpid()}.partial"
        try:
            with partial.open("wb") as file:
                pq.write_table(pa.table(columns, SCHEMA), file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.partition / f"{name}.parquet")
        finally:
            partial.unlink(missing_ok=True)

    def _read(self, columns: Sequence[str]) -> pa.Table:
        tables = []
        for path in sorted(self.partition.glob("[!.]*.parquet")):
            try:
                tables.append(pq.ParquetFile(path).read(columns=list(columns)))
            except (OSError, pa.ArrowException) as error:
                raise FontisError(f"{path}: {error}; remove it, and its runs are made again") from error
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        return pa.concat_tables(tables) if tables else schema.empty_table()
