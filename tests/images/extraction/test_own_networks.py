"""Networks of one's own, named modules and ONNX files: known features, and every mistake before any extraction."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="extraction needs the extra images")
Image = pytest.importorskip("PIL.Image", reason="images need Pillow")

from hotshot.errors import HotshotError, InputError, ParameterError, RunError
from hotshot.extraction import module_extractor
from hotshot.files import read_features
from hotshot.images.datasets.decoding import DecodedSplit
from hotshot.images.extraction import extract_split, onnx_extractor, writing
from hotshot.images.training.augmentation import as_input

NETWORKS = """
from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Options:
    filters: int = 4


class Odd(nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


class Convolution(nn.Module):
    def __init__(self, filters=Options().filters):
        super().__init__()
        self.convolution = nn.Conv2d(3, filters, 3)

    def forward(self, x):
        return self.convolution(x).relu()


def seeded():
    torch.manual_seed(0)
    return Convolution()


pool = Odd(lambda x: x.mean(dim=(2, 3)))
maps = Odd(lambda x: x)
lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5))
pair = Odd(lambda x: (x, x))
tokens = Odd(lambda x: x.flatten(2))
whole = Odd(lambda x: x.long().sum(dim=(2, 3)))
empty = Odd(lambda x: x[:, :0, 0, 0])
squeezed = Odd(lambda x: x.mean(dim=(2, 3)).squeeze(0))
one_row = Odd(lambda x: x.reshape(1, -1))
large = Odd(lambda x: x[:, :, 50])
raising = Odd(lambda x: 1 / 0)
ending = Odd(lambda x: sys.exit(3))
coded = Odd(lambda x: int("\\x1b[31m"))
numbers = {"a": 1}


def wide(filters, *, depth):
    return Convolution(filters)


def broken():
    raise OSError("no disk.\\nAt all.")


def leaving():
    sys.exit(3)


def nothing():
    return None
"""


@pytest.fixture
def networks(tmp_path, monkeypatch):
    """A file of networks in the working folder; a function that names one in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "their_networks.py").write_text(NETWORKS)
    yield "their_networks.py:{}".format
    for name in [name for name in sys.modules if "their_" in name]:
        del sys.modules[name]


def pixels_of(extractor, count=5):
    rng = np.random.default_rng(1)
    shape = (count, 3, extractor.size, extractor.size)
    return torch.from_numpy(rng.integers(0, 256, size=shape).astype(np.uint8))


def features_of(extractor, count=5):
    with torch.inference_mode():
        return extractor.network(extractor.prepare(pixels_of(extractor, count))).float().cpu().numpy()


def one_sentence(error):
    text = str(error.value)
    assert text.isprintable()
    assert text.endswith(".")


# Modules.


@pytest.mark.parametrize("which", ["pool", "maps"])
def test_features_of_a_module_are_its_output_and_maps_are_averaged(networks, which):
    extractor, report = module_extractor(networks(which), 14)
    assert report is None
    assert extractor.size == 16
    expected = as_input(pixels_of(extractor), 14).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(features_of(extractor), expected, rtol=1e-4, atol=1e-6)
    assert extractor.name == f"their_networks.py:{which}"


@pytest.mark.parametrize("name", ["their_networks:pool", "their_networks:Convolution", "their_networks:seeded"])
def test_modules_of_the_working_folder_are_found_and_the_search_path_is_left_as_it_was(networks, name):
    before = list(sys.path)
    extractor, _ = module_extractor(name, 14)
    assert features_of(extractor).shape == (5, 3 if name.endswith("pool") else 4)
    assert sys.path == before


def test_a_file_finds_the_files_beside_it(networks, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "their_part.py").write_text(NETWORKS)
    (tmp_path / "models" / "their_whole.py").write_text("from their_part import seeded as make\n")
    extractor, _ = module_extractor("models/their_whole.py:make", 14)
    assert extractor.name == "their_whole.py:make"


def test_own_mean_and_deviation_are_taken_out(networks):
    extractor, _ = module_extractor(networks("pool"), 16, mean=(0, 0, 0), deviation=(1 / 255,) * 3)
    expected = pixels_of(extractor)[:, :, 1:17, 1:17].float().mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(features_of(extractor), expected, rtol=1e-4)


def test_a_network_is_not_in_training_when_it_extracts(networks):
    extractor, _ = module_extractor(networks("dropping"), 4)
    assert np.array_equal(features_of(extractor), features_of(extractor))


