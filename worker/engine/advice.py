"""What to do about the builder's errors that are known."""

import re
from collections.abc import Iterable

ADVICE = (
    (
        re.compile(r"Turing \(SM75\): FP32 GEMM"),
        "sm_75 has no FP32 matrix multiplication in this toolchain: build for a newer arch, or use a mode that keeps "
        "no MatMul, Gemm or convolution in FP32.",
    ),
    (
        re.compile(r"OutOfMemory|out of memory|[Cc]ould not find any implementation"),
        "The builder lacked memory: raise workspace_gb, lower the profiles' max shapes, or lower optimization_level.",
    ),
    (
        re.compile(r"not self-consistent|Dimensions with name"),
        "Dimensions that the graph makes equal got different sizes: correct the profiles.",
    ),
    (re.compile(r"Unable to load library"), "An option needs a library that this toolchain lacks: leave it out."),
    (re.compile(r"[Ss]hape tensor|[Pp]rofile"), "Check that the profiles fit the graph's inputs."),
)
DEFAULT = "Build the FP32 graph (mode `none`) to see whether the fault lies in the graph or in the conversion."


def advice_on(errors: Iterable[str]) -> str:
    """The first advice that fits one of the errors."""
    text = "\n".join(errors)
    return next((advice for pattern, advice in ADVICE if pattern.search(text)), DEFAULT)
