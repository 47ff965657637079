"""Samples, as the API offers them: register what was uploaded, and hold them against a model."""

from collections.abc import Sequence

from service.errors import InvalidSample
from service.samples.matching import check_samples
from service.samples.reading import read_sample
from service.samples.types import Sample
from service.store.types import Blob, ObjectStore
from service.wire.types import TensorInfo


class SampleService:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def register(self, blob: Blob) -> tuple[Sample, bool]:
        """The sample in an uploaded blob, and whether it is new. Raises InvalidSample; then the blob is gone."""
        try:
            sample = read_sample(self._store.local_path(blob.digest), blob)
        except BaseException:
            self._store.take_back(blob)
            raise
        return sample, blob.stamp is not None

    def check(self, digests: Sequence[str], inputs: Sequence[TensorInfo]) -> None:
        """Raises InvalidSample for samples that are not here, or do not fit the model's inputs."""
        check_samples([self._read(at, digest) for at, digest in enumerate(digests)], inputs)

    def _read(self, at: int, digest: str) -> Sample:
        blob = self._store.blob(digest)
        if blob is None:
            message = f"there is no sample {digest} here; upload it with POST /samples"
            where = f"accuracy.samples.{at}"
            raise InvalidSample(f"{where}: {message}.", errors=[{"where": where, "message": message}])
        return read_sample(self._store.local_path(digest), blob)
