"""Each graph of the public reports, in every mode and trunk: valid, parsed, close to FP32 on the inputs named."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.conformance.operator_suite import run
from tests.conformance.proof import Fault, check_close, converted, emulated, refusals
from tests.conformance.public_reports import REPORTS, Report
from worker.graph import walk
from worker.precision.convert import preview
from worker.precision.report import ConversionReport
from worker.types import ConvertRequest

CONFIGURATIONS = [(mode, trunk) for mode in ("minimal", "rope", "full") for trunk in ("fp16", "bf16")]
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def close(report: Report, path: Path, trunk: str) -> None:
    model, half = report.model(), emulated(path)
    for feed in report.feeds:
        check_close(run(model, feed), run(half, feed), trunk)


@pytest.mark.slow
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_the_graph_converts_stays_close_and_is_parsed(report: Report, tmp_path: Path) -> None:
    source = report.write(tmp_path)
    targets = {tmp_path / f"{mode}-{trunk}.onnx": (mode, trunk) for mode, trunk in CONFIGURATIONS}
    faults: dict[tuple[str, str], str] = {}
    for target, (mode, trunk) in targets.items():
        try:
            converted(source, target, mode=mode, trunk=trunk)
            close(report, target, trunk)
        except Fault as fault:
            faults[mode, trunk] = str(fault)
    refused = refusals([source, *targets])
    if source not in refused:
        faults.update((targets[path], reason) for path, reason in refused.items())
    assert faults == {}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_16_keeping_every_node_changes_nothing(report: Report, tmp_path: Path) -> None:
    source, target = report.write(tmp_path), tmp_path / "kept.onnx"
    converted(source, target, keep_fp32=("*",))
    assert target.read_bytes() == source.read_bytes()


# --- what each report is about ---------------------------------------------------------------------------------------


class Subject:
    """A report's graph after conversion, with the dtype of every value."""

    def __init__(self, name: str, folder: Path, **options: object) -> None:
        self.definition = REPORTS[name]
        self.target = folder / "converted.onnx"
        self.report: ConversionReport = converted(self.definition.write(folder), self.target, **options)
        self.model = onnx.load(self.target)
        inferred = onnx.shape_inference.infer_shapes(self.model, data_prop=True)
        self.dtypes = {
            value.name: value.type.tensor_type.elem_type
            for graph in walk.graphs(inferred.graph)
            for value in (*graph.input, *graph.value_info, *graph.output)
        }
        self.dtypes.update((tensor.name, tensor.data_type) for tensor in self.model.graph.initializer)

    def node(self, op: str) -> onnx.NodeProto:
        return next(node for graph in walk.graphs(self.model.graph) for node in graph.node if node.op_type == op)

    def inputs(self, op: str) -> list[int]:
        return [self.dtypes[name] for name in self.node(op).input if name]

    def run(self, feed: int = 0) -> np.ndarray:
        return run(emulated(self.target), self.definition.feeds[feed])[0]


@pytest.mark.parametrize("name", [name for name in REPORTS if name.startswith("1 ")])
def test_1_a_resize_keeps_fp32_scales_and_roi_beside_a_half_image(name: str, tmp_path: Path) -> None:
    image, *others = Subject(name, tmp_path).inputs("Resize")
    assert image == HALF
    assert HALF not in others


