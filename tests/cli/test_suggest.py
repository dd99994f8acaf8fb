"""`hotshot suggest`: from unlabelled texts, images or features to a table that `hotshot add` takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.files import Samples, write_features
from sentences import read_table, write_table
from worlds import KINDS, LATER, NEW, make_world


@pytest.fixture
def fitted(tmp_path):
    """A model of inputs of a kind, in a folder."""

    def fit(kind):
        world = make_world(kind, tmp_path)
        world.model().fit(tmp_path / f"new{world.suffix}").save(tmp_path / "a.model")
        return world

    return fit


def fill_in(path, truth):
    """Write labels into the empty column."""
    if path.suffix == ".parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        table = pq.read_table(path)
        place, labels = table.column_names.index("label"), [truth(row) for row in table.to_pylist()]
        pq.write_table(table.set_column(place, "label", [labels]), path)
        return table.to_pylist()
    rows = read_table(path)
    write_table(path, [{**row, "label": truth(row)}.values() for row in rows], header=list(rows[0]))
    return rows


@pytest.mark.parametrize(("kind", "suffix"), [*((kind, ".csv") for kind in KINDS), ("features", ".parquet")])
def test_what_is_suggested_is_labelled_and_added(hotshot, fitted, tmp_path, kind, suffix):
    world = fitted(kind)
    items, truth = world.classes([*NEW, LATER], 4, seed=3)
    (tmp_path / "work").mkdir()
    pool = tmp_path / "all-3"
    if kind == "features":
        # Texts beside features are carried along.
        columns = {"id": list(map(str, range(12))), "text": [f"text, {i}" for i in range(12)]}
        pool = tmp_path / "pool.safetensors"
        write_features(pool, Samples(np.asarray(items), None, columns))
    elif kind == "texts":
        pool = write_table(tmp_path / "pool.csv", [(text,) for text in items], ["text"])
    run = hotshot.succeeds("suggest", "a.model", pool, "-n", "3", "-o", f"work/next{suffix}")
    assert f"work/next{suffix}: 3 suggestions. Fill in the column label, then run: hotshot add a.model" in run.stderr

    def label(row):
        assert not row["label"]
        assert row["reason"] in run.stdout
        if kind == "images":
            # Paths are relative to the table.
            assert (tmp_path / "work" / row["path"]).is_file()
            return Path(row["path"]).parent.name
        return truth[int(row["id"]) if kind == "features" else items.index(row["text"])]

    rows = fill_in(tmp_path / "work" / f"next{suffix}", label)
    assert list(rows[0])[-4 if kind == "features" else -3 :][:3] == ["probable_class", "probability", "reason"]
    added = hotshot.succeeds("add", "a.model", f"work/next{suffix}", "--json")
    assert json.loads(added.stdout)["samples"] == 6 + 3
    if kind == "features":
        support = InputClassifier.load(tmp_path / "a.model").model.support_
        assert all((np.abs(support - items[int(row["id"])]).max(axis=1) < 1e-6).any() for row in rows)
    again = json.loads(hotshot("suggest", "a.model", pool, "--json").stdout)
    assert again["pool_size"] == 12
    names = {"texts": "text", "features": "id"}
    if kind in names:
        assert not {item[names[kind]] for item in again["suggestions"]} & {row[names[kind]] for row in rows}
