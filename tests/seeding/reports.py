"""A run's rows as its supervisor would have stored them: metrics, events, samples, checkpoints, the log's end."""

import math
import random
from datetime import datetime

import curves
from django.utils import timezone
from vantage.runs.models import Attempt, Checkpoint, Event, LogTail, MetricKey, MetricRow, Run, Sample

WARM_START_STEPS, SECONDS_PER_STEP, WARM_START_SECONDS = 400, 0.45, 30
ODD_TEXTS = (
    "",
    "<script>alert('x')</script> [link](javascript:alert(1)) <img src=x onerror=alert(1)>",
    "NUL \x00 and a lone surrogate \ud800 and \x1b[31mANSI\x1b[0m",
    "a" * 200_000,
    "12 + 7 = 19\n19 + 30 = 49\n#### 49",
    "3804 + 2291\n4 + 1 = 5\n0 + 9 = 9\n8 + 2 = 10, carry 1\n3 + 2 + 1 = 6\n#### 6095",
)


def key_ids(names: set[str]) -> dict[str, int]:
    MetricKey.objects.bulk_create([MetricKey(name=name) for name in names], ignore_conflicts=True)
    return dict(MetricKey.objects.filter(name__in=names).values_list("name", "pk"))


def report(run: Run, begun: datetime, steps: int, *, speed: float = 1.0, wild: bool = False) -> None:
    """Store everything that the run would have reported up to a step."""
    noise = random.Random(run.pk)
    start = begun.timestamp()
    told = [(step, start + step * 0.07, curves.warm_start(step, noise)) for step in range(0, WARM_START_STEPS + 1, 4)]
    for step in range(steps + 1):
        values = curves.step_values(step, speed, noise) if step else {}
        if step % 20 == 0 or step == steps:
            values |= curves.evaluation(step, speed, noise)
        told.append((step, at(start, step), curves.spoiled(step, values) if wild else values))
    store(run, told)
    tell_events(run, start, steps)
    tell_samples(run, start, steps, noise)
    lines = "\n".join(f"step {n} reward {curves.skill(n, speed):.3f} tokens/s {9000 + n}" for n in range(200))
    LogTail.objects.create(attempt=Attempt.objects.get(run=run, number=run.attempt), size=180_000, text=lines)


def at(start: float, step: int) -> float:
    return start + WARM_START_SECONDS + step * SECONDS_PER_STEP


def store(run: Run, told: list[tuple[int, float, dict[str, float]]], first_seq: int = 1) -> None:
    ids = key_ids({name for _, _, values in told for name in values})
    MetricRow.objects.bulk_create(
        [
            MetricRow(run=run, attempt=run.attempt, seq=seq, key_id=ids[name], step=step, time=time, value=value)
            for seq, (step, time, values) in enumerate(told, first_seq)
            for name, value in values.items()
        ],
        batch_size=5000,
    )


def tell_events(run: Run, start: float, steps: int) -> None:
    told: list[tuple[str, int, dict]] = [
        ("phase", 0, {"name": "loading", "progress": None}),
        ("stage", 0, {"name": "warm_start", "steps": WARM_START_STEPS}),
        ("agreement", 0, {"mean": 2.1e-5, "max": 3.0e-4, "tokens": 4608}),
    ]
    for step in range(0, steps + 1, 20):
        passed = curves.skill(step, 1)
        measured = {"set": "heldout", "n": [4] * 512, "c": [2] * 512, "pass_at": {"1": passed, "4": passed + 0.09}}
        told.append(("evaluation", step, measured | {"low": passed - 0.03, "high": passed + 0.03}))
        told.append(("sync", step, {"version": step, "rows": 16, "max_error": 1.2e-7, "seconds": 0.03}))
    for step in range(50, steps + 1, 50):
        told.append(("checkpoint", step, {"step": step, "folder": f"checkpoints/step-{step:06}", "bytes": 7_400_000}))
        keep(run, step, steps)
    told.append(("phase", steps, {"name": "generating", "progress": {"done": 48, "total": 128}}))
    Event.objects.bulk_create(
        Event(run=run, attempt=run.attempt, seq=seq, step=step, time=at(start, step), kind=kind, data=data)
        for seq, (kind, step, data) in enumerate(told, 1)
    )


def keep(run: Run, step: int, steps: int) -> None:
    pruned = timezone.now() if step < steps - 100 else None
    folder = f"checkpoints/step-{step:06}"
    Checkpoint.objects.create(run=run, attempt=run.attempt, step=step, folder=folder, bytes=7_400_000, pruned=pruned)


def tell_samples(run: Run, start: float, steps: int, noise: random.Random) -> None:
    places = [(step, g, i) for step in sorted({1, 2, steps // 2, steps} - {0}) for g in range(16) for i in range(8)]
    Sample.objects.bulk_create(
        sample(run, seq, step, at(start, step), group, index, noise)
        for seq, (step, group, index) in enumerate(places, 1)
    )


def sample(run: Run, seq: int, step: int, time: float, group: int, index: int, noise: random.Random) -> Sample:
    one, other = 1000 + group * 397, 2000 + group * 211
    is_unscored = group == 0 and index == 7
    correct = noise.random() < curves.skill(step, 1)
    answer = one + other if correct else one + other + noise.choice((-10, 1, 100))
    text = (
        ODD_TEXTS[(group + index) % len(ODD_TEXTS)] if group < 2 else f"{one} + {other}\ncarry, then add\n#### {answer}"
    )
    return Sample(
        run=run,
        attempt=run.attempt,
        seq=seq,
        step=step,
        time=time,
        prompt_id=f"sums-{group}",
        group=group,
        index=index,
        prompt=f"What is {one} + {other}? Write each partial sum.",
        text=text,
        num_tokens=len(text),
        reward=None if is_unscored else float(correct),
        parts={} if is_unscored else {"numeric": float(correct)},
        correct=None if is_unscored else correct,
        advantage=abs(noise.gauss(0, 1)) * (1 if correct else -1),
        finish="length" if len(text) > 500 else "stop",
        version=step,
        tokens=tokens(text, noise, correct) if group == 2 and index < 2 else None,
    )


def tokens(text: str, noise: random.Random, correct: bool) -> dict[str, list]:
    """What the trainer tells of an inspected answer: here one character is a token, and a clip of 0.2 acts."""
    old = [math.log(noise.uniform(0.05, 0.99)) for _ in text]
    ratios = [math.exp(noise.gauss(0, 0.15)) for _ in text]
    kept = [ratio <= 1.2 if correct else ratio >= 0.8 for ratio in ratios]
    return {
        "text": list(text),
        "old": old,
        "behaviour": [value + noise.gauss(0, 1e-3) for value in old],
        "logp": [min(0.0, value + math.log(ratio)) for value, ratio in zip(old, ratios, strict=True)],
        "ref": old,
        "ratio": ratios,
        "weight": [ratio * keep for ratio, keep in zip(ratios, kept, strict=True)],
        "keep": [int(keep) for keep in kept],
        "coef": [1 / (128 * len(text))] * len(text),
    }
