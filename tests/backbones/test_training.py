"""Training: what augmentation, mixup and rotation must do, and that an interruption changes nothing."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the extra images")

from torch import nn

from hotshot.backbones import create, training
from hotshot.backbones.checkpoints import Recipe, load_backbone, read_checkpoint
from hotshot.backbones.training import augment, features_of, few_shot_accuracy, mixed_features, mixing_points, train
from hotshot.encoders import load_encoder
from hotshot.errors import HotshotError, InputError, ParameterError, RunError
from hotshot.images.decode import DecodedSplit

SMALL = {"backbone": "conv4", "options": {"filters": 4}, "size": 20, "batch_size": 16}


def coloured(n_classes=4, per_class=10, side=24, seed=0):
    """Images whose classes differ in colour."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), per_class)
    colours = rng.integers(40, 215, size=(n_classes, 1, 1, 3))
    images = colours[labels] + rng.integers(-20, 20, size=(len(labels), side, side, 3))
    return DecodedSplit(images.astype(np.uint8), labels, tuple(f"c{i}" for i in range(n_classes)))


# --- augmentation


def test_augmented_images_are_crops_by_the_seed():
    images = torch.from_numpy(coloured().images).permute(0, 3, 1, 2)
    one, again, other = (augment(images, 20, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert one.shape == (40, 3, 20, 20)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_mirroring_can_be_left_out():
    column = torch.zeros(8, 3, 20, 20, dtype=torch.uint8)
    column[..., :10] = 200
    for flip in (False, True):
        images = augment(column, 20, torch.Generator().manual_seed(0), flip=flip)
        assert bool((images[..., 0] < images[..., -1]).any()) == flip


# --- rotation and mixup


def test_rotations_are_quarter_turns_and_know_which():
    images = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4)
    turned, turn = training.rotations(images)
    assert turn.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    for image, k in zip(turned, turn, strict=True):
        back = torch.rot90(image, -int(k), dims=(1, 2))
        assert any(torch.equal(back, original) for original in images)


def test_rotation_loss_of_a_blind_network_is_that_of_guessing():
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 5, bias=False))
    classifier, turns = nn.Linear(5, 3, bias=False), nn.Linear(5, 4, bias=False)
    for module in (classifier, turns):
        nn.init.zeros_(module.weight)
    loss = training.rotation_loss(
        network, classifier, turns, torch.randn(2, 3, 4, 4), torch.tensor([0, 1]), nn.CrossEntropyLoss()
    )
    assert loss.item() == pytest.approx(0.5 * np.log(3) + 0.5 * np.log(4), rel=1e-6)


def test_mixup_is_of_the_images_and_of_their_partners_by_their_shares():
    network = create("conv4", filters=4).eval()
    images, partner = torch.randn(6, 3, 20, 20), torch.tensor([3, 4, 5, 1, 2, 0])
    assert len(mixing_points(network)) == 3
    for point in range(4):
        for share, partners, expected in (
            (1.0, partner, images),
            (0.3, torch.arange(6), images),
            (0, partner, images[partner]),
        ):
            mixed = mixed_features(network, images, share, partners, point)
            torch.testing.assert_close(mixed, network(expected), rtol=1e-5, atol=1e-5)
    half = mixed_features(network, images, 0.5, partner, 0)
    torch.testing.assert_close(half, network((images + images[partner]) / 2), rtol=1e-5, atol=1e-5)


# --- the loop


def test_a_handful_of_images_is_learned_by_heart(tmp_path):
    recipe = Recipe(**{**SMALL, "options": {"filters": 32}}, epochs=40, augment=False)
    split = coloured(side=20)
    epochs = []
    train(split, None, recipe, tmp_path / "run", after_epoch=epochs.append)
    # Batch statistics of ten images a class make single epochs waver.
    assert max(epoch.accuracy for epoch in epochs[-5:]) > 0.95
    assert epochs[-1].loss < epochs[0].loss / 2
    assert [epoch.number for epoch in epochs] == list(range(1, 41))


class StopError(Exception):
    pass


