"""The library needs NumPy, SciPy and scikit-learn. What else hotshot depends on is for the shell, pages and figures."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
import hotshot

rng = np.random.default_rng(0)
y = np.repeat(np.arange(26), 12)
X = np.repeat(rng.normal(size=(26, 6)), 12, axis=0) + 0.4 * rng.normal(size=(312, 6))
base = hotshot.BaseClasses.from_samples(X[:240], y[:240])
few = np.arange(240, 312, 6)
model = hotshot.HOTClassifier(base).fit(X[few], y[few])
assert np.mean(model.predict(X[240:]) == y[240:]) > 0.8
model.predict(X, reject=0.05), model.predict_proba_batch(X[240:]), model.suggest(X[240:], n=2)
str(model.explain(X[few[:1]]))
np.savez("new.npz", X=X[few], y=y[few])
named = hotshot.InputClassifier(base=base).fit("new.npz")
named.save("a.model")
assert (hotshot.InputClassifier.load("a.model").predict(X[few]) == named.predict(X[few])).all()
print("fitted")
{more}
"""
FOR_SHELL_AND_PAGES = ["typer", "click", "rich", "jinja2", "markupsafe", "matplotlib", "array_api_compat"]
EXTRAS = ["torch", "PIL", "onnx", "onnxruntime", "pyarrow", "pandas", "dask", "distributed", "h5py", "safetensors"]


def run(folder, more=""):
    program = PROGRAM.format(absent={*FOR_SHELL_AND_PAGES, *EXTRAS}, more=more)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, timeout=300)


def test_a_classifier_is_fitted_without_the_libraries_of_the_shell_and_the_pages(tmp_path):
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (0, "fitted\n"), done.stderr


@pytest.mark.parametrize("line", ["import hotshot.cli", "str(named.explain(X[:1]).to_html('x'))"])
def test_what_needs_them_is_missing_there(tmp_path, line):
    done = run(tmp_path, line)
    assert "No module named" in done.stderr
    assert done.stdout == "fitted\n"
