"""The operator tests are all there: a missing file must not pass for a test that has passed."""

from tests.conformance.operator_suite import float_cases


def test_the_suite_has_every_model_with_a_float_input() -> None:
    assert len(float_cases()) == 1375
