"""Python client of the HTTP API: what `atoll submit`, `watch` and `download` use, for other programs too."""

from service.client.client import AtollClient, Submission
from service.client.local_model import LocalModel

__all__ = ["AtollClient", "LocalModel", "Submission"]
