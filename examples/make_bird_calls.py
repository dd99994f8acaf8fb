"""Write Parquet files in the layout of programs that embed bird calls; the numbers are made up.

    python make_bird_calls.py

old.parquet and new.parquet have the columns file, start, end, embedding and label: 20 species with twelve windows of
three seconds each, and two species with three. night.parquet has no labels.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OLD = (
    "blackbird", "blackcap", "blue tit", "bullfinch", "chaffinch", "chiffchaff", "coal tit", "crested tit", "dunnock",
    "goldcrest", "great tit", "greenfinch", "jay", "magpie", "nuthatch", "robin", "siskin", "song thrush", "starling",
    "wren",
)  # fmt: skip
NEW = ("firecrest", "hawfinch")
WIDTH = 128


def windows(rng: np.random.Generator, centres: dict[str, np.ndarray], names: list[str], prefix: str) -> dict[str, list]:
    """A row for each name: four windows of three seconds to a recording, and a vector near the centre of the species.

    All windows of a recording are shifted together, by its microphone.
    """
    columns: dict[str, list] = {"file": [], "start": [], "end": [], "embedding": []}
    for row, name in enumerate(names):
        recording, place = divmod(row, 4)
        if place == 0:
            shift = 0.3 * rng.standard_normal(WIDTH)
        columns["file"].append(f"{prefix}{recording:03d}.wav")
        columns["start"].append(3.0 * place)
        columns["end"].append(3.0 * place + 3.0)
        columns["embedding"].append((centres[name] + shift + rng.standard_normal(WIDTH)).astype(np.float32))
    return columns


def main() -> None:
    """Write the three files and print their sizes."""
    rng = np.random.default_rng(0)
    # Species share directions, as they do in real embeddings; "rain" is a sound of no species.
    directions = rng.standard_normal((12, WIDTH))
    centres = {name: 0.35 * rng.standard_normal(12) @ directions for name in (*OLD, *NEW, "rain")}
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
