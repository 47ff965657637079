"""Einsums written out as MatMul and Transpose, where they are one batched matrix product or a permutation.

Up to opset 24 Einsum has no BF16 form, and an attention that is spelled with it would stay FP32 as a whole.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, helper

from worker.graph.names import NameSource, all_names
from worker.graph.walk import graphs


@dataclass(frozen=True, slots=True)
class Product:
    """`first` x `second` as MatMul takes them: each operand's position and axes, and the axes of the result."""

    first: tuple[int, tuple[int, ...]]
    second: tuple[int, tuple[int, ...]]
    result: tuple[int, ...]


def write_out_einsums(model: ModelProto, outputs: Collection[str]) -> list[str]:
    """Replaces the Einsums that make `outputs`, in place, where that is possible; answers the outputs of those.

    The last node keeps the Einsum's name and makes its output.
    """
    names = NameSource(all_names(model.graph))
    written: list[str] = []
    for graph in graphs(model.graph):
        wanted = [node for node in graph.node if node.op_type == "Einsum" and node.output[0] in outputs]
        replaced = {node.output[0]: parts for node in wanted if (parts := _write_out(node, names)) is not None}
        if replaced:
            nodes = [part for node in graph.node for part in replaced.get(next(iter(node.output), ""), [node])]
            del graph.node[:]
            graph.node.extend(nodes)
            written += replaced
    return written


def permutation(equation: str) -> tuple[int, ...] | None:
    """The axes of a Transpose that does what the equation says."""
    terms, output = _terms(equation)
    if len(terms) != 1 or sorted(terms[0]) != sorted(output):
        return None
    return _axes(terms[0], output)


def product(equation: str) -> Product | None:
    """The equation as one matrix product, over leading axes that both have or only the first; else None."""
    terms, output = _terms(equation)
    if len(terms) != 2:
        return None
    shared = set(terms[0]) & set(terms[1])
    summed = sorted(shared - set(output))
    rows, columns = ([letter for letter in output if letter in term and letter not in shared] for term in terms)
    if len(summed) != 1 or not rows or not columns or set(output) != set("".join(terms)) - set(summed):
        return None
    batch = "".join(letter for letter in output if letter in shared)
    first, second = 0, 1
    backwards = len(rows) == 1 and output.index(rows[0]) > output.index(columns[0])
    if backwards or len(columns) > 1:  # the product of the transposes is the transpose
        first, second, rows, columns = 1, 0, columns, rows
    if len(columns) > 1 or (len(rows) > 1 and batch):
        return None
    before = batch + "".join(rows)
    return Product(
        (first, _axes(terms[first], before + summed[0])),
        (second, _axes(terms[second], batch + summed[0] + columns[0])),
        _axes(before + columns[0], output),
    )


def _terms(equation: str) -> tuple[list[str], str]:
    """The letters of each operand, and of the output; no terms for what is implicit, elliptic or diagonal."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or any(not term.isalpha() or len(set(term)) != len(term) for term in (*terms, output)):
        return [], ""
    return terms, output


def _axes(source: str, target: str) -> tuple[int, ...]:
    return tuple(source.index(letter) for letter in target)


def _write_out(node: NodeProto, names: NameSource) -> list[NodeProto] | None:
    equation = helper.get_node_attr_value(node, "equation").decode()
    axes = permutation(equation)
    if axes is not None:
        return [_transpose(node.input[0], axes, node.output[0], node.name)]
    found = product(equation)
    return None if found is None else list(_multiply(node, found, names))


def _multiply(node: NodeProto, found: Product, names: NameSource) -> Iterator[NodeProto]:
    operands = []
    for position, axes in (found.first, found.second):
        name = node.input[position]
        if axes != tuple(range(len(axes))):
            name = names.fresh(f"{name}_transposed")
            yield _transpose(node.input[position], axes, name, name)
        operands.append(name)
    in_order = found.result == tuple(range(len(found.result)))
    result = node.output[0] if in_order else names.fresh(f"{node.output[0]}_product")
    yield helper.make_node("MatMul", operands, [result], name=node.name if in_order else result)
    if not in_order:
        yield _transpose(result, found.result, node.output[0], node.name)


def _transpose(source: str, axes: tuple[int, ...], target: str, name: str) -> NodeProto:
    return helper.make_node("Transpose", [source], [target], name=name, perm=axes)