@pytest.mark.parametrize("which", ["Convolution", "lazy"])
def test_weights_of_a_file_are_used(networks, tmp_path, which):
    first, _ = module_extractor(networks(which), 14)
    network = torch.nn.Conv2d(3, 4, 3) if which == "Convolution" else torch.nn.Linear(3 * 14 * 14, 5)
    torch.save({f"module.{name}": x for name, x in network.state_dict().items()}, tmp_path / "w.pt")
    extractor, report = module_extractor(networks(which), 14, weights="w.pt")
    assert len(report.matched) == 2
    inputs = extractor.prepare(pixels_of(extractor))
    with torch.no_grad():
        expected = network(inputs).relu().mean(dim=(2, 3)) if which == "Convolution" else network(inputs.flatten(1))
    np.testing.assert_allclose(features_of(extractor), expected.numpy(), rtol=1e-3, atol=1e-5)
    assert extractor.about["weights"] == "w.pt"
    assert extractor.about["fingerprint"] != first.about["fingerprint"]


@pytest.mark.parametrize(("which", "first_done"), [("seeded", 8), ("Convolution", 4)])
def test_an_extraction_resumes_only_with_the_same_weights(networks, tmp_path, monkeypatch, which, first_done):
    monkeypatch.setattr(writing, "IMAGES_AT_ONCE", 4)
    pixels = np.random.default_rng(0).integers(0, 255, size=(12, 16, 16, 3)).astype(np.uint8)
    split = DecodedSplit(pixels, np.arange(12) % 2, ("a", "b"), fingerprint="sha256:1")

    def stop(done, total):
        raise KeyboardInterrupt

    begun, _ = module_extractor(networks("seeded"), 14)
    with pytest.raises(KeyboardInterrupt):
        extract_split(begun, split, tmp_path / "f.safetensors", about={}, watch=stop)
    extractor, _ = module_extractor(networks(which), 14)
    extractor = replace(extractor, name=begun.name)
    seen = []
    extract_split(extractor, split, tmp_path / "f.safetensors", about={}, watch=lambda done, _: seen.append(done))
    assert seen[0] == first_done


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("resnet", ParameterError, "network must be package.module:name or file.py:name"),
        (":pool", ParameterError, "network must be"),
        ("their_networks:", ParameterError, "network must be"),
        ("nowhere.models:net", ParameterError, "There is no module nowhere: install it"),
        ("torch.nowhere:net", ParameterError, "There is no module torch.nowhere"),
        ("nowhere.py:net", InputError, "There is no file nowhere.py"),
        ("their_syntax.py:net", InputError, r"their_syntax.py cannot be imported \(SyntaxError"),
        ("their_needs:net", InputError, r"their_needs cannot be imported \(ModuleNotFoundError: No module named 'no"),
        ("their_script.py:net", InputError, r"their_script.py cannot be imported \(SystemExit: 2\)"),
        ("their_networks.py:net", ParameterError, "their_networks.py has no 'net'"),
        ("their_networks.py:numbers", ParameterError, "must be or return a torch.nn.Module, got dict"),
        ("their_networks.py:nothing", ParameterError, "must be or return a torch.nn.Module, got NoneType"),
        ("their_networks.py:wide", ParameterError, "needs filters, depth: name a function without required"),
        ("torch.nn:Linear", ParameterError, "torch.nn:Linear needs in_features, out_features"),
        ("their_networks.py:broken", InputError, r"fails to create the network \(OSError: no disk. At all\): fix it"),
        ("their_networks.py:leaving", InputError, r"fails to create the network \(SystemExit: 3\)"),
        ("their_networks.py:pair", InputError, r"maps \(batch, V, h, w\), got tuple for images \(2, 3, 14, 14\)"),
        ("their_networks.py:tokens", InputError, r"got torch.float32 \(2, 3, 196\) for images"),
        ("their_networks.py:whole", InputError, r"got torch.int64 \(2, 3\)"),
        ("their_networks.py:empty", InputError, r"got torch.float32 \(2, 0\)"),
        ("their_networks.py:one_row", InputError, r"got torch.float32 \(1, 1176\)"),
        ("their_networks.py:squeezed", InputError, r"got torch.float32 \(3,\) for images \(1, 3, 14, 14\)"),
        ("their_networks.py:large", InputError, r"fails on images \(2, 3, 14, 14\) \(IndexError: .*: pass the size"),
        ("their_networks.py:raising", InputError, r"fails on images \(2, 3, 14, 14\) \(ZeroDivisionError"),
        ("their_networks.py:ending", InputError, r"fails on images \(2, 3, 14, 14\) \(SystemExit: 3\)"),
        ("their_networks.py:coded", InputError, r"fails on images \(2, 3, 14, 14\) \(ValueError"),
    ],
)  # fmt: skip
def test_mistakes_in_a_module_are_one_sentence(networks, tmp_path, name, error, message):
    (tmp_path / "their_syntax.py").write_text("def net(:\n")
    (tmp_path / "their_needs.py").write_text("import nowhere_at_all\n")
    (tmp_path / "their_script.py").write_text("raise SystemExit(2)\n")
    before = list(sys.path)
    with pytest.raises(error, match=message) as raised:
        module_extractor(name, 14)
    one_sentence(raised)
    assert sys.path == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "size must be an integer from 1 to 4,096, got 0"),
        ({"size": 10**9}, "size must be an integer from 1 to 4,096"),
        ({"device": "abacus"}, "device must be available in PyTorch, such as cpu, got 'abacus'"),
        ({"device": "meta"}, "device must be available in PyTorch"),
        ({"mean": (0.5,)}, "mean and deviation must be three numbers"),
        ({"mean": "abc"}, "mean and deviation must be three numbers"),
        ({"deviation": (1, 0, 1)}, "deviations above 0"),
        ({"weights": "w.pt"}, "pool has no weights to replace with w.pt"),
    ],
)
def test_mistakes_in_parameters_are_one_sentence(networks, given, message):
    with pytest.raises(ParameterError, match=message) as raised:
        module_extractor(networks("pool"), **{"size": 14, **given})
    one_sentence(raised)


