"""What every code cell of the site finds: shell commands that must succeed, and figures as SVG."""

import os
import re
import subprocess

import matplotlib
from IPython import get_ipython
from matplotlib_inline.backend_inline import set_matplotlib_formats


def run(command: str) -> None:
    """Run a shell command of a cell, show what it prints, and stop the build where it fails."""
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # Progress, which commands write every ten seconds to what is no terminal, differs from build to build.
    print(re.sub(r"(?m)^.*, \d+ s\n", "", done.stdout), end="")
    if done.returncode:
        raise RuntimeError(f"`{command}` ended with status {done.returncode}.")


# The kernel sets it, and commands would take this for a terminal and draw progress bars.
os.environ.pop("FORCE_COLOR", None)
get_ipython().system = run
# As they are, not cut to what they hold: titles of hotshot's figures would be cut off.
set_matplotlib_formats("svg", bbox_inches=None)
matplotlib.rcParams["figure.dpi"] = 100
