"""A classifier of raw inputs: what it answers, what it keeps, how it grows, what it refuses."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from copy import copy

import numpy as np
import pytest

from hotshot import BaseClasses, HOTClassifier, InputClassifier
from hotshot.encoders import Encoder
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.files import Samples, open_features, write_features
from hotshot.files.objects import write_sealed
from sentences import NEW, OLD, labelled, read_table, sentences, write_table
from worlds import SETTINGS


def test_old_classes_new_classes_and_outliers_are_distinguished(birds, tables):
    rows = read_table(tables / "inbox.csv")
    answers = birds.predict(tables / "inbox.csv", reject=0.05, unknown="none")
    truth = np.array([row["truth"] for row in rows])
    for names, least in ((NEW, 0.7), (OLD, 0.7)):
        own = np.isin(truth, names)
        assert np.mean(answers[own] == truth[own]) >= least
    assert np.mean(answers[truth == "strange"] == "none") >= 0.7
    assert set(birds.classes) == {*OLD, *NEW}
    assert birds.new_classes.tolist() == sorted(NEW)


def test_it_equals_hot_on_the_features_of_the_encoder(birds, tables):
    texts = [row["text"] for row in read_table(tables / "inbox.csv")]
    old, new = (read_table(tables / name) for name in ("old.csv", "new.csv"))
    X = [birds.features([row["text"] for row in rows]) for rows in (old, new)]
    base = BaseClasses.from_samples(X[0], [row["label"] for row in old])
    plain = HOTClassifier(base, include_base=True, **SETTINGS).fit(X[1], [row["label"] for row in new])
    np.testing.assert_allclose(birds.predict_proba(texts), plain.predict_proba(birds.features(texts)), atol=1e-5)


def test_explanations_quote_the_samples(birds):
    explained = str(birds.explain(sentences("kite", 1, seed=2)))
    assert any(f'"{text}"' in explained for text in sentences("kite", 3))
    assert "Closest examples of `kite`" in explained
    page = birds.explain(["Kite0 <script>alert(1)</script>"]).to_html("<b>")
    assert "<script>alert" not in page
    assert "<b>" not in page


@pytest.mark.parametrize("loaded", [False, True])
def test_the_closest_of_all_samples_of_an_old_class_are_shown(birds, saved, loaded):
    model = InputClassifier.load(saved, trust=True) if loaded else birds
    for name in OLD[:4]:
        texts = sentences(name, 12)
        # The last sample of the class is the input itself.
        explained = model.explain(texts[-1:])
        assert explained.explanation.reasons[0].label == name
        (shown, *_) = (row for row in explained.to_dict()["reasons"][0]["examples"] if row["label"] == name)
        assert (shown["name"], shown["similarity"]) == (f'"{texts[-1]}"', pytest.approx(1, abs=1e-5))
        assert f'"{texts[-1]}" (similarity 1.00)' in str(explained)
        assert texts[-1] in explained.to_html("x").split("Likeliest class")[1]


def test_a_sample_added_to_an_old_class_is_among_the_closest_if_all_are_known(birds, tables):
    bank = InputClassifier(birds.encoder, base=birds.model.base, **SETTINGS).fit(tables / "new.csv")
    (text,) = sentences(OLD[0], 1, seed=7)
    for model, known in ((birds, True), (bank, False)):
        grown = copy(model).add([text], [OLD[0]])
        assert (f'"{text}" (similarity 1.00)' in str(grown.explain([text]))) == known
        assert ("not at hand" in str(grown.explain([text]))) != known


def test_explanations_reject_what_predictions_reject(birds, tables):
    texts = [row["text"] for row in read_table(tables / "inbox.csv")]
    answers = birds.predict(texts, reject=0.05, unknown="none")
    explained = birds.explain(texts, reject=0.05)
    reasons = explained.to_dict()["reasons"]
    assert [reason["rejected"] for reason in reasons] == (answers == "none").tolist()
    assert 0 < sum(answers == "none") < len(texts)
    np.testing.assert_allclose([r["outlier_score"] for r in reasons], birds.outlier_score(texts), atol=1e-4)
    words, cards = str(explained).split("\n\n"), explained.to_html("x").split("<article>")[1:]
    for reason, paragraph, card in zip(reasons, words, cards, strict=True):
        assert reason["rejected"] == (reason["outlier_score"] > reason["limit"])
        assert ("none of these" in paragraph, "none of these" in card) == (reason["rejected"],) * 2
        assert f"limit of {reason['limit']:.2f}" in paragraph
        assert f"limit of {reason['limit']:.2f}" in card
    assert "limit" not in str(birds.explain(texts[:1]))


def test_one_new_class_or_none_of_these(birds, tables, hotshot, tmp_path):
    write_table(tmp_path / "one.csv", labelled(["kite"], 3))
    write_table(
        tmp_path / "inbox.csv", [(text,) for text in [*sentences("kite", 4, 9), *sentences("strange", 4, 9)]], ("text",)
    )
    fit = ("fit", "--base", tables / "old.csv", "--support", "one.csv", "--encoder", birds.encoder, "--new-only")
    hotshot.succeeds(*fit, "-o", "one.model")
    hotshot.succeeds("predict", "one.model", "inbox.csv", "--reject", "0.05", "-o", "out.csv")
    rows = read_table(tmp_path / "out.csv")
    assert [row["class"] for row in rows[4:]] == ["none of these"] * 4
    assert {(row["class"], row["runner_up"]) for row in rows[:4]} <= {("kite", ""), ("none of these", "kite")}
    hotshot.succeeds("explain", "one.model", "inbox.csv", "--html", "a.html")
    assert "There is no other class" in hotshot("explain", "one.model", "inbox.csv").stdout


def test_an_encoder_that_changed_is_refused(saved, tables, tmp_path):
    (tmp_path / "words.py").write_text((tables / "words.py").read_text(encoding="utf-8").replace("64", "65"))
    loaded = InputClassifier.load(saved, trust=True)
    loaded.encoding.name = f"{tmp_path}/words.py:embed"
    with pytest.raises(InputError, match="other features than when this model was fitted"):
        loaded.predict(["Wren0"])


@pytest.fixture
def n_encoded(monkeypatch):
    """The numbers of inputs that were encoded together."""
    found, encode = [], Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, content: found.append(len(content)) or encode(self, content))
    return found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (labelled(OLD, 12), [("one", OLD[3])], f"'{OLD[3]}' is a base class and a new class"),
        (labelled(OLD, 12), [("one", "")], "new.csv has no label in any row"),
        (labelled(OLD, 12), [("one",)], "new.csv has no column of labels"),
        ([("one",)], labelled(NEW, 1), "old.csv has no column of labels"),
        ([("one", "")], labelled(NEW, 1), "old.csv has no label in any row"),
        (labelled(OLD, 12), [*labelled(NEW, 1), ("", "wren")], r"1 of 4 inputs of .*new.csv cannot be read: row 4"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_encoded(tables, tmp_path, n_encoded, old, new, said):
    for name, rows in (("old.csv", old), ("new.csv", new)):
        write_table(tmp_path / name, rows, header=("text", "label")[: len(rows[0])])
    with pytest.raises(InputError, match=said):
        InputClassifier(f"{tables}/words.py:embed", base=tmp_path / "old.csv", strict=True).fit(tmp_path / "new.csv")
    # One and two inputs are those that the encoder is probed with.
    assert sorted(n_encoded) in ([], [1, 2])


@pytest.mark.parametrize(("few", "said"), [(12, "only classes with at most 12"), (2, "no class with at most 2")])
def test_the_few_of_one_file_are_counted_before_anything_is_encoded(tables, tmp_path, n_encoded, few, said):
    rows = [*labelled(OLD, 12), *labelled(NEW, 3), *[(text, "") for text in sentences("kite", 20, seed=5)]]
    write_table(tmp_path / "all.csv", rows)
    model = InputClassifier(f"{tables}/words.py:embed")
    with pytest.raises(InputError, match=said):
        model.fit_together(tmp_path / "all.csv", few=few)
    assert n_encoded == []
    assert model.fit_together(tmp_path / "all.csv").unlabelled == 20


def test_the_support_is_encoded_before_the_base(tables, n_encoded):
    InputClassifier(f"{tables}/words.py:embed", base=tables / "old.csv").fit(tables / "new.csv")
    assert n_encoded[2] == 9


def reseal(model):
    """Make the files of a model belong together again, as someone who forges one would."""
    content = json.loads((model / "model.json").read_text(encoding="utf-8"))
    files, _ = content.pop("files"), content.pop("digest")
    write_sealed(model, "model.json", content, files)


@pytest.mark.parametrize("field", ["encoder", "kind", "new_only", "probe", "old", "version", "format"])
def test_a_forged_model_is_refused_or_harmless(saved, field):
    file = saved / "inputs.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    for value in (None, 7, [], {}, "strange", ["strange"] * 240, [[1]], {"ids": [1]}, 10**400):
        file.write_text(json.dumps({**whole, field: value}), encoding="utf-8")
        reseal(saved)
        with suppress(HotshotError):
            InputClassifier.load(saved, trust=True).explain(["Wren0"])
    file.write_text(json.dumps({k: v for k, v in whole.items() if k != field}), encoding="utf-8")
    reseal(saved)
    with pytest.raises(InputError):
        InputClassifier.load(saved)


@pytest.mark.parametrize("name", ["support.safetensors", "old.safetensors"])
@pytest.mark.parametrize("change", [lambda X: X[1:], lambda X: X[:, 1:], lambda X: np.inf * X])
def test_forged_samples_are_refused(saved, name, change):
    X = change(open_features(saved / name, labelled=False).read()[0])
    write_features(saved / name, Samples(X))
    reseal(saved)
    with pytest.raises(InputError, match="is not a valid"):
        InputClassifier.load(saved)


def test_a_model_without_its_bank_predicts_but_adds_no_classes(saved):
    shutil.rmtree(saved / "base.bank")
    loaded = InputClassifier.load(saved, trust=True)
    assert loaded.predict(["Wren0 wren1"]).tolist() == ["wren"]
    with pytest.raises(ParameterError, match="without its base classes"):
        loaded.add(["Gull0"], ["gull"])
