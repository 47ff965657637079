"""The tree of errors: complete, drawn, and each with a slug of its own."""

import pytest

from service import errors
from service.errors import AtollError, Problem, ProblemError


def all_errors(base: type[AtollError] = AtollError) -> list[type[AtollError]]:
    found = [kind for kind in base.__subclasses__() if kind.__module__ == errors.__name__]
    return found + [kind for child in found for kind in all_errors(child)]


def test_every_error_is_drawn_in_the_tree() -> None:
    drawing = errors.__doc__ or ""
    assert [kind.__name__ for kind in all_errors() if kind.__name__ not in drawing and kind is not ProblemError] == []


def test_every_slug_belongs_to_one_error() -> None:
    slugs = [kind.slug for kind in all_errors() if kind is not ProblemError]
    assert sorted(set(slugs)) == sorted(slugs)


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_every_error_makes_a_problem(kind: type[AtollError]) -> None:
    if kind is ProblemError:
        return
    problem = kind("what, where, and what to do", missing=["x"]).problem("/path")
    assert problem.type == f"urn:atoll:problem:{kind.slug}"
    assert problem.slug == kind.slug
    assert 400 <= problem.status < 600
    assert problem.title
    assert problem.model_dump()["missing"] == ["x"]
    assert problem.instance == "/path"


def test_a_problem_of_another_process_is_passed_on() -> None:
    problem = Problem(type="urn:atoll:problem:x", title="t", status=422, detail="d", node="n")
    assert ProblemError(problem).problem() == problem
    assert ProblemError(problem).problem("/here").instance == "/here"
    assert ProblemError(problem).extensions == {"node": "n"}
