"""The command line `atoll`."""

from service.cli.app import main

__all__ = ["main"]
