"""How Sphinx builds the site: `make docs` runs every code cell and treats each warning as an error."""

import logging
import os
import sys
from pathlib import Path

from hotshot import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Cells run in the kernel that this profile prepares: commands that fail stop the build, figures are SVG.
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")
os.environ["EXAMPLES"] = str(HERE.parent / "examples")
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
os.environ["COLUMNS"] = "92"  # what a block of the page holds without scrolling
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])

logging.getLogger("traitlets").setLevel(logging.WARNING)

project = "hotshot"
author = "The hotshot developers"
copyright = author  # noqa: A001 (the name is Sphinx's)
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "console_cells",
    "mathml",
    "program_reference",
]
exclude_patterns = ["_*"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have them, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "hotshot"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True, "source_repository": "", "source_branch": "main"}
html_show_sourcelink = False
html_copy_source = False