# ONNX files.


@pytest.fixture
def onnx(tmp_path):
    """A function that writes a file of nodes with the shapes of its inputs and outputs."""
    pytest.importorskip("onnxruntime", reason="ONNX files need the extra onnx")
    pytest.importorskip("onnx", reason="ONNX files are made with onnx")
    from onnx import TensorProto, helper, numpy_helper, save

    def values(shapes, kind):
        kind = getattr(TensorProto, kind)
        return [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]

    def write(nodes, inputs, outputs, weights=None, *, kind="FLOAT", name="net.onnx"):
        graph = helper.make_graph(
            [helper.make_node(op, taken.split(), given.split(), **more) for op, taken, given, more in nodes],
            "graph",
            values(inputs, kind),
            values(outputs, kind),
            [numpy_helper.from_array(x, key) for key, x in (weights or {}).items()],
        )
        opset = [helper.make_opsetid("", 17)]
        save(helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="tests"), tmp_path / name)
        return tmp_path / name

    return write


POOL = [("GlobalAveragePool", "x", "p", {}), ("Flatten", "p", "y", {})]


@pytest.mark.parametrize("batch", ["n", 1, 2, 3, 8])
@pytest.mark.parametrize("side", [14, "side"])
def test_an_onnx_file_returns_the_features_of_the_same_module(onnx, networks, batch, side):
    path = onnx(POOL, {"x": [batch, 3, side, side]}, {"y": [batch, 3]})
    extractor = onnx_extractor(path, 14 if side == "side" else None)
    assert (extractor.name, extractor.size) == ("net.onnx", 16)
    assert extractor.about["producer"] == "tests"
    assert len(extractor.about["sha256"]) == 64
    same, _ = module_extractor(networks("pool"), 14)
    for count in (1, 5, 8):
        np.testing.assert_allclose(features_of(extractor, count), features_of(same, count), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16"])
def test_a_convolution_returns_the_features_of_pytorch_and_maps_are_averaged(onnx, networks, kind):
    extractor, _ = module_extractor(networks("seeded"), 14)
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 4, 3)
    dtype = np.float32 if kind == "FLOAT" else np.float16
    weights = {name: x.detach().numpy().astype(dtype) for name, x in convolution.named_parameters()}
    nodes = [("Conv", "x weight bias", "c", {}), ("Relu", "c", "y", {})]
    path = onnx(nodes, {"x": ["n", 3, 14, 14]}, {"y": ["n", 4, 12, 12]}, weights, kind=kind)
    tolerance = 3e-3 if kind == "FLOAT16" else 1e-5
    np.testing.assert_allclose(
        features_of(onnx_extractor(path)), features_of(extractor), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("batch", ["n", 4])
def test_channels_may_come_last(onnx, batch):
    nodes = [("ReduceMean", "x", "y", {"axes": [1, 2], "keepdims": 0})]
    extractor = onnx_extractor(onnx(nodes, {"x": [batch, 14, 14, 3]}, {"y": [batch, 3]}))
    expected = as_input(pixels_of(extractor), 14).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(features_of(extractor), expected, rtol=1e-4, atol=1e-6)


def test_of_several_outputs_the_only_one_of_two_axes_is_taken(onnx):
    path = onnx(POOL, {"x": ["n", 3, 14, 14]}, {"p": ["n", 3, 1, 1], "y": ["n", 3]})
    assert features_of(onnx_extractor(path)).shape == (5, 3)


IMAGES = {"x": ["n", 3, 14, 14]}


@pytest.mark.parametrize(
    ("nodes", "inputs", "outputs", "message"),
    [
        ([("Add", "x z", "y", {})], IMAGES | {"z": IMAGES["x"]}, {"y": IMAGES["x"]},
         r"must take one input, the images, and takes x tensor\(float\) .*, z tensor"),
        (POOL, {"x": ["n", 1, 14, 14]}, {"y": ["n", 1]}, r"must take images \(batch, 3, .* takes x tensor\(float\)"),
        ([("Relu", "x", "y", {})], {"x": ["n", 3]}, {"y": ["n", 3]}, r"must take images \(batch, 3, size, size\)"),
        (POOL, {"x": ["n", 3, 14, 20]}, {"y": ["n", 3]}, "must take square images"),
        ([*POOL, ("Relu", "y", "z", {})], IMAGES, {"y": ["n", 3], "z": ["n", 3]},
         r"one output of features \(batch, V\), and has y tensor\(float\) \['n', 3\], z tensor"),
        ([("Relu", "x", "y", {}), ("Exp", "x", "z", {})], IMAGES, {"y": IMAGES["x"], "z": IMAGES["x"]},
         r"must have one output of features \(batch, V\)"),
        ([("Flatten", "x", "y", {"axis": 3})], IMAGES, {"y": ["m", "k"]}, r"fails on images .* \(ValueError: 84 rows"),
        ([("ReduceMean", "x", "y", {"axes": [3], "keepdims": 0})], IMAGES, {"y": ["n", 3, 14]},
         r"got torch.float32 \(2, 3, 14\)"),
        ([("ReduceMean", "x", "y", {"keepdims": 0})], IMAGES, {"y": []}, r"fails on images \(2, 3, 14, 14\)"),
        (POOL, {"x": ["n", 3, 10**6, 10**6]}, {"y": ["n", 3]}, "takes batches of .* where 268 MB are allowed"),
        (POOL, {"x": [10**6, 3, 32, 32]}, {"y": [10**6, 3]},
         "takes batches of 1000000 images of size 32 only, 12.3 GB where 268 MB are allowed"),
    ],
)  # fmt: skip
def test_files_of_other_networks_are_refused_in_one_sentence(onnx, nodes, inputs, outputs, message):
    path = onnx(nodes, inputs, outputs)
    with pytest.raises(HotshotError, match=message) as raised:
        onnx_extractor(path)
    one_sentence(raised)


def test_whole_numbers_are_no_images(onnx):
    nodes = [("Abs", "x", "y", {})]
    path = onnx(nodes, IMAGES, {"y": IMAGES["x"]}, kind="UINT8")
    with pytest.raises(InputError, match=r"of float32 or float16, and takes x tensor\(uint8\)"):
        onnx_extractor(path)


def test_the_size_is_needed_if_the_file_does_not_fix_it_and_must_match_the_file(onnx):
    path = onnx(POOL, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3]}, name="open.onnx")
    with pytest.raises(ParameterError, match=r"open.onnx does not fix the size of its images: pass size"):
        onnx_extractor(path)
    path = onnx(POOL, IMAGES, {"y": ["n", 3]})
    assert onnx_extractor(path, 14).size == 16
    with pytest.raises(ParameterError, match="takes images of size 14, got 32: leave size"):
        onnx_extractor(path, 32)


