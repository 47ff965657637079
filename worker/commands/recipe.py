"""Recipes: what a search of mode auto found, in a file that another conversion can follow."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from service.errors import CommandError

if TYPE_CHECKING:
    from worker.precision.report import Recipe


def read_recipe(path: Path) -> "Recipe":
    """Raises CommandError for a file that is missing or no recipe."""
    from worker.precision.report import Recipe

    try:
        recipe = Recipe.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; --mode auto --recipe {path} writes a recipe") from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "the file"
        raise CommandError(f"{path} is no recipe: {where}: {fault['msg']}") from None
    return recipe


def write_recipe(path: Path, recipe: "Recipe") -> None:
    """Raises CommandError where the file cannot be written."""
    try:
        path.write_text(recipe.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