def test_2_the_cast_of_an_input_precedes_its_reader(tmp_path: Path) -> None:
    model = Subject("2 transpose before a convolution", tmp_path).model
    made = {value.name for value in model.graph.input} | {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        assert made.issuperset(node.input)
        made.update(node.output)


def test_4_a_fill_is_half_as_the_image_is(tmp_path: Path) -> None:
    image, _, fill = Subject("4 pad with a fill", tmp_path).inputs("Pad")
    assert image == fill == HALF


def test_5_casts_of_a_branch_lie_in_the_branch(tmp_path: Path) -> None:
    branch = next(iter(walk.subgraphs(Subject("5 branches of an If", tmp_path).node("If"))))
    assert "MatMul" in [node.op_type for node in branch.node]
    assert [node.op_type for node in branch.node].count("Cast") >= 1


def test_7_a_constant_of_both_readers_is_there_in_both_dtypes(tmp_path: Path) -> None:
    subject = Subject("7 a constant that is scale and operand", tmp_path)
    assert subject.inputs("Resize")[-1] == FLOAT
    assert subject.inputs("Mul") == [HALF, HALF]


def test_9_no_dimension_gets_a_name_that_it_did_not_have(tmp_path: Path) -> None:
    graph = Subject("9 dimensions that nobody named", tmp_path).model.graph
    values = (*graph.input, *graph.value_info, *graph.output)
    names = {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim} - {""}
    assert names == {"S", "T"}


@pytest.mark.parametrize("trunk", ["fp16", "bf16"])
def test_11_a_range_stays_fp32(trunk: str, tmp_path: Path) -> None:
    subject = Subject("11 a range of floats", tmp_path, trunk=trunk, keep_trunk=("*",))
    assert subject.inputs("Range") == [FLOAT] * 3


def test_12_a_sampling_is_fp32_with_one_cast_on_each_side(tmp_path: Path) -> None:
    subject = Subject("12 sampling by a grid", tmp_path)
    assert subject.inputs("GridSample") == [FLOAT, FLOAT]
    assert [node.op_type for node in subject.model.graph.node] == [
        *("Cast", "Conv", "Cast", "GridSample", "Cast", "Conv", "Cast"),
    ]


@pytest.mark.parametrize(("mode", "trunk"), CONFIGURATIONS)
def test_13_half_of_4099_is_2049(mode: str, trunk: str, tmp_path: Path) -> None:
    assert Subject("13 half of a height", tmp_path, mode=mode, trunk=trunk).run().shape == (1, 4, 2049, 3)


@pytest.mark.parametrize("opset", [13, 17])
def test_14_bf16_raises_the_opset_of_a_convolution(opset: int, tmp_path: Path) -> None:
    subject = Subject(f"14 a convolution, opset {opset}", tmp_path, trunk="bf16")
    assert subject.model.opset_import[0].version == 22
    assert set(subject.inputs("Conv")) == {TensorProto.BFLOAT16}


def test_15_the_opset_is_raised_beside_more_than_two_gigabytes_of_weights(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[1,4,8,8] x, int64[1] i) => (float[1,4,8,8] y, float[1,1024] e) "
        "{ y = Conv<pads = [1,1,1,1]>(x, k) e = Gather(table, i) }"
    )
    rows = (2 << 30) // 4096 + 1024
    table = TensorProto(name="table", data_type=FLOAT, dims=[rows, 1024], data_location=TensorProto.EXTERNAL)
    table.external_data.add(key="location", value="table.bin")
    with (tmp_path / "table.bin").open("wb") as file:
        file.truncate(rows * 4096)  # a hole: no block is written
    model.graph.initializer.extend([*REPORTS["14 a convolution, opset 17"].model().graph.initializer, table])
    onnx.save(model, tmp_path / "large.onnx")
    request = ConvertRequest(tmp_path / "large.onnx", tmp_path / "unwritten.onnx", trunk="bf16", keep_fp32=("Gather",))
    report = preview(request)
    assert (report.opset_before[""], report.opset_after[""]) == (17, 22)
    assert report.counts.half_weights == 1


def test_17_values_beyond_the_range_are_found_by_measuring(tmp_path: Path) -> None:
    subject = Subject("17 products that pass the range and come back", tmp_path)
    casts = [node for node in subject.model.graph.node if node.op_type == "Cast"]
    assert subject.inputs("Div") == [FLOAT, FLOAT]
    assert len(casts) == 4


@pytest.mark.parametrize(("trunk", "dtype"), [("fp16", FLOAT), ("bf16", TensorProto.BFLOAT16)])
def test_19_fp16_does_not_sum_over_65536_keys(trunk: str, dtype: int, tmp_path: Path) -> None:
    assert Subject("19 attention over 65,536 keys", tmp_path, trunk=trunk).inputs("Softmax") == [dtype]


def test_20_makers_and_readers_of_a_hot_residual_are_fp32(tmp_path: Path) -> None:
    subject = Subject("20 a residual that passes the range", tmp_path)
    assert subject.report.islands_by_family["hot residual"] == 1
    assert np.isfinite(subject.run()).all()
    assert subject.inputs("Add") == [FLOAT, FLOAT]


@pytest.mark.parametrize(("mode", "trunk"), CONFIGURATIONS)
def test_21_a_row_that_is_masked_throughout_is_finite(mode: str, trunk: str, tmp_path: Path) -> None:
    assert np.isfinite(Subject("21 a row that is masked throughout", tmp_path, mode=mode, trunk=trunk).run()).all()


def test_25_statistics_stay_fp32_beside_a_half_image_from_opset_15(tmp_path: Path) -> None:
    subject = Subject("25 a variance beyond half, opset 15", tmp_path)
    assert subject.inputs("BatchNormalization") == [HALF, FLOAT, FLOAT, FLOAT, FLOAT]
