"""Models of inputs as folders: files in addition to those of their classifier, and the models before, for undo."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.bank import BaseClasses, is_bank
from hotshot.bank.store import DESCRIPTION as BANK_DESCRIPTION
from hotshot.classifiers.hot import HOTClassifier
from hotshot.classifiers.saving import DESCRIPTION, UnloadedBase, digest_of, write_model
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files import write_features
from hotshot.files.atomic import link_or_copy, real, replace_folder, write_json
from hotshot.files.objects import need, read_json_document, refuse_damage
from hotshot.inputs.encoding import AT_ONCE, InputEncoder
from hotshot.inputs.samples import read_samples

if TYPE_CHECKING:
    from hotshot.inputs.classifier import InputClassifier

INPUTS, SUPPORT, OLD, BANK, PREVIOUS = "inputs.json", "support.safetensors", "old.safetensors", "base.bank", "previous"
WHAT, VERSION, FIT = "model of inputs", 3, "fit a model with hotshot fit"
# Changes of a model in a folder that can be undone.
MOST_UNDONE = 20


def save_model(model: InputClassifier, path: Path, overwrite: bool, previous: bool = False) -> None:
    """Save a model; with `previous` the model before stays in its folder."""
    content = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "encoder": model.encoder,
        "kind": model.encoding.kind,
        "new_only": model.new_only,
        "probe": list(model.encoding.probe),
        "old": None if model.old is None else model.old.y.tolist(),
    }
    base: Any = model.model.base
    has_bank = isinstance(base, BaseClasses) or getattr(base, "folder", None) is not None
    files = {SUPPORT: model.support} | ({} if model.old is None else {OLD: model.old})
    with replace_folder(path, DESCRIPTION, overwrite) as folder:
        place, digest = model.place or (None, "")
        if place == real(path) and path.exists() and digest_of(path) != digest:
            raise RunError(f"{path} was changed since this model was loaded from it: load it again first.")
        write_json(folder / INPUTS, content)
        for name, samples in files.items():
            write_features(folder / name, replace(samples, y=None), about=model.about)
        if has_bank:
            _save_bank(base, model.bank_in_place, folder / BANK)
        if previous:
            copytree(path, folder / PREVIOUS, copy_function=link_or_copy)
            rmtree(folder.joinpath(*[PREVIOUS] * (MOST_UNDONE + 1)), ignore_errors=True)
        bank = [f"{BANK}/{BANK_DESCRIPTION}"] if has_bank else []
        digest = write_model(model.model, folder, [INPUTS, *files, *bank])
    model.place = real(path), digest
    model.bank_in_place = UnloadedBase(base.fingerprint, path / BANK) if has_bank else None


def _save_bank(base: Any, in_place: UnloadedBase | None, place: Path) -> None:
    """Write a bank; if its files are in the folder that the model is from, link them."""
    stored = base if isinstance(base, UnloadedBase) else in_place
    with suppress(InputError) if isinstance(base, BaseClasses) else nullcontext():
        if stored is not None and stored.load().fingerprint == base.fingerprint:
            copytree(str(stored.folder), place, copy_function=link_or_copy)
            return
    base.save(place)


def previous_model(path: Path) -> Path:
    """The folder of the model that was in a folder before its last change."""
    read_json_document(path, INPUTS, WHAT, FIT, VERSION)
    if not (path / PREVIOUS).is_dir():
        raise InputError(f"{path} holds no earlier model: nothing was added or removed, or all is undone.")
    return path / PREVIOUS


def put_back(path: Path) -> None:
    """Put the model before in the place of the one in a folder."""
    with replace_folder(path, DESCRIPTION, overwrite=True) as folder:
        copytree(path / PREVIOUS, folder, copy_function=link_or_copy, dirs_exist_ok=True)


def read_model(kind: Any, folder: Path, device: str, encoder: str | None, trust: bool) -> Any:
    """The model in a folder, of this class; see ``InputClassifier.load``."""
    digest, model = digest_of(folder), HOTClassifier.load(folder)
    content = read_json_document(folder, INPUTS, WHAT, FIT, VERSION)
    if encoder is not None and content.get("encoder") is None:
        raise ParameterError(f"{folder} takes features and has no encoder: leave encoder (--encoder) out.")
    with refuse_damage(folder, WHAT):
        loaded = kind(new_only=bool(content["new_only"]))
        name, of_inputs, trusted = encoder or content["encoder"], content["kind"], trust or encoder is not None
        need(of_inputs in AT_ONCE and isinstance(name, (str, type(None))), "its encoder is unknown")
        loaded.encoding = InputEncoder(name, device, kind=of_inputs, probe=content["probe"], trust=trusted)
        loaded.model = model
        support = read_samples(folder / SUPPORT, model.support_labels_, model.n_features_in_)
        loaded.shown, loaded.about = support.columns, support.about
        if content["old"] is not None:
            loaded.old = read_samples(folder / OLD, np.array(content["old"]), model.n_features_in_)
        need(digest_of(folder) == digest, "it was replaced")
    loaded.place = real(folder), digest
    if isinstance(model.base, UnloadedBase) and is_bank(folder / BANK):
        loaded.bank_in_place = model.base = UnloadedBase(model.base.fingerprint, folder / BANK)
    return loaded
