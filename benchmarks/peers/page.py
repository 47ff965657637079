"""The page in docs/: the tables of one run, how they were made, and what they do not say."""

from collections.abc import Mapping, Sequence

from benchmarks.peers.catalogue import OURS
from benchmarks.peers.judge_models import CLOSE
from benchmarks.peers.judge_operators import TOLERANCE
from benchmarks.peers.operator_comparison import OPERATOR_SECONDS, OperatorFinding
from benchmarks.peers.real_comparison import REAL_SECONDS, ROUNDS
from benchmarks.peers.tables import Sheet

_HEAD = """\
# Converters side by side

Five converters to half precision, on the same files, judged by the same code. Made by

    {command}

which writes this page; do not edit it. {facts}
"""
_METHOD = f"""\
## How it is judged

- Every converter keeps public inputs and outputs FP32 and is otherwise called with its defaults, as its makers
  recommend; each in an environment of its own with its newest release, in a process that is replaced when it dies. An
  operator test may take {OPERATOR_SECONDS:.0f} s, a real model {REAL_SECONDS:.0f} s.
- Operator tests: those of onnx 1.21.0 that have an FP32 input, run in FP32, and give the same twice. *Right*: every
  output within {TOLERANCE:.0%} of the largest value that FP32 gives, infinite or NaN where FP32 is,
  integers equal.
- *Names and types*: of outputs, and of inputs without an initializer. Old files list every weight as an input; what
  becomes of those is not counted.
- Half emulation: the converted graph in ONNX Runtime, each node computed in FP32 and its result rounded to half once.
  What the emulation cannot take runs as it is, in ONNX Runtime or the ONNX reference evaluator.
- The checker's verdict is `onnx.checker` with `full_check`; a fault that the FP32 file has too is not counted. Some
  converters append casts at the end of the graph and leave the order to the runtime: the lines *put in order* give
  credit for that.
- Real models: cosine of the worst output at least {CLOSE}, on generated inputs; nothing infinite that was finite. The
  engine is a portable one by TensorRT for RTX, strongly typed. Fused attentions are read from it; the cores of each
  model are known from its graph. Generated models are audio transformers with hot channels in the residual stream,
  rotary angles and Fourier features: made to show what naive half precision breaks.
- Times are those of the conversion alone, process start and imports left out; of real models the median of {ROUNDS}
  interleaved rounds. What failed counts with the time until it failed. On a machine with other work to do the CPU time
  is the one to compare.

## What this does not show

Speed and accuracy on a GPU: nothing here ran on one. Whether other options of a converter do better: each of them has
lists of operators and nodes to keep out; who tunes them for a model gets more out of them. An operator alone between
two casts is no model: of those tests atoll leaves in FP32 what only moves or selects values, and what it takes for an
island.
"""


def page(
    sheets: Sequence[Sheet],
    operators: Mapping[str, Sequence[OperatorFinding]],
    command: str,
    machine: Mapping[str, str],
) -> str:
    facts = " ".join(f"{name.capitalize()}: {value}." for name, value in machine.items())
    tables = "\n\n".join(f"## {sheet.title}\n\n{sheet.markdown()}" for sheet in sheets)
    return "\n".join([_HEAD.format(command=command, facts=facts), tables, "", _METHOD, *_ours_wrong(operators)])


def _ours_wrong(operators: Mapping[str, Sequence[OperatorFinding]]) -> list[str]:
    """Our own exceptions by name, with the reason."""
    wrong = [each for each in operators.get(OURS, ()) if not each.correct or each.parse]
    if not wrong:
        return []
    lines = [
        f"- `{each.name}`: {each.converts or each.checker or each.interface or each.right or each.parse}"
        for each in wrong
    ]
    return ["## Operator tests that atoll does not pass", "", *lines, ""]
