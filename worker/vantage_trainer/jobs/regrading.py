"""One step's stored completions under another reward: rewards, verdicts and advantages before and after."""

import heapq
import math
from dataclasses import dataclass

import torch
from pydantic import JsonValue

from vantage_trainer.algorithms.sampling import shaped
from vantage_trainer.failure import Failure
from vantage_trainer.jobs.credited import Graded, advantages, credited
from vantage_trainer.rewards.scoring import Score, Scorer, part_names
from vantage_trainer.spec import Reward, RunSpec

MOST_SHOWN = 40
WHEN = ("before", "after")
COUNTS = (
    *("right_to_wrong", "wrong_to_right", "unscored_before", "unscored_after"),
    *("sign_flips", "signal_gained", "signal_lost"),
)


@dataclass(frozen=True)
class Stored:
    """A completion as the run stored it; `reward` is shaped, `parts` are not; `id` finds it again."""

    id: int
    step: int
    group: int
    answer: str | None
    text: str
    num_tokens: int
    reward: float | None
    parts: dict[str, float | None]
    correct: bool | None
    finish: str

    @property
    def truncated(self) -> bool:
        return self.finish == "length"


@dataclass(frozen=True)
class Verdict:
    """A reward before shaping, its shaped form, and the advantage that came of it."""

    reward: float | None
    correct: bool | None
    advantage: float = 0.0


@dataclass(frozen=True)
class Change:
    """A completion that the other reward sees differently."""

    id: int
    before: Verdict
    after: Verdict
    parts: dict[str, float | None]
    cause: str

    @property
    def flips(self) -> bool:
        return self.before.correct is not self.after.correct

    def weight(self) -> tuple[bool, float, int]:
        """Order changes: those of a verdict first, then by how far the reward moves, then by age."""
        return self.flips, abs((self.after.reward or 0.0) - (self.before.reward or 0.0)), -self.id

    def told(self) -> dict[str, JsonValue]:
        said: dict[str, JsonValue] = {"id": self.id, "parts": {**self.parts}, "cause": self.cause[:300]}
        for when, verdict in (("before", self.before), ("after", self.after)):
            said[when] = {"reward": verdict.reward, "correct": verdict.correct, "advantage": verdict.advantage}
        return said


@dataclass(frozen=True)
class Regraded:
    """What changed among completions: counts and sums that can be added up over steps, and the largest changes."""

    sums: dict[str, float]
    changes: list[Change]

    @classmethod
    def of(cls, pairs: list[tuple[Verdict, Verdict]], changes: list[Change], *, has_advantages: bool) -> "Regraded":
        turned = _turned(pairs) if has_advantages else {}
        sums = {"num": len(pairs), **_rewards(pairs), **_verdicts(pairs), **turned}
        return cls(sums, heapq.nlargest(MOST_SHOWN, changes, key=Change.weight))

    def __add__(self, other: "Regraded") -> "Regraded":
        sums = {name: value + other.sums.get(name, 0.0) for name, value in self.sums.items()}
        return Regraded(sums, heapq.nlargest(MOST_SHOWN, [*self.changes, *other.changes], key=Change.weight))

    def figures(self) -> dict[str, float]:
        """Means before and after, and counts; what has no denominator is left out."""
        means = {
            f"{name}_{when}": self.sums[f"{name}_{when}"] / self.sums[f"num_{when}"]
            for name in ("reward", "correct")
            for when in WHEN
            if self.sums[f"num_{when}"]
        }
        return means | {name: self.sums[name] for name in COUNTS if name in self.sums}

    def metrics(self) -> dict[str, float]:
        """Name a step's figures as the metric dictionary does: counts as shares of its completions."""
        shares = {name: value / self.sums["num"] if name in COUNTS else value for name, value in self.figures().items()}
        return {f"rescore/{name}": value for name, value in shares.items()}

    def sentence(self) -> str:
        flipped = int(self.sums["right_to_wrong"] + self.sums["wrong_to_right"])
        figures = self.figures()
        before, after = (figures.get(f"reward_{when}") for when in WHEN)
        means = "" if before is None or after is None else f"; the mean reward goes from {before:.3f} to {after:.3f}"
        return f"{flipped:,} of {int(self.sums['num']):,} completions would change their verdict{means}."


def _rewards(pairs: list[tuple[Verdict, Verdict]]) -> dict[str, float]:
    """Sums over what could be scored, before shaping."""
    found: dict[str, float] = {}
    for place, when in enumerate(WHEN):
        scored = [pair[place] for pair in pairs if pair[place].reward is not None]
        found[f"num_{when}"] = len(scored)
        found[f"reward_{when}"] = math.fsum(one.reward or 0.0 for one in scored)
        found[f"correct_{when}"] = sum(bool(one.correct) for one in scored)
    return found


