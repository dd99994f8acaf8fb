"""ONNX files as encoders: the features of the same network of PyTorch, and every file of another network refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="encoders of images need the extra images")

from encoder_cases import as_tensor, features_of, networks_in_a_file, one_sentence, pixels_of  # noqa: F401

from hotshot.backbones.networks import as_input
from hotshot.encoders import load_encoder, module_encoder
from hotshot.errors import HotshotError, InputError, ParameterError, RunError


def load(path, size=None):
    return load_encoder(str(path), size=size)


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
    encoder = load(path, 14 if side == "side" else None)
    assert (encoder.about["extractor"], encoder.size) == ("net.onnx", 16)
    assert encoder.about["network"]["producer"] == "tests"
    assert len(encoder.about["network"]["sha256"]) == 64
    assert load(encoder.name).same_as(encoder.probe)
    same = module_encoder(networks("pool"), 14)
    for count in (1, 5, 8):
        np.testing.assert_allclose(features_of(encoder, count), features_of(same, count), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT", "FLOAT16"])
def test_a_convolution_returns_the_features_of_pytorch_and_maps_are_averaged(onnx, networks, kind):
    encoder = module_encoder(networks("seeded"), 14)
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 4, 3)
    dtype = np.float32 if kind == "FLOAT" else np.float16
    weights = {name: x.detach().numpy().astype(dtype) for name, x in convolution.named_parameters()}
    nodes = [("Conv", "x weight bias", "c", {}), ("Relu", "c", "y", {})]
    path = onnx(nodes, {"x": ["n", 3, 14, 14]}, {"y": ["n", 4, 12, 12]}, weights, kind=kind)
    tolerance = 3e-3 if kind == "FLOAT16" else 1e-5
    np.testing.assert_allclose(features_of(load(path)), features_of(encoder), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batch", ["n", 4])
def test_channels_may_come_last(onnx, batch):
    nodes = [("ReduceMean", "x", "y", {"axes": [1, 2], "keepdims": 0})]
    encoder = load(onnx(nodes, {"x": [batch, 14, 14, 3]}, {"y": [batch, 3]}))
    expected = as_input(as_tensor(pixels_of(encoder)), 14).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(features_of(encoder), expected, rtol=1e-4, atol=1e-6)


def test_of_several_outputs_the_only_one_of_two_axes_is_taken(onnx):
    path = onnx(POOL, {"x": ["n", 3, 14, 14]}, {"p": ["n", 3, 1, 1], "y": ["n", 3]})
    assert features_of(load(path)).shape == (5, 3)


IMAGES = {"x": ["n", 3, 14, 14]}


@pytest.mark.parametrize(
    ("nodes", "inputs", "outputs", "message"),
    [
        ([("Add", "x z", "y", {})], IMAGES | {"z": IMAGES["x"]}, {"y": IMAGES["x"]}, r"the input x tensor.*, z tensor"),
        (POOL, {"x": ["n", 1, 14, 14]}, {"y": ["n", 1]}, r"one input of square images, \(batch, 3, .* input x tensor"),
        ([("Relu", "x", "y", {})], {"x": ["n", 3]}, {"y": ["n", 3]}, r"the input x tensor\(float\) \['n', 3\]"),
        (POOL, {"x": ["n", 3, 14, 20]}, {"y": ["n", 3]}, "one input of square images"),
        ([*POOL, ("Relu", "y", "z", {})], IMAGES, {"y": ["n", 3], "z": ["n", 3]},
         r"one output of features \(batch, V\), .* the output y tensor\(float\) \['n', 3\], z tensor"),
        ([("Relu", "x", "y", {}), ("Exp", "x", "z", {})], IMAGES, {"y": IMAGES["x"], "z": IMAGES["x"]}, "one output"),
        ([("Flatten", "x", "y", {"axis": 3})], IMAGES, {"y": ["m", "k"]}, r"fails on images .* \(ValueError: 84 rows"),
        ([("ReduceMean", "x", "y", {"axes": [3], "keepdims": 0})], IMAGES, {"y": ["n", 3, 14]},
         r"got float32 \(2, 3, 14\)"),
        ([("ReduceMean", "x", "y", {"keepdims": 0})], IMAGES, {"y": []}, r"fails on images \(2, 3, 14, 14\)"),
        (POOL, {"x": ["n", 3, 10**6, 10**6]}, {"y": ["n", 3]}, "size must be an integer from 1 to 4,096"),
        (POOL, {"x": [10**6, 3, 32, 32]}, {"y": [10**6, 3]}, "takes 1000000 images of size 32 at once: export it with"),
    ],
)  # fmt: skip
def test_files_of_other_networks_are_refused_in_one_sentence(onnx, nodes, inputs, outputs, message):
    path = onnx(nodes, inputs, outputs)
    with pytest.raises(HotshotError, match=message) as raised:
        load(path)
    one_sentence(raised)


def test_whole_numbers_are_no_images(onnx):
    nodes = [("Abs", "x", "y", {})]
    path = onnx(nodes, IMAGES, {"y": IMAGES["x"]}, kind="UINT8")
    with pytest.raises(InputError, match=r"of float32 or float16, .* input x tensor\(uint8\)"):
        load(path)


def test_the_size_is_needed_if_the_file_does_not_fix_it_and_must_match_the_file(onnx):
    path = onnx(POOL, {"x": ["n", 3, "h", "w"]}, {"y": ["n", 3]}, name="open.onnx")
    with pytest.raises(ParameterError, match=r"open.onnx does not fix the size of its images: pass size"):
        load(path)
    path = onnx(POOL, IMAGES, {"y": ["n", 3]})
    assert load(path, 14).size == 16
    with pytest.raises(ParameterError, match="takes images of size 14, got 32: leave size"):
        load(path, 32)


def test_damaged_and_absent_files_are_one_sentence(onnx, tmp_path, capfd):
    whole = onnx(POOL, IMAGES, {"y": ["n", 3]}).read_bytes()
    damaged = tmp_path / "damaged.onnx"
    unnamed = whole.replace(b"GlobalAveragePool", b"GlobalAverage\xff\xfe\xfd\xfc")
    unwritten = whole.replace(b"tests", b"test\xff")
    for content in (b"\x00" * 100, b"PK\x03\x04", whole[:60], unnamed, unwritten, whole.replace(b"n", b"\xff")):
        damaged.write_bytes(content)
        with pytest.raises(InputError, match=r"damaged.onnx is not an ONNX file that onnxruntime .* can run") as raised:
            load(damaged)
        one_sentence(raised)
    assert capfd.readouterr() == ("", "")
    damaged.write_bytes(b"")
    with pytest.raises(InputError, match=r"damaged.onnx is empty: copy or download it again"):
        load(damaged)
    with pytest.raises(InputError, match="There is no file"):
        load(tmp_path / "nowhere.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        load(tmp_path / "folder.onnx")


def test_weights_outside_the_folder_of_a_file_are_not_read(onnx, tmp_path):
    """ONNX files may keep their weights in others, by name: not anywhere on the disk."""
    from onnx import TensorProto, load_model, save

    (tmp_path / "secret").write_bytes(b"\x01\x02\x03\x04" * 3)
    (tmp_path / "models").mkdir()
    path = onnx([*POOL, ("Add", "y w", "z", {})], IMAGES, {"z": ["n", 3]}, {"w": np.ones(3, np.float32)})
    model = load_model(path)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret")
    path = tmp_path / "models" / "net.onnx"
    save(model, path)
    with pytest.raises(InputError, match="is not an ONNX file that onnxruntime"):
        load(path)


@pytest.mark.parametrize(("device", "has"), [("abacus", "PyTorch"), ("mps", ""), ("cpu:x", "PyTorch")])
def test_an_unavailable_device_is_refused(onnx, device, has):
    path = onnx(POOL, IMAGES, {"y": ["n", 3]})
    with pytest.raises(ParameterError, match=f"device must be available in {has}") as raised:
        load_encoder(str(path), device)
    one_sentence(raised)


def test_without_onnxruntime_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "net.onnx").write_bytes(b"x")
    with pytest.raises(RunError, match=r"net.onnx needs onnxruntime: pip install 'hotshot\[onnx\]'."):
        load(tmp_path / "net.onnx")
