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
    patch = pytest.MonkeyPatch()
    patch.setattr(covariances, "DENSE_ENTRIES", 0)
    bank = ragged_bank(sizes=(7, 2, 1, 2, 2), width=WIDTH)
    bank.prepare(plain_space(normalize=None))
    patch.undo()
    bank.prepare(plain_space(n_components=3))
    bank.save(folder / "full")
    bank.save(folder / "small", samples=False, covariance="low-rank")
    return folder


@pytest.fixture(params=["full", "small"])
def bank_folder(request, sound_banks, tmp_path):
    """A fresh copy of a sound bank, to spoil."""
    return copied(sound_banks / request.param, tmp_path / "one.bank")


@pytest.fixture
def full_bank(sound_banks, tmp_path):
    return copied(sound_banks / "full", tmp_path / "one.bank")


def copied(source, target):
    shutil.copytree(source, target)
    return target


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


def files_of(folder):
    return sorted(file.name for file in folder.iterdir())


def describe(folder, description):
    """Write a description with digests that are right, as those who mean harm would."""
    digests = {name: objects.file_digest(folder / name) for name in files_of(folder) if name != "bank.json"}
    sealed = {**{key: x for key, x in description.items() if key != "digest"}, "files": digests}
    (folder / "bank.json").write_text(json.dumps({**sealed, "digest": objects._document_digest(sealed)}))


def rewrite(folder, change):
    """Change the description of a bank."""
    description = json.loads((folder / "bank.json").read_text())
    change(description)
    describe(folder, description)


def rewrite_content(folder, number, change):
    """Change the content metadata and tensors of a stored space."""
    path = folder / f"space-{number}.safetensors"
    file = map_tensors(path)
    tensors = {name: np.array(x) for name, x in file.tensors.items()}
    content = json.loads(file.metadata["content"])
    content = change(content, tensors) or content
    write_tensors(path, tensors, {"content": json.dumps(content)})
    rewrite(folder, lambda description: None)


def test_the_bank_to_spoil_is_sound(bank_folder):
    bank = BaseClasses.load(bank_folder)
    assert len(bank.prepared) == 2
    if bank.samples is not None:
        joined, dense = (bank.covariances for bank in bank.prepared.values())
        assert [type(part).__name__ for part in joined.parts] == ["Factored", "Dense", "Factored"]
        assert isinstance(dense, Dense)
    rewrite(bank_folder, lambda description: None)
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
    monkeypatch.undo()
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
    copied(sound_banks / "full", tmp_path / "full")
    rewrite(full_bank, lambda d: d["spaces"][0].update(file=file))
    check_refused(full_bank)


# --- descriptions


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100_000, "1" * 5000, '{"format": "hotshot model"}'])
def test_descriptions_that_describe_nothing_are_refused(bank_folder, text):
    (bank_folder / "bank.json").write_text(text, encoding="utf-8")
    check_refused(bank_folder, "does not describe a bank")


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
    rewrite(full_bank, lambda description: description.update(change))
    check_refused(full_bank, message)


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
        is_absent = other is DELETED or other is None
        return (
            # A bank with other origins, choices, names, centres or another smallest entry is another bank.
            path[0] in ("about", "hotshot", "choices", "names", "counts", "centres", "smallest")
            # Samples that nobody mentions are as good as none, and banks of few classes have no feature space.
            or (path == ("samples",) and other is None)
            or (path == ("feature_space",) and is_absent)
            # A space fewer, or of parameters that no fit looks for.
            or (path[0] == "spaces" and len(path) <= 2 and (other is DELETED or other == []))
            or path[2:3] == ("space",)
        )

    description = json.loads((bank_folder / "bank.json").read_text())
    description = {key: x for key, x in description.items() if key not in ("files", "digest")}
    check_every_field(bank_folder, description, lambda changed: describe(bank_folder, changed), is_harmless)


# --- prepared spaces


@pytest.mark.parametrize("number", [0, 1])
def test_every_field_of_a_space_deleted_or_retyped_is_refused(bank_folder, number):
    def is_harmless(path, other):
        return (
            path[0] == "names"
            or (path == ("buckets",) and other == [])
            or (path[-1] in ("lengths", "means", "diagonal") and (other is None or other is DELETED))
        )

    path = bank_folder / f"space-{number}.safetensors"
    whole = path.read_bytes()

    def write(changed):
        path.write_bytes(whole)
        rewrite_content(bank_folder, number, lambda content, _: changed)

    content = json.loads(map_tensors(path).metadata["content"])
    check_every_field(bank_folder, content, write, is_harmless, OTHERS[:: 2 if number == 0 else 4])


def spoilt_tensors(folder, others_of):
    """Each tensor of each space in turn replaced by others, which `others_of` makes of it: its name, and the other."""
    for number in (0, 1):
        path = folder / f"space-{number}.safetensors"
        whole = path.read_bytes()
        for name, x in map_tensors(path).tensors.items():
            for other in others_of(np.array(x)):

                def change(_, tensors, name=name, other=other):
                    tensors[name] = other
                    if other is None:
                        del tensors[name]

                path.write_bytes(whole)
                rewrite_content(folder, number, change)
                yield name, x, other
        path.write_bytes(whole)


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
        rewrite(full_bank, lambda description: None)
        check_refused(full_bank)


def entry(name, value):
    """The first entry of a tensor is another."""
    return lambda _, tensors: tensors[name].__setitem__(0, value)


def scale(value):
    return lambda content, _: content["transform"].update(scale=value)


BUCKETS, COVARIANCES, MASS = "base.buckets.0.classes", "base.covariances.classes.0", "base.buckets.0.mass"
CONTENTS = [
    *((1, "transform does not match", scale(x)) for x in (0, -1, -0.5, 3.0, 0.75, 1e308, 2.0**1023, 2.0**-1030)),
    # Unless features are normalised there is no scale.
    (0, "transform does not match", scale(2)),
    *((0, "is not a valid bank", entry(BUCKETS, x)) for x in (-1, 3, 99, 2**62)),
    *((0, "is not a valid bank", entry(COVARIANCES, x)) for x in (-1, 4, 99, 2**62)),
    (0, "weights of a class do not sum to 1", lambda _, tensors: tensors.update({MASS: tensors[MASS] * 0.5})),
    (0, "mass has a negative entry", lambda _, tensors: tensors.update({MASS: tensors[MASS] - 0.2})),
]


@pytest.mark.parametrize(("number", "message", "change"), CONTENTS)
def test_spaces_that_contradict_the_bank_are_refused(full_bank, number, message, change):
    rewrite_content(full_bank, number, change)
    check_refused(full_bank, message)


def test_content_nested_without_end_is_refused(bank_folder):
    path = bank_folder / "space-0.safetensors"
    tensors = {name: np.array(x) for name, x in map_tensors(path).tensors.items()}
    for content in ("[" * 50_000 + "]" * 50_000, '{"type":"Joined","parts":' * 2000, "", "null", "{}", "[]"):
        write_tensors(path, tensors, {"content": content})
        rewrite(bank_folder, lambda description: None)
        check_refused(bank_folder)
    write_tensors(path, tensors, {})
    rewrite(bank_folder, lambda description: None)
    check_refused(bank_folder)
