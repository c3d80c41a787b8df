"""What a handful of scored completions tells about the run they were sampled for: warnings that say what to change."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from vantage_trainer.report import groups
from vantage_trainer.rollout import Response
from vantage_trainer.spec import RunSpec

MANY_CUT = 0.25


@dataclass(frozen=True)
class Seen:
    """What was sampled, for which run; `learns`: some advantage is not 0."""

    spec: RunSpec
    responses: list[Response]
    learns: bool

    @property
    def num_failed(self) -> int:
        return sum(response.errored for response in self.responses)

    @property
    def num_cut(self) -> int:
        return sum(response.truncated for response in self.responses)

    @property
    def verdicts(self) -> set[bool]:
        return verdicts(self.responses)

    @property
    def several(self) -> list[list[Response]]:
        """The groups that could hold right and wrong answers side by side."""
        return [group for group in groups(self.responses).values() if len(group) > 1]

    def of(self, part: int) -> str:
        return f"{part} of {len(self.responses)} completions"


@dataclass(frozen=True)
class Check:
    """A warning: when it applies, and its sentence; `stops` where the run could learn nothing at all."""

    code: str
    applies: Callable[[Seen], bool]
    sentence: Callable[[Seen], str]
    stops: bool = False


def findings(seen: Seen) -> list[JsonValue]:
    """Say what is wrong with what was sampled: what stops a run first, then what is worth a look."""
    found = [check for check in CHECKS if check.applies(seen)]
    if not seen.learns and not any(check.stops for check in found):
        found.append(NO_SIGNAL)
    found.sort(key=lambda check: not check.stops)
    return [{"code": check.code, "sentence": check.sentence(seen), "stops": check.stops} for check in found]


def verdicts(responses: list[Response]) -> set[bool]:
    return {bool(response.score.correct) for response in responses if not response.errored}


def errored(seen: Seen) -> str:
    return (
        f"No completion could be scored, so the run would stop at once ({seen.responses[0].score.cause[:300]}). "
        "Change the reward, or the answers of the dataset."
    )


def over_failure_share(seen: Seen) -> str:
    return (
        f"{seen.of(seen.num_failed)} could not be scored, and the share allowed is {seen.spec.reward.failure_share:g}, "
        "so the run would stop. Change the reward, or the rows that it cannot judge; the causes stand below."
    )


def truncated(seen: Seen) -> str:
    return (
        f"Every completion was cut at the response limit of {seen.spec.rollout.response_limit} tokens, so the run "
        "would hardly learn: raise the response limit, or ask for shorter answers in the system prompt."
    )


def right(seen: Seen) -> str:
    return (
        "Every answer was right, so the run would learn nothing: choose harder problems, and check below that the "
        "reward does not accept everything."
    )


def wrong(seen: Seen) -> str:
    begin = "" if seen.spec.warm_start else "add a warm start, "
    return (
        f"No answer was right, so the run would learn nothing: {begin}choose easier problems or a stronger model, "
        "and check below that the reward finds the answer where the model writes it."
    )


def all_alike(seen: Seen) -> str:
    verdict = "right" if seen.verdicts == {True} else "wrong"
    return f"Every answer was {verdict}: what the run would still learn is not whether an answer is right."


def never_mixed(seen: Seen) -> str:
    return (
        "No group holds right and wrong answers side by side, and those teach most: sample larger groups, "
        "raise the temperature, or choose problems that are neither solved nor out of reach."
    )


def same(seen: Seen) -> str:
    return (
        f"All answers of each group are the same text at temperature {seen.spec.rollout.temperature:g}: raise the "
        "temperature, or top p and top k, so that there is something to compare."
    )


def many_cut(seen: Seen) -> str:
    return (
        f"{seen.of(seen.num_cut)} were cut at the response limit of {seen.spec.rollout.response_limit} tokens: "
        "raise it if answers are meant to be that long."
    )


def no_signal(seen: Seen) -> str:
    return (
        "Every advantage is 0 with this algorithm and these rewards, so the run would learn nothing from these "
        "problems: choose others, sample larger groups, or use a reward that tells answers apart."
    )


NO_SIGNAL = Check("no_signal", lambda seen: not seen.learns, no_signal, stops=True)
CHECKS = (
    Check("all_errored", lambda seen: seen.num_failed == len(seen.responses), errored, stops=True),
    Check(
        "over_failure_share",
        lambda seen: seen.spec.reward.failure_share < seen.num_failed / len(seen.responses) < 1,
        over_failure_share,
        stops=True,
    ),
    Check("all_truncated", lambda seen: seen.num_cut == len(seen.responses), truncated, stops=True),
    Check("all_right", lambda seen: seen.verdicts == {True} and not seen.learns, right, stops=True),
    Check(
        "all_wrong",
        lambda seen: seen.verdicts == {False} and not seen.learns and seen.num_cut < len(seen.responses),
        wrong,
        stops=True,
    ),
    Check("all_alike", lambda seen: len(seen.verdicts) == 1 and seen.learns, all_alike),
    Check(
        "never_mixed",
        lambda seen: (
            len(seen.verdicts) == 2 and bool(seen.several) and all(len(verdicts(group)) < 2 for group in seen.several)
        ),
        never_mixed,
    ),
    Check(
        "same_answers",
        lambda seen: bool(seen.several) and all(len({one.text for one in group}) == 1 for group in seen.several),
        same,
    ),
    Check("many_cut", lambda seen: MANY_CUT <= seen.num_cut / len(seen.responses) < 1, many_cut),
)
