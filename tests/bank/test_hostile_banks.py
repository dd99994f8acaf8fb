"""Banks that are torn or hostile are refused in one sentence, also where their digests are right."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from bank_file_examples import WIDTH, probabilities

from few_shot_problems import plain_space, ragged_bank
from hotshot import BaseClasses
from hotshot.bank import covariances
from hotshot.bank.covariances import Dense
from hotshot.errors import HotshotError, InputError
from hotshot.files import objects
from hotshot.files.tensors import map_tensors, write_tensors
from spoilt_folders import DELETED, INSTEAD, changed_fields, check_sentence, cut_short, replaced

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::hotshot.errors.NoSamplesWarning"
)


@pytest.fixture(scope="module")
def sound_banks(tmp_path_factory):
    """A bank with several forms of covariances in one space and dense ones in another, and one of statistics."""
    folder = tmp_path_factory.mktemp("sound")
    bank = ragged_bank(sizes=(7, 2, 1, 2, 2), width=WIDTH)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covariances, "DENSE_ENTRIES", 0)
        bank.prepare(plain_space(normalize=None))
    bank.prepare(plain_space(n_components=3))
    bank.save(folder / "full")
    bank.save(folder / "small", samples=False, covariance="low-rank")
    return folder


@pytest.fixture(params=["full", "small"])
def bank_folder(request, sound_banks, tmp_path):
    """A fresh copy of a sound bank, to spoil."""
    return shutil.copytree(sound_banks / request.param, tmp_path / "one.bank")


@pytest.fixture
def full_bank(sound_banks, tmp_path):
    return shutil.copytree(sound_banks / "full", tmp_path / "one.bank")


def check_refused(folder, message=None):
    with pytest.raises(InputError, match=message) as error:
        BaseClasses.load(folder)
    check_sentence(error.value)


def is_refused(folder, predict=True):
    """Whether a bank is refused, with one sentence; if not, it predicts, with numbers."""
    try:
        bank = BaseClasses.load(folder)
    except InputError as error:
        check_sentence(error)
        return True
    cost = {"cost": "mean-cosine"} if bank.samples is None else {}
    for settings in ({"n_components": 3}, {"normalize": None, "n_components": None}) if predict else ():
        try:
            assert np.isfinite(probabilities(bank, **cost, **settings)).all()
        except HotshotError as error:
            check_sentence(error)
    return False


def description_of(folder):
    description = json.loads((folder / "bank.json").read_text())
    return {key: x for key, x in description.items() if key not in ("files", "digest")}


def describe(folder, description):
    """Write a description with digests that are right, as those who mean harm would."""
    others = sorted(file.name for file in folder.iterdir() if file.name != "bank.json")
    objects.write_sealed(folder, "bank.json", description, others)


def stored_space(folder, number):
    """The description of a stored space, and its tensors."""
    file = map_tensors(folder / f"space-{number}.safetensors")
    return json.loads(file.metadata["content"]), {name: np.array(x) for name, x in file.tensors.items()}


def store_space(folder, number, content, tensors):
    write_tensors(folder / f"space-{number}.safetensors", tensors, {"content": json.dumps(content)})
    describe(folder, description_of(folder))


def test_the_bank_to_spoil_is_sound(bank_folder):
    bank = BaseClasses.load(bank_folder)
    assert len(bank.prepared) == 2
    if bank.samples is not None:
        joined, dense = (bank.covariances for bank in bank.prepared.values())
        assert [type(part).__name__ for part in joined.parts] == ["Factored", "Dense", "Factored"]
        assert isinstance(dense, Dense)
    store_space(bank_folder, 0, *stored_space(bank_folder, 0))
    assert not is_refused(bank_folder)


# --- files


def test_every_file_cut_short_anywhere_is_refused(bank_folder):
    for _ in cut_short(bank_folder):
        check_refused(bank_folder)
    assert BaseClasses.load(bank_folder).counts.sum() == 14


@pytest.mark.parametrize("instead", INSTEAD)
def test_every_file_replaced_is_refused(bank_folder, instead):
    for _ in replaced(bank_folder, instead):
        check_refused(bank_folder)


def test_an_endless_description_is_not_read(full_bank, monkeypatch):
    monkeypatch.setattr(objects, "LONGEST_DOCUMENT", 1000)
    check_refused(full_bank, "at most 1 kB are allowed")
    (full_bank / "bank.json").unlink()
    (full_bank / "bank.json").symlink_to("/dev/zero")
    check_refused(full_bank)


def test_a_folder_without_a_bank_says_how_to_make_one(tmp_path):
    (tmp_path / "file.npz").write_bytes(b"PK")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "file.npz", str(tmp_path)):
        check_refused(path, "make one with BaseClasses.save")
    check_refused("nul\0byte")


@pytest.mark.parametrize(
    "file", ["../full/space-0.safetensors", "/etc/passwd", "..", "", "a/../space-0.safetensors", "nul\0byte", "\udcff"]
)
def test_files_elsewhere_are_not_opened(full_bank, sound_banks, tmp_path, file):
    shutil.copytree(sound_banks / "full", tmp_path / "full")
    description = description_of(full_bank)
    description["spaces"][0]["file"] = file
    describe(full_bank, description)
    check_refused(full_bank)


# --- descriptions


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100_000, "1" * 5000, '{"format": "hotshot model"}'])
def test_descriptions_that_describe_nothing_are_refused(full_bank, text):
    (full_bank / "bank.json").write_text(text, encoding="utf-8")
    check_refused(full_bank, "does not describe a bank")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"version": x}, "but this hotshot reads version 3: use the hotshot")
            for x in (1, 4, 2.0, True, None, "x\ny")
        ),
        ({"names": [0, 1, 2, 3, 3]}, "names is invalid"),
        # In 64 bits these sum to the number of samples.
        ({"counts": [2**62, 2**62, 2**62, 2**62 - 4, 18]}, "samples have shape"),
    ],
)
def test_other_versions_and_descriptions_that_contradict_the_files_are_refused(full_bank, change, message):
    describe(full_bank, {**description_of(full_bank), **change})
    check_refused(full_bank, message)


@pytest.mark.parametrize(
    "change",
    [{"norms": [0.0]}, {"norms": 1}, {"shares": [0.0, "x"]}, {"mean": {"tensor": "features.axes"}}, {"axes": None}],
)
def test_a_damaged_feature_space_is_refused(change, tmp_path):
    ragged_bank(sizes=[3] * 20, width=4).save(tmp_path / "one.bank")
    description = description_of(tmp_path / "one.bank")
    description["feature_space"] |= change
    describe(tmp_path / "one.bank", description)
    check_refused(tmp_path / "one.bank", "is not a valid bank")


OTHERS = [None, True, -1, 2.5, 10**30, float("nan"), "text", [], {}, [[1.0]], {"tensor": "nothing"}, {"type": "Dense"}]


def check_every_field(folder, content, write, is_harmless, others=OTHERS):
    """Every field of nested JSON, deleted or replaced by others, is refused or harmless."""
    accepted = set()
    for path, other, changed in changed_fields(content, others):
        write(changed)
        if not is_refused(folder, predict=path not in accepted):
            accepted.add(path)
            assert is_harmless(path, other), f"{path} {other!r} was accepted"


def test_every_field_of_the_description_deleted_or_retyped_is_refused(bank_folder):
    def is_harmless(path, other):
        return (
            # A bank with other origins, choices, names, centres or another smallest entry is another bank.
            path[0] in ("about", "hotshot", "choices", "names", "counts", "centres", "smallest")
            # Samples that nobody mentions are as good as none, and banks of few classes have no feature space.
            or (path == ("samples",) and other is None)
            or (path == ("feature_space",) and other in (DELETED, None))
            # A space fewer, or of parameters that no fit looks for.
            or (path[0] == "spaces" and len(path) <= 2 and other in (DELETED, []))
            or path[2:3] == ("space",)
        )

    check_every_field(
        bank_folder, description_of(bank_folder), lambda changed: describe(bank_folder, changed), is_harmless
    )


# --- prepared spaces


@pytest.mark.parametrize("number", [0, 1])
def test_every_field_of_a_space_deleted_or_retyped_is_refused(bank_folder, number):
    def is_harmless(path, other):
        return (
            path[0] == "names"
            or (path == ("buckets",) and other == [])
            or (path[-1] in ("lengths", "means", "diagonal") and other in (DELETED, None))
        )

    content, tensors = stored_space(bank_folder, number)
    check_every_field(
        bank_folder,
        content,
        lambda changed: store_space(bank_folder, number, changed, tensors),
        is_harmless,
        OTHERS[:: 2 if number == 0 else 4],
    )


def spoilt_tensors(folder, others_of):
    """Each tensor of each space in turn replaced by others, which `others_of` makes of it: its name, and the other."""
    for number in (0, 1):
        content, tensors = stored_space(folder, number)
        for name, x in tensors.items():
            rest = {key: value for key, value in tensors.items() if key != name}
            for other in others_of(x):
                store_space(folder, number, content, rest if other is None else {**rest, name: other})
                yield name, x, other
        store_space(folder, number, content, tensors)


def test_every_tensor_of_another_shape_or_type_or_missing_is_refused(bank_folder):
    def others_of(x):
        half = np.float32 if x.dtype == np.float16 else np.float16
        shapes = [x[:-1], x[..., :-1], x[None], x.reshape(-1)[:0], np.concatenate([x, x])]
        return [None, *shapes, *(x.astype(dtype) for dtype in (half, np.int32, bool))]

    for name, x, other in spoilt_tensors(bank_folder, others_of):
        is_empty = other is not None and x.size == other.size == 0
        assert is_empty or is_refused(bank_folder), f"{name} {other}"


def test_no_number_that_is_not_finite_reaches_a_prediction(bank_folder):
    def others_of(x):
        # Its first entry is bad, and the others are not.
        is_first = np.arange(x.size).reshape(x.shape) == 0
        return [np.where(is_first, bad, x).astype(x.dtype) for bad in (np.nan, -np.inf)] if x.dtype.kind == "f" else []

    for _ in spoilt_tensors(bank_folder, others_of):
        is_refused(bank_folder)


def test_samples_of_another_shape_or_type_or_name_are_refused(full_bank):
    x = np.array(map_tensors(full_bank / "samples.safetensors").tensors["samples"])
    for tensors in (
        {"samples": x[:-1]}, {"samples": x[:, :-1]}, {"samples": x.T}, {"samples": x.astype(np.float32)},
        {"samples": x.reshape(-1)}, {"X": x}, {},
    ):  # fmt: skip
        write_tensors(full_bank / "samples.safetensors", tensors, {})
        describe(full_bank, description_of(full_bank))
        check_refused(full_bank)


# Unless features are normalised, as in the first space, there is no scale.
@pytest.mark.parametrize(
    ("number", "scale"), [(0, 2), *((1, x) for x in (0, -1, -0.5, 3.0, 0.75, 1e308, 2.0**1023, 2.0**-1030))]
)
def test_scales_that_are_no_usual_power_of_two_are_refused(full_bank, number, scale):
    content, tensors = stored_space(full_bank, number)
    content["transform"]["scale"] = scale
    store_space(full_bank, number, content, tensors)
    check_refused(full_bank, "transform does not match")


BUCKETS, COVARIANCES, MASS = "base.buckets.0.classes", "base.covariances.classes.0", "base.buckets.0.mass"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        *((BUCKETS, lambda x, n=n: np.r_[n, x[1:]], "is not a valid bank") for n in (-1, 3, 99, 2**62)),
        *((COVARIANCES, lambda x, n=n: np.r_[n, x[1:]], "is not a valid bank") for n in (-1, 4, 99, 2**62)),
        (MASS, lambda x: x * 0.5, "weights of a class do not sum to 1"),
        (MASS, lambda x: x - 0.2, "mass has a negative entry"),
    ],
)
def test_spaces_that_contradict_the_bank_are_refused(full_bank, name, change, message):
    content, tensors = stored_space(full_bank, 0)
    store_space(full_bank, 0, content, {**tensors, name: change(tensors[name])})
    check_refused(full_bank, message)


def test_content_nested_without_end_is_refused(full_bank):
    path = full_bank / "space-0.safetensors"
    tensors = stored_space(full_bank, 0)[1]
    for content in ("[" * 50_000 + "]" * 50_000, '{"type":"Joined","parts":' * 2000, "", "null", "{}", "[]"):
        write_tensors(path, tensors, {"content": content})
        describe(full_bank, description_of(full_bank))
        check_refused(full_bank)
