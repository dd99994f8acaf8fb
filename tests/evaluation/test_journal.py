"""A run folder keeps every finished record: what was torn, changed or refused by the disk is computed again."""

from __future__ import annotations

import errno
import io
import json
import shutil
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from few_shot_problems import assert_same, ragged_bank
from hotshot import HOTClassifier, evaluate
from hotshot.errors import RunError
from hotshot.evaluation import journal as journals
from hotshot.evaluation import runner
from hotshot.evaluation.journal import Chunk, Journal, Record, decode, encode
from hotshot.evaluation.tasks import CLOSED, SETTINGS

BASE = ragged_bank()
X, Y = make_bank(4, 8, 6, seed=1, spread=0.9)
METHODS = {"nearest": KNeighborsClassifier(1), "means": HOTClassifier(BASE, cost="mean-cosine")}
# Two methods, two numbers of shots, three chunks of which the last is not full.
UNITS = 12


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """Chunks of four tasks instead of twenty."""
    small = replace(CLOSED, chunk=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "CLOSED", small)
        patch.setitem(SETTINGS, "closed", small)
        yield


def run(out, methods=METHODS, X=X, y=Y, **request):
    """The evaluation, and which units were known and which computed."""
    known, computed = [], []

    def watch(record, was_known, total):
        assert total == 36
        (known if was_known else computed).append(record.chunk)

    small = {"ways": 3, "shots": (1, 2), "queries": 3, "tasks": 9, "n_jobs": 1}
    return evaluate(methods, X, y, out=out, watch=watch, **{**small, **request}), known, computed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run: its folder, not to be changed, and what it found."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    found, known, computed = run(folder)
    assert (len(known), len(computed)) == (0, UNITS)
    return folder, found


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(whole[0], tmp_path / "run")


def lines_of(folder):
    return (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Going on


def test_a_finished_run_computes_nothing_again(whole, folder):
    before = lines_of(folder)
    found, known, computed = run(folder)
    assert (len(set(known)), computed) == (UNITS, [])
    assert lines_of(folder) == before
    for other in (found, run(None)[0]):
        assert_same(other, whole[1])


@pytest.mark.parametrize(
    ("kept", "n_jobs"), [([], 1), ([0], 1), ([3, 7, 11], 1), ([3, 7, 11], 2), (list(range(11)), 1)]
)
def test_only_what_is_missing_is_computed(whole, folder, kept, n_jobs):
    lines = [lines_of(folder)[i] for i in kept]
    (folder / "journal.jsonl").write_bytes(b"".join(lines))
    found, known, computed = run(folder, n_jobs=n_jobs)
    assert [decode(line.strip())["chunk"] for line in lines] == [vars(chunk) for chunk in known]
    assert len(computed) == UNITS - len(kept)
    assert not set(known) & set(computed)
    assert_same(found, whole[1])
    assert len(lines_of(folder)) == UNITS


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ({"seed": 1}, "seed"),
        ({"tasks": 8}, "tasks"),
        ({"ways": 2, "queries": 2}, "queries, ways"),
        ({"shots": (2, 1)}, "shots"),
        ({"methods": {**METHODS, "nearest": KNeighborsClassifier(2)}}, "methods"),
        ({"methods": {"nearest": METHODS["nearest"]}}, "methods"),
        ({"methods": {**METHODS, "means": HOTClassifier(ragged_bank(seed=1), cost="mean-cosine")}}, "methods"),
        ({"X": X.astype(np.float32)}, "data"),
        ({"y": Y[::-1]}, "data"),
    ],
)
def test_another_request_is_refused_and_leaves_the_folder_alone(folder, change, differing):
    before = contents(folder)
    with pytest.raises(RunError, match=rf"holds another request \(it differs in {differing}\): name another"):
        run(folder, **change)
    assert contents(folder) == before


def test_the_same_request_in_other_words_goes_on(whole, folder):
    change = {
        "methods": {"means": HOTClassifier(ragged_bank(), cost="mean-cosine"), **METHODS},
        "X": X.tolist(),
        "y": list(Y),
        "shots": [np.int64(1), 2],
        "seed": np.int64(0),
    }
    found, _, computed = run(folder, **change)
    assert not computed
    assert np.array_equal(found["means", 2].accuracies, whole[1]["means", 2].accuracies)


# Torn and changed lines


def record(number, **changes):
    """A record of one task."""
    chunk = Chunk("é\n", number, number + 1, "hot")
    return replace(Record(chunk, [[[0, 3, 1], [4, 3, number % 4]]], None, {"0": 2}, 0, 0.5, {}), **changes)


def test_a_journal_cut_at_any_byte_of_its_last_two_records_becomes_whole_again(tmp_path):
    records = [record(i, measures={"auroc": [i / 7]}) for i in range(4)]
    with Journal(tmp_path, {}, {}) as journal:
        for each in records:
            journal.append(each)
    content = (tmp_path / "journal.jsonl").read_bytes()
    ends = np.cumsum([len(line) for line in content.splitlines(keepends=True)])
    for cut in range(ends[1], len(content) + 1):
        (tmp_path / "journal.jsonl").write_bytes(content[:cut])
        with Journal(tmp_path, {}, {}) as journal:
            found = list(journal.records().values())
            assert found == records[: int(np.sum(ends <= cut))]
            for each in records[len(found) :]:
                journal.append(each)
            assert list(journal.records().values()) == records
        assert (tmp_path / "journal.jsonl").read_bytes() == content


TASK = [[0, 3, 3], [1, 3, 2], [2, 3, 1]]


