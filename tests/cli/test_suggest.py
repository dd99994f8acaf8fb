"""`hotshot suggest`: from unlabelled texts, images or features to a table that `hotshot add` takes."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import make_bank

sys.path.insert(0, str(Path(__file__).parents[1] / "inputs"))
from sentences import NEW, labelled, read_table, write_problem, write_table

from hotshot import InputClassifier
from hotshot.files import Samples, write_features


def fill_in(path, names):
    """Write labels into the empty column."""
    rows = read_table(path)
    assert all(row["label"] == "" for row in rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": name} for row, name in zip(rows, names, strict=True))


def test_texts_are_suggested_labelled_and_added(hotshot, tmp_path):
    write_problem(tmp_path)
    truth = dict(labelled(NEW, 8, seed=3))
    write_table(tmp_path / "pool.csv", [(text,) for text in truth], ["text"])
    model = InputClassifier(f"{tmp_path}/words.py:embed", base=tmp_path / "old.csv").fit(tmp_path / "new.csv")
    model.save(tmp_path / "birds.model")
    run = hotshot("suggest", "birds.model", "pool.csv", "-n", "4", "-o", "next.csv")
    assert run.returncode == 0, run.stderr
    rows = read_table(tmp_path / "next.csv")
    assert list(rows[0]) == ["text", "label", "probable_class", "probability", "reason"]
    assert len({row["text"] for row in rows}) == 4
    for number, row in enumerate(rows, 1):
        assert f'{number}. "{row["text"]}": ' in run.stdout
        assert row["reason"] in run.stdout
    assert "next.csv: 4 suggestions. Fill in the column label, then run: hotshot add birds.model" in run.stderr
    fill_in(tmp_path / "next.csv", [truth[row["text"]] for row in rows])
    added = json.loads(hotshot("add", "birds.model", "next.csv", "--json").stdout)
    assert added["samples"] == 9 + 4
    found = json.loads(hotshot("suggest", "birds.model", "pool.csv", "--json").stdout)
    assert not {item["text"] for item in found["suggestions"]} & {row["text"] for row in rows}
    assert found["pool_size"] == 24


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("texts", [False, True])
def test_features_are_suggested_labelled_and_added(hotshot, tmp_path, texts, suffix):
    X, y = make_bank(24, 12, 6, dtype=np.float32)
    names = np.array([f"class {label}" for label in y])
    old, new = y < 20, y >= 20
    first = new & (np.arange(len(y)) % 12 == 0)
    write_features(tmp_path / "old.npz", (X[old], names[old]))
    write_features(tmp_path / "new.npz", (X[first], names[first]))
    pool, truth = X[new & ~first], names[new & ~first]
    columns = {"text": [f"text, {i}" for i in range(len(pool))]} if texts else {}
    write_features(tmp_path / "pool.npz", Samples(pool, None, {**columns, "id": list(map(str, range(len(pool))))}))
    fitted = hotshot("fit", "--base", "old.npz", "--support", "new.npz", "--new-only", "-o", "birds.model")
    assert fitted.returncode == 0, fitted.stderr
    run = hotshot("suggest", "birds.model", "pool.npz", "-n", "3", "-o", f"next{suffix}")
    assert run.returncode == 0, run.stderr
    if suffix == ".parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        table = pq.read_table(tmp_path / "next.parquet")
        rows = table.to_pylist()
        given = truth[[int(row["id"]) for row in rows]].tolist()
        pq.write_table(table.set_column(table.column_names.index("label"), "label", [given]), tmp_path / "next.parquet")
    else:
        rows = read_table(tmp_path / "next.csv")
        fill_in(tmp_path / "next.csv", truth[[int(row["id"]) for row in rows]])
    assert {"id", "label", "features"} < set(rows[0])
    added = hotshot("add", "birds.model", f"next{suffix}", "--json")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["samples"] == 4 + 3
    support = InputClassifier.load(tmp_path / "birds.model").model.support_
    assert all((np.abs(support - pool[int(row["id"])]).max(axis=1) < 1e-6).any() for row in rows)


def test_images_are_suggested_with_paths_from_the_table(hotshot, tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("torch")
    (tmp_path / "eyes.py").write_text(
        "def eyes(pixels):\n"
        "    return 1 + pixels.reshape(len(pixels), 4, 4, 4, 4, 3).mean(axis=(2, 4, 5)).reshape(len(pixels), -1)\n\n"
        "eyes.size = 16\n",
        encoding="utf-8",
    )
    rng = np.random.default_rng(0)
    for c in range(10):
        pattern = rng.integers(0, 200, (4, 4))
        for i in range(8):
            place = tmp_path / ("old" if c < 8 else "new" if i < 2 else "pool")
            place = place / f"c{c}" if c < 8 or i < 2 else place
            place.mkdir(parents=True, exist_ok=True)
            noisy = np.kron(pattern + rng.integers(0, 50, (4, 4)), np.ones((4, 4)))
            image.fromarray(np.repeat(noisy[..., None], 3, axis=2).astype(np.uint8)).save(place / f"{c}-{i}.png")
    fitted = hotshot("fit", "--base", "old", "--support", "new", "--encoder", "eyes.py:eyes", "-o", "a.model")
    assert fitted.returncode == 0, fitted.stderr
    (tmp_path / "work").mkdir()
    run = hotshot("suggest", "a.model", "pool", "-n", "2", "-o", "work/next.csv")
    assert run.returncode == 0, run.stderr
    paths = [row["path"] for row in read_table(tmp_path / "work" / "next.csv")]
    assert all((tmp_path / "work" / path).is_file() for path in paths)
    fill_in(tmp_path / "work" / "next.csv", [f"c{Path(path).name[0]}" for path in paths])
    added = hotshot("add", "a.model", "work/next.csv", "--json")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["samples"] == 4 + 2