def _verdicts(pairs: list[tuple[Verdict, Verdict]]) -> dict[str, float]:
    turns = [(before.correct, after.correct) for before, after in pairs]
    return {
        "right_to_wrong": turns.count((True, False)),
        "wrong_to_right": turns.count((False, True)),
        "unscored_before": sum(before is None for before, _ in turns),
        "unscored_after": sum(after is None for _, after in turns),
    }


def _turned(pairs: list[tuple[Verdict, Verdict]]) -> dict[str, float]:
    signs = [(_sign(before.advantage), _sign(after.advantage)) for before, after in pairs]
    return {
        "sign_flips": sum(before * after < 0 for before, after in signs),
        "signal_gained": sum(before == 0 != after for before, after in signs),
        "signal_lost": sum(before != 0 == after for before, after in signs),
    }


class Regrader:
    """Score a run's steps in their order: a moving-average baseline remembers what went before."""

    def __init__(self, spec: RunSpec, reward: Reward) -> None:
        self.spec = spec
        self.scorer = Scorer(reward)
        self.weights = dict(zip(part_names(spec.reward.parts), [p.weight for p in spec.reward.parts], strict=True))
        self.ema = {"before": 0.0, "after": 0.0}

    def step(self, number: int, samples: list[Stored]) -> Regraded:
        raw = [self._raw(sample) for sample in samples]
        scores = [self._score(sample) for sample in samples]
        kl = self._kl(samples, raw)
        before = self._credit("before", number, samples, raw, [sample.correct for sample in samples], kl)
        after = self._credit("after", number, samples, [s.reward for s in scores], [s.correct for s in scores], kl)
        pairs = list(zip(before, after, strict=True))
        changes = [
            Change(sample.id, *pair, score.parts, score.cause)
            for sample, pair, score in zip(samples, pairs, scores, strict=True)
            if (pair[0].reward, pair[0].correct) != (pair[1].reward, pair[1].correct)
        ]
        return Regraded.of(pairs, changes, has_advantages=self.spec.algorithm.baseline.kind != "critic_gae")

    def _raw(self, sample: Stored) -> float | None:
        """The reward that the run gave before it was shaped."""
        values = [sample.parts.get(name) for name in self.weights]
        if sample.correct is None or any(value is None for value in values):
            return None
        return sum(weight * (sample.parts[name] or 0.0) for name, weight in self.weights.items())

    def _score(self, sample: Stored) -> Score:
        if sample.finish == "error":
            return Score(None, {}, None, "the generator gave no answer")
        if sample.answer is None:
            return Score(None, {}, None, "its problem is not in the training dataset any more")
        return self.scorer.score(sample.text, sample.answer)

    def _kl(self, samples: list[Stored], raw: list[float | None]) -> list[float]:
        """Find what the KL took from each reward, where the run had it there: the other reward pays the same."""
        kl = self.spec.algorithm.regularizer.kl
        if kl is None or kl.where != "reward" or kl.coef == 0 or self.spec.algorithm.baseline.kind == "critic_gae":
            return [0.0] * len(samples)
        rewards = torch.tensor([math.nan if value is None else value for value in raw], dtype=torch.float64)
        whole = shaped(
            self.spec.algorithm.sampling,
            rewards,
            torch.tensor([sample.num_tokens for sample in samples]),
            torch.tensor([sample.truncated for sample in samples]),
            response_limit=self.spec.rollout.response_limit,
        ).tolist()
        paid = [0.0 if s.reward is None else one - s.reward for one, s in zip(whole, samples, strict=True)]
        return [0.0 if math.isnan(each) else each / kl.coef for each in paid]

    def _credit(
        self,
        when: str,
        number: int,
        samples: list[Stored],
        rewards: list[float | None],
        correct: list[bool | None],
        kl: list[float],
    ) -> list[Verdict]:
        graded = [
            Graded(sample.group, reward, right, sample.num_tokens, sample.truncated, paid)
            for sample, reward, right, paid in zip(samples, rewards, correct, kl, strict=True)
        ]
        try:
            given = credited(self.spec, graded, self.ema[when])
        except ValueError as fault:
            raise Failure("bad_input", f"At step {number}: {fault}") from None
        self.ema[when] = float(given.ema)
        gained = advantages(given).tolist()
        return [Verdict(*told) for told in zip(rewards, correct, gained, strict=True)]


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