@pytest.mark.parametrize(
    "change",
    [
        {"counts": None}, {"counts": [TASK] * 3}, {"counts": [[[0.5, 3, 3]]] * 4}, {"counts": [[[0, 3]]] * 4},
        {"counts": [[]] * 4}, {"counts": [[[0, 0, 0]]] * 4}, {"counts": [[[0, 1, 2]]] * 4},
        {"counts": [[[-1, 3, 1]]] * 4}, {"counts": [[[0, 10**30, 1]]] * 4}, {"counts": [TASK, TASK, TASK, [[0, 1]]]},
        {"bins": [1, 2]}, {"bins": [[float("nan")] * 3] * 15}, {"statuses": {"a": "b"}}, {"stopped_early": "x"},
        {"seconds": -1}, {"measures": []}, {"measures": {"auroc": [0.5]}}, {"wings": 2},
        {"measures": {"auroc": [float("nan")] * 4}},
        {"chunk": None}, {"chunk": {"shots": [1], "start": 0, "stop": 1, "method": "means"}},
        {"deep": json.loads("[" * 500 + "]" * 500)},
    ],
    ids=lambda change: str(change)[:40],
)  # fmt: skip
def test_an_edited_record_with_its_checksum_is_computed_again(whole, folder, change):
    lines = lines_of(folder)
    lines[3] = encode({**decode(lines[3].strip()), **change})
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    lines += [b"%08x %s\n" % (zlib.crc32(deep), deep), b"\xff\xfe\x00 no JSON\n", b"\n", bytes(80) + b"\n"]
    (folder / "journal.jsonl").write_bytes(b"".join(lines))
    found, known, _ = run(folder)
    assert len(known) == UNITS - 1
    assert_same(found, whole[1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.data())
def test_no_single_changed_byte_goes_unnoticed(document, data):
    line = encode(document)[:-1]
    place = data.draw(st.integers(0, len(line) - 1))
    change = data.draw(st.integers(1, 255))
    assert decode(line[:place] + bytes([line[place] ^ change]) + line[place + 1 :]) is None


# Folders that cannot be used


@pytest.mark.parametrize("name", ["run", "run/within"])
def test_a_file_is_refused_before_settings_are_chosen(tmp_path, monkeypatch, name):
    (tmp_path / "run").touch()
    monkeypatch.setattr(runner, "estimator_to_json", lambda _: pytest.fail("settings were chosen"))
    with pytest.raises(RunError, match="is a file, not a run folder: name another"):
        run(tmp_path / name)


def test_one_process_at_a_time_writes_to_a_run_folder(tmp_path):
    with Journal(tmp_path, {}, {}) as first:
        first.append(record(1))
        with (tmp_path / "journal.jsonl").open("ab") as file:
            file.write(b"0123 being writ")
        with pytest.raises(RunError, match="Another process is writing"), Journal(tmp_path, {}, {}):
            pass
        # It is not a torn line to be dropped.
        assert lines_of(tmp_path)[-1] == b"0123 being writ"
    with Journal(tmp_path, {}, {}) as second:
        assert [each.chunk.start for each in second.records().values()] == [1]


@pytest.mark.parametrize("after", [2, UNITS])
@pytest.mark.parametrize("how", ["deleted", "moved", "made anew"])
def test_a_run_whose_folder_is_gone_is_not_complete(tmp_path, how, after):
    seen = []

    def take_away(record, was_known, total):
        seen.append(record)
        if len(seen) == after:
            (tmp_path / "run").rename(tmp_path / "elsewhere")
            if how != "moved":
                shutil.rmtree(tmp_path / "elsewhere")
            if how == "made anew":
                (tmp_path / "run").mkdir()
                (tmp_path / "run" / "journal.jsonl").touch()

    with pytest.raises(RunError, match="was deleted or moved while the run was going on"):
        evaluate(METHODS, X, Y, out=tmp_path / "run", watch=take_away, ways=3, queries=3, tasks=9, n_jobs=1)


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"\xff\xfe", b'{"request": [1]}'])
def test_a_request_that_cannot_be_read_is_refused(folder, content):
    (folder / "run.json").unlink()
    if content is not None:
        (folder / "run.json").write_bytes(content)
    before = contents(folder)
    with pytest.raises(RunError, match=r"(has a journal but no run\.json|cannot be read as a request): name another f"):
        run(folder)
    assert contents(folder) == before


# A full disk


class FullDisk(io.FileIO):
    """A file on a disk with `room` bytes left, which says so by an error or by a short count."""

    room = 0
    says = "error"

    def write(self, line):
        written = super().write(line[: self.room])
        type(self).room -= written
        if written < len(line) and self.says == "error":
            raise OSError(errno.ENOSPC, "No space left on device")
        return written


@pytest.fixture(params=["error", "short count"])
def full_disk(request, monkeypatch):
    """A function to give the disk so much room for journals from now on."""

    def opened(path, mode, **more):
        if path.name == "journal.jsonl":
            return FullDisk(path, mode)
        return open(path, mode, **more)

    def with_room(room):
        FullDisk.room, FullDisk.says = room, request.param
        monkeypatch.setattr(journals, "open", opened, raising=False)

    return with_room


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_on_a_full_disk_keeps_what_fitted_and_ends_with_the_same_results(
    whole, tmp_path, full_disk, monkeypatch, n_jobs
):
    lines = lines_of(whole[0])
    full_disk(sum(map(len, lines[:5])) - 20)
    with pytest.raises(RunError, match="make room and rerun the command to resume"):
        run(tmp_path / "run", n_jobs=n_jobs)
    kept = lines_of(tmp_path / "run")
    assert len(kept) >= 3
    assert all(decode(line.strip()) is not None for line in kept)
    assert not (tmp_path / "run" / "results.json").exists()
    monkeypatch.undo()
    found, known, computed = run(tmp_path / "run")
    assert (len(known), len(computed)) == (len(kept), UNITS - len(kept))
    assert_same(found, whole[1])
