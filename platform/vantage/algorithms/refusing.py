"""Why a form holds no algorithm, beside its fields."""

from vantage_trainer.composition import Algorithm as Composition
from vantage_trainer.refusals import composition_refusals

from vantage.algorithms.spoken import spoken
from vantage.forms_from_schema import Bound


def refused(bound: Bound[Composition], composition: Composition) -> Bound[Composition]:
    """What is no algorithm, whatever run it is used in, beside its field."""
    errors: dict[str, list[str]] = {}
    for refusal in composition_refusals(composition):
        errors.setdefault(refusal.path.removeprefix("algorithm."), []).append(spoken(refusal.sentence))
    return bound.with_errors(errors)
