"""Write Parquet files in the layout of programs that embed bird calls; the numbers are made up.

    python make_bird_calls.py

old.parquet has 20 species with twelve windows of three seconds each, new.parquet two species
with three windows. The columns are file, start, end, embedding and label; night.parquet has no
labels.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OLD = (
    "blackbird", "blackcap", "blue tit", "bullfinch", "chaffinch", "chiffchaff", "coal tit",
    "crested tit", "dunnock", "goldcrest", "great tit", "greenfinch", "jay", "magpie", "nuthatch",
    "robin", "siskin", "song thrush", "starling", "wren",
)  # fmt: skip
NEW = ("firecrest", "hawfinch")
WIDTH = 128


def windows(rng, centres, names, prefix):
    """A row for each name: a place in a recording and a vector near its centre."""
    columns = {"file": [], "start": [], "end": [], "embedding": []}
    for row, name in enumerate(names):
        recording, place = divmod(row, 4)
        columns["file"].append(f"{prefix}{recording:03d}.wav")
        columns["start"].append(3.0 * place)
        columns["end"].append(3.0 * place + 3.0)
        vector = centres[name] + rng.standard_normal(WIDTH)
        columns["embedding"].append(vector.astype(np.float32))
    return columns


def main():
    """Write the three files and print their sizes."""
    rng = np.random.default_rng(0)
    # Species differ along a few shared directions; "rain" is a sound of no species.
    directions = 0.35 * rng.standard_normal((12, WIDTH))
    centres = {name: rng.standard_normal(12) @ directions for name in (*OLD, *NEW, "rain")}
    files = {
        "old.parquet": [name for name in OLD for _ in range(12)],
        "new.parquet": [name for name in NEW for _ in range(3)],
        "night.parquet": rng.permutation([*(3 * OLD), *(6 * NEW), *(8 * ["rain"])]).tolist(),
    }
    for path, names in files.items():
        columns = windows(rng, centres, names, path.removesuffix(".parquet").upper())
        if path != "night.parquet":
            columns["label"] = names
        pq.write_table(pa.table(columns), path)
        print(f"{path}: {len(names)} windows, columns {', '.join(columns)}")


if __name__ == "__main__":
    main()
