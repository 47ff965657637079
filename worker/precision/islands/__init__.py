"""The catalogue of island families. A new family is one file beside these, and one entry here."""

from worker.precision.islands.angles import Angle
from worker.precision.islands.base import Declined, Family, Island, Surroundings
from worker.precision.islands.divisions import GuardedDivision
from worker.precision.islands.exponentials import Exponential
from worker.precision.islands.fused import FusedNorm
from worker.precision.islands.hot import HotValue
from worker.precision.islands.integers import ExactInteger
from worker.precision.islands.markers import ExplicitMarker
from worker.precision.islands.normalization import DecomposedNorm
from worker.precision.islands.quantized import Quantized
from worker.precision.islands.reductions import LongReduction
from worker.precision.islands.rotation import Rotation
from worker.precision.islands.sampling import Sampling
from worker.precision.islands.softmax import LoneSoftmax
from worker.precision.islands.tables import TabledRotation

CATALOGUE: tuple[Family, ...] = (
    DecomposedNorm(),
    FusedNorm(),
    LoneSoftmax(),
    Angle(),
    Rotation(),
    TabledRotation(),
    ExactInteger(),
    Exponential(),
    GuardedDivision(),
    LongReduction(),
    Sampling(),
    Quantized(),
    HotValue(),
    ExplicitMarker(),
)
"""In this order; a node that two families claim is reported under the first."""

__all__ = ["CATALOGUE", "Declined", "Family", "Island", "Surroundings"]
