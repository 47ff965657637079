"""What `explain` answers: why a node has its dtype, and what would change it. Values only."""

from pydantic import BaseModel, ConfigDict

from worker.precision.report import AttentionReport, Finding, IslandReport


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputExplanation(_Value):
    """A value that the node reads. Dtypes are `fp32`, `fp16`, `bf16`, or ONNX names for what is no float.

    `made` is the dtype in which the converted graph makes it, `read` the one in which the node reads it; `cast` tells
    that a Cast lies between. A weight has none: it is converted itself, twice if readers differ.
    """

    position: int
    name: str
    source: str
    before: str
    made: str
    read: str
    cast: bool
    note: str | None = None


class ReaderExplanation(_Value):
    """Who reads a value of the node, in which dtype, and whether by a Cast."""

    node: str
    op: str
    read: str
    cast: bool


class OutputExplanation(_Value):
    """A value that the node makes. `public`: an output of the model or of a subgraph, which keeps its dtype. A
    constant is `made` `as read`."""

    position: int
    name: str
    before: str
    made: str
    public: bool
    readers: tuple[ReaderExplanation, ...]


class Option(_Value):
    """What would give the node another dtype, found by planning again with it."""

    option: str
    effect: str


class NodeExplanation(_Value):
    """`dtype` is that of its floats: `fp32`, the trunk's, or `none`. `position` counts from 1 to `nodes`, in
    topological order. `declined`: what families said of this node and of those beside it."""

    node: str
    op: str
    opset: int
    position: int
    nodes: int
    dtype: str
    cause: str
    reason: str
    island: IslandReport | None = None
    core: AttentionReport | None = None
    inputs: tuple[InputExplanation, ...] = ()
    outputs: tuple[OutputExplanation, ...] = ()
    declined: tuple[Finding, ...] = ()
    options: tuple[Option, ...] = ()


class Explanations(_Value):
    """All nodes that a pattern names, in topological order."""

    schema_version: int = 1
    mode: str
    trunk: str
    pattern: str
    nodes: tuple[NodeExplanation, ...]
