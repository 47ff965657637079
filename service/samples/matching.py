"""Whether samples fit a model: a value of the right dtype and shape for every input, and for nothing else."""

from collections.abc import Iterator, Sequence

from service.errors import InvalidSample
from service.samples.types import Sample, SampleTensor
from service.wire.types import TensorInfo


def check_samples(samples: Sequence[Sample], inputs: Sequence[TensorInfo]) -> None:
    """Raises InvalidSample with each fault: `errors` has `where` (sample and input) and `message`."""
    faults = [
        {"where": f"{where}.{name}", "message": message}
        for where, tensors in _sets(samples)
        for name, message in _faults(tensors, inputs)
    ]
    if faults:
        first = faults[0]
        raise InvalidSample(
            f"The samples do not fit the model: {first['where']}: {first['message']}.", errors=faults[:100]
        )


def _sets(samples: Sequence[Sample]) -> Iterator[tuple[str, Sequence[SampleTensor]]]:
    """Each archive is a set; tensors of `.pb` files are gathered until a name comes again."""
    loose: dict[str, SampleTensor] = {}
    for at, sample in enumerate(samples):
        if sample.format == "npz":
            yield f"accuracy.samples.{at}", sample.tensors
            continue
        [tensor] = sample.tensors
        if tensor.name in loose:
            yield "accuracy.samples.pb", list(loose.values())
            loose = {}
        loose[tensor.name] = tensor
    if loose:
        yield "accuracy.samples.pb", list(loose.values())


def _faults(tensors: Sequence[SampleTensor], inputs: Sequence[TensorInfo]) -> Iterator[tuple[str, str]]:
    wanted = {info.name: info for info in inputs}
    known = ", ".join(map(repr, wanted))
    for tensor in tensors:
        if tensor.name not in wanted:
            yield tensor.name, f"the model has no such input; it has {known}"
            continue
        info = wanted.pop(tensor.name)
        if tensor.dtype != info.dtype:
            yield tensor.name, f"the values are {tensor.dtype}; the input is {info.dtype}"
        if not _fits(tensor.shape, info):
            yield tensor.name, f"the shape is {list(tensor.shape)}; the input's is {list(info.shape or ())}"
    for name in wanted:
        yield name, "there are no values for this input"


def _fits(shape: tuple[int, ...], info: TensorInfo) -> bool:
    if info.shape is None:
        return True
    return len(shape) == len(info.shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(info.shape, shape, strict=True)
    )
