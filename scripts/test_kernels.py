"""Run the test suite under the matrix kernels of several processors, with one and with two threads.

    python scripts/test_kernels.py [PYTEST ARGUMENTS]

OpenBLAS, which NumPy and SciPy use, has a kernel for each kind of processor, and their sums differ in the last digits.
The tolerances of tests must hold for all kernels. Kernels that this processor cannot run are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Kernels and the processor flags that they need.
KERNELS = {"Nehalem": {"sse4_2"}, "Haswell": {"avx2", "fma"}, "Zen": {"avx2", "fma"}, "SkylakeX": {"avx512f"}}
THREADS = (1, 2)
QUERY = (
    "import numpy, scipy.linalg, threadpoolctl; "
    "print(*sorted({i['architecture'] for i in threadpoolctl.threadpool_info() if i['internal_api'] == 'openblas'}))"
)


def processor_flags() -> set[str]:
    """The flags of the processor on Linux; an empty set on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":")[1].split()}


def main() -> None:
    """Run pytest once for each kernel and number of threads; exit with 1 if a run fails."""
    flags = processor_flags()
    failed, done = [], {}
    for kernel, needed in KERNELS.items():
        if not needed <= flags:
            print(f"{kernel}: skipped, this processor lacks {', '.join(sorted(needed - flags))}", flush=True)
            continue
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel}
        used = subprocess.run([sys.executable, "-c", QUERY], env=environment, capture_output=True, text=True).stdout
        if used in done:
            print(f"{kernel}: skipped, OpenBLAS uses the kernels of {done[used]} for it", flush=True)
            continue
        done[used] = kernel
        for threads in THREADS:
            environment |= {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
            print(f"{kernel}, {threads} thread(s) (OpenBLAS: {used.strip()})", flush=True)
            command = [sys.executable, "-m", "pytest", "-n", "2", *sys.argv[1:]]
            if subprocess.run(command, env=environment).returncode:
                failed.append(f"{kernel} with {threads} thread(s)")
    print(f"Failed: {', '.join(failed)}" if failed else "Passed with all kernels")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