def test_damaged_and_absent_files_are_one_sentence(onnx, tmp_path, capfd):
    whole = onnx(POOL, IMAGES, {"y": ["n", 3]}).read_bytes()
    damaged = tmp_path / "damaged.onnx"
    unnamed = whole.replace(b"GlobalAveragePool", b"GlobalAverage\xff\xfe\xfd\xfc")
    for content in (b"\x00" * 100, b"PK\x03\x04", whole[:60], unnamed, whole.replace(b"n", b"\xff")):
        damaged.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged.onnx is not an ONNX file that onnxruntime .* can run") as raised:
            onnx_extractor(damaged)
        one_sentence(raised)
    assert capfd.readouterr() == ("", "")
    damaged.write_bytes(b"")
    with pytest.raises(InputError, match=r"damaged.onnx is empty: copy or download it again"):
        onnx_extractor(damaged)
    with pytest.raises(InputError, match="There is no file"):
        onnx_extractor(tmp_path / "nowhere.onnx")
    with pytest.raises(InputError, match="is a folder"):
        onnx_extractor(tmp_path)


def test_weights_outside_the_folder_of_a_file_are_not_read(onnx, tmp_path):
    """ONNX files may keep their weights in others, by name: not anywhere on the disk."""
    from onnx import TensorProto, load, save

    (tmp_path / "secret").write_bytes(b"\x01\x02\x03\x04" * 3)
    (tmp_path / "models").mkdir()
    path = onnx([*POOL, ("Add", "y w", "z", {})], IMAGES, {"z": ["n", 3]}, {"w": np.ones(3, np.float32)})
    model = load(path)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret")
    path = tmp_path / "models" / "net.onnx"
    save(model, path)
    with pytest.raises(InputError, match="is not an ONNX file that onnxruntime"):
        onnx_extractor(path)


