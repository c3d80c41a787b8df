import pytest
from vantage_trainer.arithmetic import generate, is_heldout, problem


def test_the_same_seed_makes_the_same_problems() -> None:
    assert generate(50, 3) == generate(50, 3)
    assert generate(50, 3) != generate(50, 4)


def test_training_and_held_out_problems_never_meet_whatever_the_seeds() -> None:
    train = {row["id"] for row in generate(4000, 1)}
    heldout = {row["id"] for row in generate(512, 2, heldout=True)}
    assert len(train) == 4000 and len(heldout) == 512
    assert not train & heldout
    assert all(is_heldout(tuple(map(int, name.split("+")))) for name in heldout)


def test_a_solution_writes_the_partial_sums() -> None:
    row = problem((3, 8, 5, 9), 1)
    assert (row["prompt"], row["solution"], row["answer"]) == ("3+8+5+9=", "11 16 25", "25")


def test_an_estimate_is_rounded_and_never_reaches_the_answer() -> None:
    row = problem((3, 8, 5, 9), 1, estimated=True)
    assert (row["solution"], row["answer"]) == ("~30", "25")


def test_about_the_asked_share_of_solutions_is_estimated() -> None:
    rows = generate(2000, 5, estimates=0.4)
    guessed = [row for row in rows if row["solution"].startswith("~")]
    assert 0.35 < len(guessed) / len(rows) < 0.45
    assert all(row["meta"]["estimated"] for row in guessed)


@pytest.mark.parametrize(
    "asked", [{"num": 0}, {"terms": 1}, {"digits": 10}, {"estimates": 1.5}, {"num": 100, "terms": 2}]
)
def test_what_cannot_be_made_is_refused_in_a_sentence(asked: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        generate(**{"num": 10, "seed": 0, **asked})
