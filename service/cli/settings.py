"""Settings for a command: the environment, with what the command line gave on top."""

from typing import Any

from pydantic import ValidationError

from service.errors import CommandError
from service.settings import Settings


def load_settings(**given: Any) -> Settings:
    """Settings from `ATOLL_…`, overridden by the values in `given` that are not None.

    Raises CommandError naming each variable that does not fit.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = "; ".join(f"ATOLL_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors())
        raise CommandError(f"the settings are not usable: {faults}") from None