@pytest.fixture
def run(tmp_path):
    """A function that trains for three epochs in a folder; and what its checkpoints hold."""
    base, val = coloured(), coloured(seed=1)

    def trained(name, recipe, **options):
        train(base, val, recipe, tmp_path / name, **options)
        folders = [tmp_path / name / which for which in ("last", "best")]
        numbers = [(folder / "checkpoint.safetensors").read_bytes() for folder in folders]
        return numbers, [len(read_checkpoint(folder)[0]["history"]) for folder in folders]

    return trained


OTHER = {"optimiser": "adam", "learning_rate": 1e-3, "rotation": True, "mixup": 2.0}


@pytest.mark.parametrize(
    ("where", "options", "stop"),
    [("batch", o, stop) for o in ({}, OTHER) for stop in (1, 3, 4, 8)] + [("save", {}, i) for i in range(1, 6)],
    ids=str,
)
def test_training_that_was_killed_ends_with_the_same_checkpoints(run, monkeypatch, where, options, stop):
    recipe, save, calls = Recipe(**SMALL, epochs=3, **options), training.save_checkpoint, []

    def killed(*now):
        calls.append(now)
        if len(calls) == stop:
            raise StopError

    def killed_before(*content):
        killed()
        save(*content)

    with monkeypatch.context() as patched:
        if where == "save":
            patched.setattr(training, "save_checkpoint", killed_before)
        with pytest.raises(StopError):
            run("torn", recipe, watch=killed if where == "batch" else None)
    assert run("torn", recipe) == run("whole", recipe)


def test_one_process_at_a_time_trains_in_a_folder(tmp_path):
    recipe = Recipe(**SMALL, epochs=1)

    def second(*_):
        with pytest.raises(RunError, match="Another process is writing to the folder"):
            train(coloured(), None, recipe, tmp_path / "run")

    train(coloured(), None, recipe, tmp_path / "run", watch=second)


def test_the_best_epoch_is_kept_and_validation_classes_may_come_after_an_interruption(tmp_path):
    recipe, val = Recipe(**SMALL, epochs=3), coloured(seed=1)

    def killed(epoch):
        raise StopError

    with pytest.raises(StopError):
        train(coloured(), None, recipe, tmp_path / "run", after_epoch=killed)
    network = train(coloured(), val, recipe, tmp_path / "run")
    first, *others = (epoch["validation"] for epoch in read_checkpoint(tmp_path / "run" / "last")[0]["history"])
    assert first is None
    again, known, about = load_backbone(tmp_path / "run" / "best")
    assert known == recipe
    assert about["history"][-1]["validation"] == max(others)
    features = features_of(network, val.images, recipe.size)
    np.testing.assert_array_equal(features_of(again, val.images, recipe.size), features)
    assert features.min() >= 0


@pytest.mark.parametrize("few", [{"n_classes": 1}, {"n_classes": 3, "per_class": 1}], ids=str)
def test_validation_classes_that_are_too_few_for_a_task_choose_nothing(tmp_path, few):
    epochs = []
    train(coloured(), coloured(**few), Recipe(**SMALL, epochs=1), tmp_path / "run", after_epoch=epochs.append)
    assert epochs[0].validation is None


def test_another_recipe_in_the_same_folder_is_refused(tmp_path):
    recipe = Recipe(**SMALL, epochs=1)
    train(coloured(), None, recipe, tmp_path / "run")
    with pytest.raises(InputError, match="differs in epochs"):
        train(coloured(), None, Recipe(**SMALL, epochs=2), tmp_path / "run")
    with pytest.raises(InputError, match="differs in names"):
        train(coloured(n_classes=5), None, recipe, tmp_path / "run")


def test_a_diverging_loss_and_a_single_image_are_reported(tmp_path):
    with pytest.raises(InputError, match="smaller learning rate"):
        train(coloured(), None, Recipe(**SMALL, epochs=3, learning_rate=1e12), tmp_path / "run")
    with pytest.raises(InputError, match="The base classes have a single image"):
        train(coloured(n_classes=1, per_class=1), None, Recipe(**SMALL, epochs=1), tmp_path / "other")


