"""The API process, and the domain that both sides share."""

__version__ = "0.1.0"
