"""Prompts that the policy solves often enough are not asked again (no-positive-resampling, ScaleRL, arXiv:2510.13786).

What counts is the latest visit: the share of right answers among those that could be scored. Retired prompts are part
of a run's progress, so a resumed run does not ask them either.
"""

from vantage_trainer.report import groups
from vantage_trainer.rollout import Response
from vantage_trainer.run import Run


def retire(run: Run, responses: list[Response]) -> None:
    """Retire the prompts of these responses whose share of right answers reaches the threshold, itself included."""
    rule = run.spec.algorithm.sampling.no_positive_resampling
    if rule is None:
        return
    for members in groups(responses).values():
        verdicts = [response.score.correct for response in members if response.score.correct is not None]
        solved = bool(verdicts) and sum(verdicts) / len(verdicts) >= rule.threshold
        if solved and members[0].problem.id not in run.progress.retired:
            run.progress.retired.append(members[0].problem.id)


def num_left(run: Run) -> int:
    """Count the prompts that may still be asked."""
    retired = set(run.progress.retired)
    return sum(problem.id not in retired for problem in run.problems)


def is_exhausted(run: Run) -> bool:
    """Say, and tell once, that no prompt is left to ask."""
    if num_left(run):
        return False
    run.journal.warning(
        run.progress.step, "Every prompt is solved and was retired, so training ended before its budget."
    )
    return True


def metrics(run: Run) -> dict[str, float]:
    rule = run.spec.algorithm.sampling.no_positive_resampling
    return {} if rule is None else {"data/pool": float(num_left(run))}
