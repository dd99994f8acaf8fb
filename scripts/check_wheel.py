"""Build the source archive and the wheel, install the wheel into an empty environment and run the demo offline.

    python scripts/check_wheel.py [FOLDER]

The build uses a copy of the tracked files, as a fresh clone has them. FOLDER (default: dist) receives both archives, in
place of earlier ones. Dependencies come from the configured package index; after that every network connection fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The text of a module that Python imports from PYTHONPATH when it starts, in worker processes too. Unix sockets, whose
# addresses are str or bytes, are allowed: they do not leave the machine.
SITECUSTOMIZE = """
import sys

def refuse(event, arguments):
    connects = event in ("socket.connect", "socket.sendto") and not isinstance(arguments[1], (str, bytes))
    if connects or event == "socket.getaddrinfo":
        raise OSError(f"The network is blocked ({event})")

sys.addaudithook(refuse)
"""


def tracked_files() -> list[str]:
    """Paths of the files under version control, relative to the root of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


def build(folder: Path, *options: str) -> Path:
    """Build from a copy of the tracked files; returns the path of the wheel in `folder`."""
    with tempfile.TemporaryDirectory() as copy:
        for name in tracked_files():
            target = Path(copy, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
        command = [sys.executable, "-m", "build", "--outdir", str(folder), *options, copy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("hotshot-*.whl")
    return wheel


def offline(folder: Path, *paths: Path) -> dict[str, str]:
    """Environment variables for Python without network, which imports from `paths` besides its own packages."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, *paths)))}


def main(folder: Path) -> None:
    """Build, install, run; print sizes and seconds."""
    for earlier in folder.glob("hotshot-*"):
        earlier.unlink()
    wheel = build(folder)
    with zipfile.ZipFile(wheel) as archive:
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(archive.namelist())} files", flush=True)
    with tempfile.TemporaryDirectory() as empty:
        venv.create(Path(empty, "venv"), with_pip=True)
        programs = Path(empty, "venv", "Scripts" if os.name == "nt" else "bin")
        start = time.perf_counter()
        subprocess.run([programs / "python", "-I", "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        print(f"installed into an empty environment in {time.perf_counter() - start:.0f} s", flush=True)
        start = time.perf_counter()
        subprocess.run([programs / "hotshot", "demo"], cwd=empty, env=offline(Path(empty)), check=True)
        print(f"hotshot demo without network: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1] if len(sys.argv) == 2 else "dist"))
