"""How each attempt that went on compares with what it repeated, as a run's pages show it."""

from dataclasses import dataclass, field

from vantage_trainer.spec import RunSpec

from vantage.runs.exactness import Verdict, expectation, verdict
from vantage.runs.models import Event, Run
from vantage.runs.repeated import Begun, begun, repeat_of


@dataclass(frozen=True)
class Resumes:
    """The verdicts, oldest attempt first, and what can be expected of the run; nothing where it never went on."""

    verdicts: list[Verdict] = field(default_factory=list)
    expected: str = ""

    @property
    def telling(self) -> Verdict | None:
        """The one for the header: the worst, else the newest that was checked, else the newest."""
        ranked = sorted(self.verdicts, key=lambda one: (one.is_bad, one.repeat is not None, one.attempt))
        return ranked[-1] if ranked else None


def resumes_of(run: Run) -> Resumes:
    if run.attempt < 2:
        return Resumes()
    found = [verdict(one.attempt.number, _from(one), repeat_of(one)) for one in begun(run)]
    told = Event.objects.filter(run=run, kind="machine").order_by("attempt", "seq").values_list("attempt", "data")
    return Resumes(found, expectation(RunSpec.model_validate(run.spec), dict(told)) if found else "")


def _from(one: Begun) -> str:
    if one.step is None:
        return "from the beginning"
    return f"from step {one.step:,}" + (" of the warm start" if one.stage == "warm_start" else "")
