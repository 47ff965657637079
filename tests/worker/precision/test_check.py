"""The self-check finds each way in which a rewrite could go wrong, by node and value."""

import pytest

from service.errors import ConversionFailed
from tests.worker.precision.planned import parse
from worker.graph.skeleton import Skeleton
from worker.precision.check import check, interface

FAULTS = {
    "dtypes that are mixed": (
        "g (float[2] x) => (float[2] y) { h = Cast<to = 10>(x) y = Add(x, h) }",
        "'Add:y' (Add) mixes 'x' (tensor(float)) with 'h' (tensor(float16))",
    ),
    "a dtype that the schema does not take": (
        "g (float[1,1,4,4] x) => (float[1,1,4,4] y) <float[1,1,1,1] k = {1}> "
        "{ h = Cast<to = 16>(x) j = Cast<to = 16>(k) c = Conv(h, j) y = Cast<to = 1>(c) }",
        "'Conv:c' (Conv) does not take tensor(bfloat16) for 'h' at opset 17",
    ),
    "half where the schema pins FP32": (
        "g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1,1,2,2}> "
        "{ h = Cast<to = 10>(s) y = Resize(x, , h) }",
        "'Resize:y' (Resize) takes tensor(float) for 'h', which is tensor(float16)",
    ),
    "an output of another dtype": (
        "g (float[2] x) => (float[2] y) { y = Cast<to = 10>(x) }",
        "output 'y' is declared tensor(float) and computed as tensor(float16)",
    ),
    "a value that nothing makes": (
        "g (float[2] x) => (float[2] y) { y = Add(x, lost) }",
        "'Add:y' reads 'lost', which nothing makes",
    ),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(text: str, message: str) -> None:
    skeleton = Skeleton(parse(text))
    with pytest.raises(ConversionFailed) as caught:
        check(skeleton, interface(skeleton.model))
    assert message in str(caught.value)


def test_public_values_that_changed_are_a_fault() -> None:
    skeleton = Skeleton(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    before = interface(skeleton.model)
    skeleton.model.graph.output[0].name = "z"
    with pytest.raises(ConversionFailed, match="public inputs or outputs"):
        check(skeleton, before)


def test_a_sound_graph_gives_the_type_of_every_value() -> None:
    skeleton = Skeleton(parse("g (float[2] x) => (float[2] y) { a = Cast<to = 10>(x) b = Neg(a) y = Cast<to = 1>(b) }"))
    types = check(skeleton, interface(skeleton.model))
    assert types == {
        name: f"tensor({kind})" for name, kind in zip("xaby", ("float", "float16", "float16", "float"), strict=True)
    }
