"""A claim of the paper holds, fails or stays open by its intervals alone, and the numbers it shows are the tables'."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_table_experiments import feature_set, setting_of, setting_with

from hotshot.errors import InputError
from hotshot.evaluation.tables import Number, Table
from hotshot.paper import (
    EXPERIMENTS,
    Findings,
    ablations,
    accuracy,
    claim,
    cross_domain,
    load_findings,
    save_findings,
    transport,
)


def difference(mean, half_width=0.5):
    return Number(mean, half_width, signed=True)


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((1, 2), "holds"),
        ((1, 0.4), "undecided"),
        ((1, -0.4), "undecided"),
        ((1, -1), "does not hold"),
        ((-0.4, -1), "does not hold"),
        ((0.5,), "undecided"),
        ((None,), "undecided"),
    ],
)
def test_a_claim_needs_every_difference_above_zero(means, verdict):
    # A single task has no interval.
    differences = {f"method {i}": difference(mean or 9, mean and 0.5) for i, mean in enumerate(means)}
    assert claim("It is so.", differences).verdict == verdict


def test_of_many_differences_the_lowest_are_shown_and_all_count():
    differences = {name: difference(mean) for name, mean in zip("abcdefg", range(9, 2, -1), strict=True)}
    found = claim("It is so.", differences)
    assert found.measured.startswith("lowest of 7: g +3.00 ± 0.50; f +4.00 ± 0.50; ")
    assert "a +9" not in found.measured
    assert claim("It is so.", {**differences, "h": difference(-9)}).verdict == "does not hold"


@pytest.fixture
def setting():
    return setting_of(feature_set())


def run(name, setting):
    return EXPERIMENTS[name].run(setting)


def verdicts(findings):
    return [own.verdict for own in findings.claims]


def tasks_of(ahead, n=9):
    """Accuracies of two methods whose paired difference is `ahead`, never quite the same."""
    wobble = np.linspace(-0.01, 0.01, n)
    return 0.5 + ahead + wobble, np.full(n, 0.5)


@pytest.mark.parametrize(("ahead", "verdict"), [(0.1, "holds"), (0.0, "undecided"), (-0.1, "does not hold")])
def test_accuracy_judges_free_lunch_and_the_others_by_paired_differences(ahead, verdict):
    hot, other = tasks_of(ahead)
    results = {(name, k): other for name in accuracy.METHODS for k in (1, 5)}
    results["hot", 1] = results["hot", 5] = hot
    found = run("accuracy", setting_with(results)(feature_set("toys"), tasks=9))
    assert verdicts(found) == [verdict, "undecided", verdict] * 2
    assert [own.text.partition(" at ")[2] for own in found.claims] == ["1 shot."] * 3 + ["5 shots."] * 3
    assert found.claims[0].measured == str(found.tables[0].rows[2][2])


def test_fewer_tasks_below_the_threshold_is_what_holds():
    results = {("hot", 1): [0.7, 0.8, 0.9, 0.7] * 2, ("free-lunch", 1): [0.5, 0.4, 0.3, 0.7] * 2}
    assert verdicts(run("histogram", setting_with(results)(feature_set(), tasks=8))) == ["holds"]
    results = {("hot", 1): results["free-lunch", 1], ("free-lunch", 1): results["hot", 1]}
    assert verdicts(run("histogram", setting_with(results)(feature_set(), tasks=8))) == ["does not hold"]
    # The same difference in every task has an interval of 0, which is not certainty.
    results = {("hot", 1): [0.7, 0.8], ("free-lunch", 1): [0.5, 0.4]}
    assert verdicts(run("histogram", setting_with(results)(feature_set(), tasks=2))) == ["undecided"]


def costs_of(**accuracies):
    """Every method of `costs` at 50%, but for those given."""
    names = ("hot", *ablations.methods(feature_set().base))
    results = {(name, 1): tasks_of(0)[1] for name in names}
    for name, ahead in accuracies.items():
        results[name, 1] = tasks_of(ahead)[0]
    return run("costs", setting_with(results)(feature_set(), tasks=9))


def test_costs_tell_the_gain_of_the_transport_from_that_of_its_temperature():
    assert verdicts(costs_of(hot=0.1)) == ["holds", "holds", "undecided", "holds"]
    level = dict.fromkeys((*ablations.MATCHED, "hot"), 0.1)
    assert verdicts(costs_of(**level)) == ["holds", "undecided", "undecided", "holds"]
    # A gain of half a point is not ruled out.
    assert verdicts(costs_of(**{"ot-cosine-weighted": 0.0}))[3] == "undecided"
    better = costs_of(**{"ot-cosine-weighted": 0.1})
    assert verdicts(better) == ["does not hold", "undecided", "undecided", "does not hold"]
    assert "High-level OT, cosine, weighted means +10.00 ± " in better.claims[3].measured


def test_claims_show_the_numbers_of_their_tables(setting):
    found = run("backbones", setting)
    assert found.claims[0].measured == f"as given {found.tables[0].rows[0][4]}"
    found = run("costs", setting)
    assert f"High-level OT, Euclidean {found.tables[0].rows[1][2]}" in found.claims[0].measured
    found = run("toy-weights", setting)
    rows = {row[0]: row for row in found.tables[0].rows}
    less = rows["Free-Lunch"][2].mean - rows[transport.OT_PUBLISHED][2].mean
    assert f"reduction of the error {less:+.2f} ± " in found.claims[0].measured


def test_retrieved_and_generated_compare_the_ends_of_their_tables(setting, monkeypatch):
    found = run("retrieved", setting)
    rows = {row[0]: row for row in found.tables[0].rows}
    gain = rows["H-OT"][-1].mean - rows["H-OT"][1].mean
    assert found.claims[0].measured.startswith(f"H-OT {gain:+.2f} ± ")
    assert found.claims[1].measured.startswith(f"{rows['Free-Lunch'][2].mean - rows['Free-Lunch'][-1].mean:+.2f} ± ")
    monkeypatch.setattr(ablations, "NUMBERS", (5, 50))
    found = run("generated", setting)
    hot, lunch, _ = found.tables[0].rows
    assert found.claims[0].measured.startswith(f"H-OT {hot[2].mean - hot[1].mean:+.2f} ± ")
    assert found.claims[1].measured.startswith(f"5 {hot[1].mean - lunch[1].mean:+.2f} ± ")
    assert found.claims[2].measured.startswith(f"{hot[2].mean - lunch[2].mean:+.2f} ± ")


def test_two_base_classes_have_no_nearest_two():
    toys = feature_set()
    two = replace(toys, base=cross_domain.subset(toys.base, np.array([0, 1])))
    assert len(run("retrieved", setting_of(two)).claims) == 1


def test_across_domains_both_claims_are_about_the_other_base_classes(setting):
    halves = run("cross-domain", setting)
    assert halves.claims[0].measured == str(halves.tables[0].rows[2][4])
    assert all("the farther half" in own.text for own in halves.claims)
    (_, near, far) = halves.tables[0].rows
    assert halves.claims[2].measured.startswith(
        f"{(near[3].mean - far[3].mean) - (near[2].mean - far[2].mean):+.2f} ± "
    )
    other = setting_of(feature_set(), feature_set("other", seed=5))
    found = run("cross-domain", other)
    assert found.claims[0].measured == str(found.tables[0].rows[1][4])
    assert [("base classes of other" in own.text) for own in found.claims] == [True, True, False]
    lost = [row.mean for row in found.tables[0].rows[1][5:]]
    assert found.claims[2].measured.startswith(f"{lost[1] - lost[0]:+.2f} ± ")


@pytest.mark.parametrize("others", [(), (feature_set("other", seed=5),)])
def test_plans_are_compared_in_shares_of_the_base_classes(others):
    found = run("plan", setting_of(feature_set(), *others))
    share = {row[0]: 100 * row[2].mean / row[1].mean for row in found.tables[0].rows}
    inside, outside = list(share)[-2:]
    (flatter,) = found.claims
    assert flatter.text == f"Base classes of {outside} lend more equally than those of {inside}."
    assert f" {share[outside] - share[inside]:+.2f} ± " in flatter.measured


@pytest.mark.parametrize(
    ("own", "verdict"), [(0.32, "holds"), (0.29, "undecided"), (0.21, "undecided"), (0.18, "does not hold")]
)
def test_times_that_are_close_decide_nothing(own, verdict):
    seconds = {(f"{name}, timed", k): 0.25 for name in (accuracy.FREE_LUNCH, accuracy.HOT) for k in (1, 5)}
    seconds |= {(f"{accuracy.HOT_AS_PUBLISHED}, timed", k): own for k in (1, 5)}
    found = run("speed", setting_with(seconds)(feature_set()))
    assert verdicts(found) == [verdict] * 2
    assert found.claims[0].measured == f"{own / 0.25:.2f} times as long"


def test_findings_come_back(tmp_path):
    rows = (("a|b", Number(1.0, 0.25), Number(2.0, published=True)), ("c", None, None))
    table = Table("accuracies", ("method", "here", "in the paper"), rows)
    save_findings(tmp_path / "x", Findings(("It is so.",), (table,)), {"experiment": "x"})
    document = load_findings(tmp_path / "x")
    assert document["sentences"] == ["It is so."]
    assert document["tables"][0]["rows"][0][1]["half_width"] == 0.25
    (tmp_path / "x" / "findings.json").write_text("[]", encoding="utf-8")
    for folder, message in (("x", "holds no findings"), ("nowhere", "There is no file")):
        with pytest.raises(InputError, match=message):
            load_findings(tmp_path / folder)