@pytest.mark.parametrize(
    "change", [{"optimiser": "lion"}, {"schedule": "warm"}, {"batch_size": 1}, {"mixup": -1.0}], ids=str
)
def test_recipes_are_checked(change):
    (name,) = change
    with pytest.raises(ParameterError, match=f"{name} must be"):
        Recipe(**change)


def test_few_shot_accuracy_of_clusters_and_of_noise():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 30)
    clusters = 5 * rng.normal(size=(8, 16))[labels] + rng.normal(size=(240, 16))
    assert few_shot_accuracy(clusters, labels, clusters.mean(axis=0)) > 0.95
    noise = rng.normal(size=(240, 16))
    assert few_shot_accuracy(noise, labels, noise.mean(axis=0)) == pytest.approx(0.2, abs=0.05)


# --- checkpoints that someone has edited


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(coloured(), None, Recipe(**SMALL, epochs=1), folder)
    return folder


def edited(trained, tmp_path, recipe=None, without=(), **changes):
    shutil.copytree(trained, tmp_path / "run")
    for which in ("best", "last"):
        path = tmp_path / "run" / which / "checkpoint.json"
        content = json.loads(path.read_text())
        content["recipe"] = content["recipe"] | recipe if isinstance(recipe, dict) else recipe or content["recipe"]
        content = {key: value for key, value in (content | changes).items() if key not in without}
        path.write_text(json.dumps(content))
    return tmp_path / "run"


RECIPES = [
    {"options": {"filters": 12_000}}, {"options": {"filters": 10**12}}, {"options": {"filters": -4}},
    {"options": {"filters": 4.5}}, {"options": {"filters": "a"}}, {"options": [1]}, {"options": None},
    {"options": {"filters": 4, "channels": 3}}, {"options": {"x" * 2000: 1}}, {"backbone": ["a"]},
    {"backbone": "resnet12", "options": {"filters": [1] * 5000}}, {"backbone": "wrn28_10"}, {"backbone": "none"},
    {"size": "a"}, {"size": 32.5}, {"size": 10**6}, {"size": 8}, {"size": None}, {"augment": "no"}, {"batch_size": 1},
    {"other": 3}, ["a"],
]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: str(recipe)[:40])
def test_a_recipe_that_does_not_fit_its_weights_is_one_sentence(trained, tmp_path, monkeypatch, recipe):
    """Without memory for the network that it describes: 12,000 filters are ten gigabytes."""
    sizes = []

    def create_and_count(name, **options):
        network = create(name, **options)
        sizes.append(sum(x.numel() for x in network.state_dict().values() if not x.is_meta))
        return network

    monkeypatch.setattr("hotshot.backbones.checkpoints.create", create_and_count)
    with pytest.raises(HotshotError) as caught:
        load_encoder(str(edited(trained, tmp_path, recipe) / "best"))
    assert str(caught.value).isprintable()
    assert max(sizes, default=0) < 2000


@pytest.mark.parametrize(
    "edit",
    [
        {"history": None}, {"history": 3}, {"names": None}, {"names": 5}, {"without": ("names",)},
        {"without": ("history",)}, {"without": ("recipe",)}, {"format": "x"},
        {"version": 9},
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_without_its_parts_is_one_sentence(trained, tmp_path, edit):
    run = edited(trained, tmp_path, **edit)
    with pytest.raises(InputError, match="checkpoint"):
        load_encoder(str(run / "best"))
    with pytest.raises(InputError, match="checkpoint"):
        train(coloured(), None, Recipe(**SMALL, epochs=2), run)


@pytest.mark.parametrize("cut", [0, 8, 100, -1])
def test_a_torn_checkpoint_is_refused(trained, tmp_path, cut):
    numbers = edited(trained, tmp_path) / "last" / "checkpoint.safetensors"
    numbers.write_bytes(numbers.read_bytes()[:cut])
    with pytest.raises(InputError):
        read_checkpoint(tmp_path / "run" / "last")
