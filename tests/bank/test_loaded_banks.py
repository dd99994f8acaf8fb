"""A loaded bank is mapped, read-only and quick, and an object like any other."""

from __future__ import annotations

import json
import mmap
import pickle
import shutil

import numpy as np
import pytest
from bank_file_examples import STATISTICS, WIDTH, arrays_of, backing, saved, task
from sklearn.base import clone

from bounded import at_most
from conftest import make_bank
from few_shot_problems import plain_space, ragged_bank
from hotshot import BaseClasses, CentroidClassifier, HOTClassifier, evaluate
from hotshot.errors import InputError
from hotshot.files.objects import file_digest


def test_all_arrays_of_a_loaded_bank_are_views_of_its_files(tmp_path):
    bank = ragged_bank()
    bank.prepare(plain_space())
    bank.prepare(plain_space(covariance="factored", normalize=None))
    loaded = saved(bank, tmp_path / "one.bank")
    arrays = [loaded.samples, *(x for p in loaded.prepared.values() for x in arrays_of(p))]
    assert len(arrays) > 20
    for array in arrays:
        assert isinstance(backing(array), mmap.mmap)
        assert not array.flags.writeable
        assert type(array) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        loaded.samples[0, 0] = 1.0


def test_loading_takes_no_memory_for_the_samples(tmp_path):
    X = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
    bank = BaseClasses.from_samples(X, np.arange(len(X)) % 40)
    bank.prepare(plain_space(n_components=5))
    bank.save(tmp_path / "one.bank")
    with at_most(X.nbytes / 4):
        loaded = BaseClasses.load(tmp_path / "one.bank")
    assert loaded.samples.nbytes == X.nbytes


@pytest.mark.parametrize("file", ["bank.json", "samples.safetensors", "space-0.safetensors"])
def test_files_of_another_bank_are_refused(tmp_path, file):
    one, other = (ragged_bank(seed=seed) for seed in (0, 1))
    for name, bank in (("one.bank", one), ("other.bank", other)):
        bank.save(tmp_path / name)
    shutil.copy(tmp_path / "other.bank" / file, tmp_path / "one.bank" / file)
    with pytest.raises(InputError, match=r"one\.bank is not a valid bank \(.*was not written with it"):
        BaseClasses.load(tmp_path / "one.bank")


def test_an_edited_description_is_refused(tmp_path):
    ragged_bank().save(tmp_path / "one.bank")
    file = tmp_path / "one.bank" / "bank.json"
    description = json.loads(file.read_text())
    file.write_text(json.dumps({**description, "names": description["names"][::-1]}))
    with pytest.raises(InputError, match="its description was changed"):
        BaseClasses.load(tmp_path / "one.bank")


@pytest.mark.parametrize("size", [0, 2**16, 2**24 + 1])
def test_the_digest_of_a_file_tells_files_apart_that_differ_at_either_end_or_in_size(tmp_path, size):
    content = np.random.default_rng(size).bytes(size)
    contents = {content, content + b"x", *({content[:-1] + b"?", b"?" + content[1:]} if size else ())}
    digests = set()
    for name, some in enumerate(contents):
        (tmp_path / str(name)).write_bytes(some)
        digests.add(file_digest(tmp_path / str(name)))
    assert len(digests) == len(contents)


@pytest.mark.parametrize("samples", [True, False])
def test_loaded_banks_are_pickled_and_cloned(samples, tmp_path):
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    bank = saved(ragged_bank(), tmp_path / "one.bank", **how)
    model = HOTClassifier(bank, cost="mean-cosine").fit(*task()[:2])
    copied_bank, copied_model = pickle.loads(pickle.dumps((bank, model)))
    assert copied_model.base is copied_bank
    assert copied_bank.fingerprint == bank.fingerprint
    queries = task()[2]
    np.testing.assert_array_equal(copied_model.predict_proba(queries), model.predict_proba(queries))
    np.testing.assert_array_equal(
        clone(copied_model).fit(*task()[:2]).predict_proba(queries), model.predict_proba(queries)
    )
    assert clone(model).base is bank


@pytest.mark.parametrize("samples", [True, False])
def test_different_banks_have_different_fingerprints(samples, tmp_path):
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    banks = [
        ragged_bank(),
        ragged_bank(seed=1),
        ragged_bank(dtype=np.float32),
        BaseClasses.from_samples(ragged_bank().samples, ragged_bank().labels + 1),
    ]
    fingerprints = [saved(bank, tmp_path / f"{i}.bank", **how).fingerprint for i, bank in enumerate(banks)]
    assert len(set(fingerprints)) == len(fingerprints)
    forms = [
        saved(ragged_bank(), tmp_path / f"{form}.bank", samples=False, covariance=form).fingerprint
        for form in STATISTICS
    ]
    assert len({ragged_bank().fingerprint, *forms}) == 1 + len(STATISTICS)


@pytest.mark.parametrize("samples", [True, False])
def test_evaluation_on_a_loaded_bank_is_the_same_in_any_number_of_processes(samples, tmp_path):
    X, y = make_bank(5, 12, WIDTH, seed=1, spread=0.9)
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    covariance = "auto" if samples else "diagonal"
    bank = ragged_bank(spread=0.8)
    loaded = saved(bank, tmp_path / "one.bank", **how)
    request = {"ways": 3, "shots": (1, 2), "queries": 4, "tasks": 30}

    def methods(base, covariance):
        hot = {"hot": HOTClassifier(base, covariance=covariance)} if samples else {}
        mean_cosine = HOTClassifier(base, cost="mean-cosine", covariance=covariance)
        return {**hot, "ot-mean-cosine": mean_cosine, "centroid-cl2n": CentroidClassifier(base)}

    in_memory = evaluate(methods(bank, covariance), X, y, n_jobs=1, **request)
    for n_jobs in (1, 2):
        evaluation = evaluate(methods(loaded, "auto"), X, y, n_jobs=n_jobs, **request)
        for one, other in zip(evaluation.results, in_memory.results, strict=True):
            np.testing.assert_array_equal(one.accuracies, other.accuracies)
