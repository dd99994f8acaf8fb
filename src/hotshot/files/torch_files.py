"""Files of `torch.save`, read by `torch.load(weights_only=True)` in a child process: features, or weights of a network.

Torch reads its zip archives and the streams of before 2020. Of functions it calls only the few that tensors need, and
those that arrays of NumPy need.
"""

import importlib.metadata
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import GROWTH_OF_COMPRESSED, read_in_child
from hotshot.files.opening import check_size, damaged, most_bytes
from hotshot.files.packing import Packer, as_text
from hotshot.files.pickles import features_from_value
from hotshot.files.samples import FeatureSource
from hotshot.files.unpickling import InvalidPickleError, refuse_invalid, refused_name
from hotshot.formatting import quoted

# A pickle that begins with it, as torch before 1.6 wrote.
TORCH_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
# Before, files could run code in spite of weights_only (CVE-2025-32434).
_OLDEST = (2, 6)
# How torch names what it refuses to call.
_REFUSED = re.compile(r"(?:GLOBAL|call|instance of class|class) ([\w.]+\.[\w.]+)")
# What torch says of other faults, after some advice.
_REASON = re.compile(r"WeightsUnpickler error:\s*(.+)")
# Where programs keep the weights within what they save, and how deep at most.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
_DEEPEST = 8


def open_torch(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.pt` or `.pth` file: tensors by name or by class, or a pair of features and labels.

    The result may take as much memory as a compressed file may unpack to, 200 times its size but at least 256 MiB: a
    tensor may be one number, expanded. `part` is the key of one of several sets of samples.
    """
    path = Path(path)
    check_torch(path)
    return features_from_value(read_in_child(read_values, path, GROWTH_OF_COMPRESSED, library="torch"), path, part)


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Weights of a network by name, in the order of the file, mapped; empty if it holds none.

    Programs save more than weights: options, devices, the state of an optimiser. These are ignored.
    """
    check_torch(path)
    weights: dict[str, np.ndarray] = read_in_child(read_state, path, GROWTH_OF_COMPRESSED, library="torch")
    return weights


def check_torch(path: Path) -> None:
    """Raise with instructions if torch is missing, or too old to be safe."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise InputError(
            f"{path} is a torch file, and reading it needs PyTorch 2.6 or later: pip install 'hotshot[images]'."
        )


def read_values(path: Path, name: str) -> Any:
    """The value of a torch file, packed; runs in the child."""
    with path.open("rb") as file, refuse_invalid(file, name, "torch file"):
        packer = Packer(name, most_bytes(path), _as_array)
        return packer.pack(_loaded(file, name)), packer.arrays


def read_state(path: Path, name: str) -> Any:
    """The weights in a torch file; runs in the child."""
    import torch

    with path.open("rb") as file, refuse_invalid(file, name, "file of weights", "its state_dict with torch.save"):
        content = _loaded(file, name)
        for _ in range(_DEEPEST):
            if not isinstance(content, dict) or any(isinstance(x, torch.Tensor) for x in content.values()):
                break
            content = {as_text(key): value for key, value in content.items()}
            content = next((content[key] for key in _NESTS if isinstance(content.get(key), dict)), None)
        items = content.items() if isinstance(content, dict) else ()
        tensors = {as_text(key) or str(key): x for key, x in items if isinstance(x, torch.Tensor)}
        # A tensor may be one number, expanded.
        check_size(path, sum(4 * x.numel() for x in tensors.values()), "weights")
        arrays = {key: _as_array(x) for key, x in tensors.items()}
        packer = Packer(name, sys.maxsize)
        real = {key: x for key, x in arrays.items() if isinstance(x, np.ndarray) and x.dtype.kind in "biuf"}
        return packer.pack(real), packer.arrays


def _loaded(file: Any, name: str) -> Any:
    """The value of a torch file, with tensors of torch."""
    import torch

    is_archive = file.peek(2)[:2] == b"PK"
    if is_archive:
        _check_archive(file, name)
    try:
        with torch.serialization.safe_globals([*_of_numpy(), (_dictionary, "collections.defaultdict"), list]):
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        if not is_archive and not file.read(1):
            # Names may be cut off, too.
            raise EOFError from None
        asked = _REFUSED.search(str(error).replace("`", " "))
        if asked:
            raise refused_name(name, asked[1]) from None
        if reason := _REASON.search(str(error)):
            raise InvalidPickleError(reason[1]) from None
        raise


def _dictionary(*_: Any) -> dict[Any, Any]:
    """In place of a default dictionary, which is empty when it is made."""
    return {}


def _of_numpy() -> list[Any]:
    """What an array of NumPy in a torch file calls; also under the names of NumPy 1."""
    functions = np._core.multiarray._reconstruct, np._core.multiarray.scalar  # type: ignore[attr-defined]
    named = [(x, f"numpy.{core}.multiarray.{x.__name__}") for x in functions for core in ("core", "_core")]
    return [*named, np.ndarray, np.dtype, *{type(np.dtype(code)) for code in "?bBhHiIlLqQefdSU"}]


def _check_archive(file: Any, name: str) -> None:
    """Refuse archives that unpack to too much, are damaged, or are no data, in sentences of our own."""
    path = Path(file.name)
    try:
        archive = zipfile.ZipFile(path)
    except Exception:
        # zipfile raises errors of every kind for tables of contents that are none.
        raise damaged(f"{name} has no valid list of contents, as after an unfinished download") from None
    with archive:
        members = archive.infolist()
        if any(member.filename.endswith("/constants.pkl") or "/code/" in member.filename for member in members):
            raise InputError(f"{name} is a TorchScript program, not features: save tensors with torch.save.")
        if any(member.flag_bits & 1 for member in members):
            raise InputError(f"{name} is encrypted: save it without a password.")
        check_size(path, sum(member.file_size for member in members), "members")
        if changed := archive.testzip():
            raise damaged(f"{name} has another checksum than announced for {quoted(changed)}")


def _as_array(value: Any) -> Any:
    """Tensors as arrays, bfloat16 as float32; any other value, and tensors that NumPy does not have, as they are."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    try:
        value = value.detach()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    except (TypeError, NotImplementedError):
        return value
