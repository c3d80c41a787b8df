import pytest
from vantage_trainer.refusals import refusals
from vantage_trainer.rewards import exact, numeric, scoring
from vantage_trainer.rewards.scoring import Kind, Scorer, part_names
from vantage_trainer.spec import Reward, RewardPart, RunSpec


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("11 16 25", "25", 1.0),
        ("so 11+16=27", "25", 0.0),
        ("7.0", "7", 1.0),
        ("it costs $1,234.50", "1234.5", 1.0),
        ("11,16,25", "25", 1.0),
        ("10-3", "3", 1.0),
        ("x = -3", "-3", 1.0),
        ("", "25", 0.0),
        ("no number", "25", 0.0),
        ("٣", "3", 0.0),
        ("9" * 1_000_000, "9", 0.0),
    ],
)
def test_numeric_compares_the_last_number(text: str, answer: str, expected: float) -> None:
    assert numeric.score(numeric.Parameters(), text, answer) == expected


def test_numeric_reads_the_first_number_after_the_last_marker() -> None:
    parameters = numeric.Parameters(marker="####")
    assert numeric.score(parameters, "#### 1 #### 7 apples of 9", "7") == 1.0
    assert numeric.score(parameters, "7", "7") == 0.0


def test_exact_compares_text() -> None:
    assert exact.score(exact.Parameters(), " yes\n", "yes") == 1.0
    assert exact.score(exact.Parameters(), "Yes", "yes") == 0.0
    assert exact.score(exact.Parameters(ignore_case=True, marker="Answer:"), "Hm. Answer: YES", "yes") == 1.0


def test_a_verifier_that_fails_gives_none_with_its_cause_and_never_zero() -> None:
    score = Scorer(Reward()).score("7", "seven")
    assert score.reward is None and score.correct is None
    assert "'seven' is not a number" in score.cause


@pytest.mark.parametrize(("value", "reward"), [(True, 1.0), (False, 0.0), (1, 1.0), (0, 0.0), (0.25, 0.25)])
def test_truth_values_and_whole_numbers_are_scores(
    value: float, reward: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answered(value, monkeypatch) == (reward, "")


@pytest.mark.parametrize("value", ["1.0", None, [1.0], {"score": 1.0}, float("nan"), float("inf")])
def test_what_is_no_number_is_unscorable_and_told_with_its_part(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    reward, cause = answered(value, monkeypatch)
    assert reward is None and cause.startswith("numeric: the score was ")


def answered(value: object, monkeypatch: pytest.MonkeyPatch) -> tuple[float | None, str]:
    """Score one completion with a verifier that gives this value."""
    kind = Kind(numeric.Parameters, lambda parameters, text, answer: value)
    monkeypatch.setitem(scoring.KINDS, "numeric", kind)
    score = Scorer(Reward()).score("7", "7")
    return score.reward, score.cause


def test_a_reward_of_zero_is_a_reward() -> None:
    score = Scorer(Reward()).score("8", "7")
    assert score.reward == 0.0 and score.correct is False and not score.cause


def test_parts_are_weighted_and_told_apart() -> None:
    parts = [RewardPart(kind="numeric", weight=1.0), RewardPart(kind="exact", weight=0.5), RewardPart(kind="exact")]
    assert part_names(parts) == ["numeric", "exact", "exact-2"]
    score = Scorer(Reward(parts=parts)).score("it is 7", "7")
    assert score.reward == 1.0 and score.parts == {"numeric": 1.0, "exact": 0.0, "exact-2": 0.0}


def test_a_parameter_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="numeric does not accept its parameter markr"):
        Scorer(Reward(parts=[RewardPart(parameters={"markr": "####"})]))


def test_a_parameter_that_its_kind_does_not_accept_is_refused_before_a_run_starts() -> None:
    spec = RunSpec(reward=Reward(parts=[RewardPart(), RewardPart(kind="exact", parameters={"marker": 3})]))
    [found] = [refusal for refusal in refusals(spec) if refusal.path.startswith("reward")]
    assert found.path == "reward.parts.1.parameters"
    assert "exact does not accept its parameter marker" in found.sentence
