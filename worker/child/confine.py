"""What a child process may see and use, and the promise that it does not outlive its parent."""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

PR_SET_PDEATHSIG = 1
# Above the worker's own score: when memory runs out the kernel ends the child, and the worker can tell why.
OOM_SCORE = "500"

KEPT_VARIABLES = frozenset(
    {"PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "VIRTUAL_ENV"},
)
KEPT_PREFIXES = ("LC_", "PYTHON", "OMP_", "OPENBLAS_", "MKL_", "CUDA_", "NVIDIA_")


def environment_without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What native libraries and Python need, and nothing else: a child that reads a stranger's file holds no address
    or password of the broker or the store."""
    return {
        name: value for name, value in environment.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }


def confine(parent: int) -> None:
    """Called first in the child: die with the parent, leave no core file, be the one that memory pressure ends.

    The kernel sends the death signal when the *thread* that spawned this process ends. A parent that died before the
    request to the kernel is seen by its changed process id.
    """
    # Ignored signals are inherited through exec, and a child that ignores SIGTERM cannot be asked to stop.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "the kernel does not promise to end this process with its parent")
    if os.getppid() != parent:
        os._exit(1)
    # In a container with a read-only /proc the kernel's own choice stands.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)


def peak_rss() -> int:
    """The highest resident memory of this process, in bytes.

    `getrusage` would also count the memory of the process that started this one (it survives exec).
    """
    try:
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
