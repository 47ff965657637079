"""What is known of the weights: read before the plan, or learnt while they are converted.

Nearly every weight fits into half. So a conversion takes large ones for ordinary, looks at what their conversion gave,
and plans again if that shows one that does not fit: the weights are read once, not twice.
"""

from dataclasses import dataclass, field

from onnx import TensorProto

from worker.graph.dtype import HalfType
from worker.graph.payload import Payload
from worker.graph.skeleton import Skeleton
from worker.graph.stream import Peaks
from worker.graph.weights import Statistics, payload_statistics, statistics

LARGEST_LOSS = 2.0**-6
"""A tensor that loses more than this of its L2 norm to rounding is kept; ordinary FP16 rounding costs 2^-11."""

_ORDINARY = Statistics(max_abs=1.0, lost=0.0, non_finite=0)


@dataclass(slots=True)
class WeightFacts:
    """`deferred`: weights that lie in files are taken for ordinary until something else has been learnt of them."""

    half: HalfType
    deferred: bool = False
    _known: dict[Payload, Statistics] = field(default_factory=dict)

    def of(self, skeleton: Skeleton, tensor: TensorProto) -> Statistics:
        payload = skeleton.payload(tensor)
        if payload is None:
            return statistics(skeleton, tensor, self.half)
        if payload not in self._known:
            if self.deferred:
                return _ORDINARY
            self._known[payload] = payload_statistics(payload, self.half)
        return self._known[payload]

    def learn(self, peaks: Peaks) -> bool:
        """Takes in what a conversion gave; whether the plan would have been another, had it been known."""
        changed = False
        for source, bits in peaks.items():
            if source.payload in self._known or not self._is_strange(bits):
                continue
            found = self._known[source.payload] = payload_statistics(source.payload, self.half)
            changed |= found.max_abs > self.half.max or found.lost > LARGEST_LOSS or found.non_finite > 0
        return changed

    def _is_strange(self, bits: int) -> bool:
        return not self.half.bits(self.half.lossy_below) <= bits < self.half.bits(float("inf"))