@pytest.mark.parametrize(("device", "has"), [("abacus", "PyTorch"), ("mps", ""), ("cpu:x", "PyTorch")])
def test_an_unavailable_device_is_refused(onnx, device, has):
    path = onnx(POOL, IMAGES, {"y": ["n", 3]})
    with pytest.raises(ParameterError, match=f"device must be available in {has}") as raised:
        onnx_extractor(path, device=device)
    one_sentence(raised)


def test_without_onnxruntime_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "net.onnx").write_bytes(b"x")
    with pytest.raises(RunError, match=r"net.onnx needs onnxruntime: pip install 'hotshot\[onnx\]'."):
        onnx_extractor(tmp_path / "net.onnx")


# The command.


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("ant", "bee"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(3):
            pixels = rng.integers(0, 255, size=(24, 30, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{i}.png")
    return SimpleNamespace(features=lambda out: read_features(tmp_path / out / "all.safetensors"))


def test_a_module_and_an_onnx_file_extract_the_same(hotshot, networks, onnx, pictures):
    onnx(POOL, IMAGES, {"y": ["n", 3]})
    run = hotshot("extract", "pictures", "--encoder", "their_networks:pool", "--size", "14", "--out", "a")
    assert run.returncode == 0, run.stderr
    run = hotshot("extract", "pictures", "--encoder", "net.onnx", "--out", "b")
    assert run.returncode == 0, run.stderr
    first, second = pictures.features("a"), pictures.features("b")
    assert first.y.tolist() == second.y.tolist() == ["ant"] * 3 + ["bee"] * 3
    np.testing.assert_allclose(first.X, second.X, rtol=1e-4, atol=1e-6)
    assert first.about["extractor"] == "their_networks:pool"
    assert first.about["network"]["size"] == second.about["network"]["size"] == 14
    assert len(second.about["network"]["sha256"]) == 64


def test_weights_go_with_a_module(hotshot, networks, pictures, tmp_path):
    state = torch.nn.Conv2d(3, 4, 3).state_dict()
    torch.save({f"convolution.{name}": x for name, x in state.items()}, tmp_path / "w.pt")
    run = hotshot("extract", "pictures", "--encoder", f"{networks('Convolution')}@w.pt")
    assert run.returncode == 0, run.stderr
    assert "w.pt: 2 tensors matched" in " ".join(run.stdout.split())
    found = pictures.features("features")
    assert found.X.shape == (6, 4)
    assert found.about["network"]["weights"] == "w.pt"
    assert found.about["network"]["size"] == 84


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "resnet"], "file.onnx, file.py:name or package.module:name, got 'resnet'"),
        (["--encoder", "their_networks:pair"], "got tuple"),
        (["--encoder", "nowhere.onnx"], "There is no file nowhere.onnx"),
        (["--encoder", "efficientnet-lite0", "--device", "abacus"], "device must be available in PyTorch"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line_are_one_sentence_and_exit_code_2(hotshot, networks, arguments, message):
    run = hotshot("extract", "pictures", *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
