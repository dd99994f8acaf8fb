"""Arrays of a pickle or a torch file, of which rows are made when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.files.source import from_disk


@dataclass(frozen=True)
class Rows:
    """An array in the file of which rows are taken when they are asked for, in the byte order of this machine."""

    array: np.ndarray

    @property
    def streams(self) -> bool:
        """Whether its numbers are in the file, not in memory."""
        return from_disk(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        """Of the rows."""
        return self.array.dtype.newbyteorder("=")

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.require(self.array[rows], self.dtype, "A")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.require(self.array, dtype or self.dtype, "A")

    def reshape(self, *shape: int) -> Rows:
        """The same numbers in another shape."""
        return Rows(self.array.reshape(*shape))


@dataclass(frozen=True)
class Vectors:
    """Vectors of one width, each somewhere in the file or in memory, of which some are joined when asked for."""

    vectors: list[np.ndarray]
    dtype: np.dtype

    @property
    def streams(self) -> bool:
        """Whether its numbers are in the file, not in memory."""
        return all(map(from_disk, self.vectors))

    @property
    def shape(self) -> tuple[int, int]:
        """Vectors and their width."""
        return len(self.vectors), len(self.vectors[0])

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: slice) -> np.ndarray:
        chosen = self.vectors[rows]
        return np.concatenate(chosen, dtype=self.dtype, casting="unsafe").reshape(len(chosen), -1)
