"""One model on trial: its inputs and what FP32 makes of them, to hold any form of its converted graph against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from service.errors import InvalidSample
from worker.graph.index import GraphIndex, build_index
from worker.graph.load import load
from worker.graph.skeleton import Skeleton
from worker.verify.compare import compare
from worker.verify.inputs import generate, input_specs, shape_sets
from worker.verify.locate import Located, Prepare, locate
from worker.verify.samples import read_samples
from worker.verify.session import RunFailed, Session
from worker.verify.types import Incomparable, OutputFigures, Unverifiable, VerifyRequest
from worker.verify.watchdog import Watchdog
from worker.verify.weights import weight_bytes

Progress = Callable[[str, int, int], None]
Results = list[dict[str, Any]]

_DRAWS = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")


@dataclass(frozen=True, slots=True)
class Trial:
    """The inputs that FP32 takes, and its answers. All runs share one budget."""

    request: VerifyRequest
    index: GraphIndex
    feeds: Results
    expected: Results
    watchdog: Watchdog
    progress: Progress

    @classmethod
    def of(cls, request: VerifyRequest, progress: Progress) -> "Trial":
        """Run FP32. Raises Unverifiable, InvalidSample, and a kind of InvalidModel when a file cannot be read."""
        source = load(request.source)
        index = build_index(source)
        _refuse_heavy(source, request.weight_bytes)
        _refuse_random(index)
        watchdog = Watchdog(request.seconds, request.memory_bytes)
        # The session takes the skeleton over, so the index is of another.
        session = Session(load(request.source), request.source.parent, "model")
        run = _run_samples if request.samples else _run_generated
        feeds, expected = run(session, _feeds(request, index), watchdog, progress)
        return cls(request, index, feeds, expected, watchdog, progress)

    def compare(self, prepare: Prepare, what: str) -> list[tuple[OutputFigures, ...]]:
        """The outputs' figures, one tuple a feed, of the converted graph in the form that `prepare` gives it.

        Raises Unverifiable, and Incomparable.
        """
        converted = load(self.request.converted)
        prepare(converted)
        session = Session(converted, self.request.converted.parent, f"converted graph in {what}")
        figures = []
        for step, (feed, reference) in enumerate(zip(self.feeds, self.expected, strict=True)):
            self.progress(f"running {what}", step, len(self.feeds))
            try:
                actual = session.run(session.fitted(feed), self.watchdog)
            except RunFailed as failure:
                raise Incomparable(f"the converted graph does not run where FP32 does: {failure}") from failure
            figures.append(tuple(_compare(name, reference[name], actual) for name in reference))
        return figures

    def locate(self, prepare: Prepare, feed: int, outputs: Sequence[str], limit: float) -> Located | None:
        """Where the error comes in, on one of the feeds. Raises Unverifiable."""
        self.progress("locating", 0, 1)
        files = self.request.source, self.request.converted
        return locate(*files, prepare, self.feeds[feed], self.watchdog, outputs=tuple(outputs), limit=limit)


def _compare(name: str, reference: Any, actual: dict[str, Any]) -> OutputFigures:
    if name not in actual:
        raise Incomparable(f"output {name!r} is missing; there is {', '.join(map(repr, actual))}")
    return compare(name, reference, actual[name])


def _feeds(request: VerifyRequest, index: GraphIndex) -> Results:
    specs = input_specs(index)
    if request.samples:
        return [dict(feed) for feed in read_samples(request.samples, specs)]
    return [dict(generate(specs, shapes, request.seed)) for shapes in shape_sets(index.model, request.profiles)]


def _run_generated(session: Session, feeds: Results, watchdog: Watchdog, progress: Progress) -> tuple[Results, Results]:
    """The feeds that the model takes in FP32, and what it answers. Raises Unverifiable when it takes none."""
    taken: Results = []
    results: Results = []
    refusal = ""
    for step, feed in enumerate(feeds):
        progress("running FP32", step, len(feeds))
        try:
            results.append(session.run(feed, watchdog))
        except RunFailed as failure:
            refusal = str(failure)
            continue
        taken.append(feed)
    if not taken:
        raise Unverifiable(f"the model does not run on generated inputs: {refusal}")
    return taken, results


def _run_samples(session: Session, feeds: Results, watchdog: Watchdog, progress: Progress) -> tuple[Results, Results]:
    """All of the user's samples, and what FP32 answers. Raises InvalidSample for one that the model does not take."""
    results: Results = []
    for step, feed in enumerate(feeds):
        progress("running FP32", step, len(feeds))
        try:
            results.append(session.run(feed, watchdog))
        except RunFailed as failure:
            raise InvalidSample(f"The model does not run on sample {step + 1} of {len(feeds)}: {failure}") from failure
    return feeds, results


def _refuse_heavy(source: Skeleton, limit: int) -> None:
    used = weight_bytes(source)
    if used > limit:
        raise Unverifiable(f"the model has {used >> 20} MiB of weights; up to {limit >> 20} MiB are verified")


def _refuse_random(index: GraphIndex) -> None:
    for node in index.nodes:
        trains = node.is_a("Dropout") and node.input(2) and index.scalar(node.input(2)) != 0.0
        if trains or node.is_a(*_DRAWS):
            raise Unverifiable(f"the graph draws random numbers: node {node.label!r} ({node.op})")
