"""Started by test_deepspeed_equals_autograd: compare updates with plain autograd and print the errors."""

import json
import os
import sys
from pathlib import Path

import torch
from vantage_trainer import ranks as launching
from vantage_trainer.composition import Algorithm, Clip, GroupMean, Ratio, TokenMean
from vantage_trainer.policy import Policy
from vantage_trainer.sequences import Sequence
from vantage_trainer.spec import Model, Optimization, RunSpec

LR = 1e-2
CLIP = 0.5
ALGORITHM = Algorithm(
    baseline=GroupMean(), ratio=Ratio(level="token"), trust_region=Clip(low=0.2, high=0.2), aggregation=TokenMean()
)


def sequences(num: int) -> list[Sequence]:
    """Make responses of very different lengths, each with its own advantage."""
    chance = torch.Generator().manual_seed(num)
    lengths = [3 + 7 * i % 19 for i in range(num)]
    drawn = [torch.randint(4, 90, (5 + n,), generator=chance).tolist() for n in lengths]
    coef = 1 / sum(lengths)
    return [
        Sequence(ids[:5], ids[5:], [0.0] * n, advantage=(-1) ** i * (1 + i), coef=coef, index=i)
        for i, (ids, n) in enumerate(zip(drawn, lengths, strict=True))
    ]


def plain_step(folder: Path, batch: list[Sequence]) -> tuple[dict[str, torch.Tensor], float]:
    """One AdamW step of the same loss by torch alone, one response at a time."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    for s in batch:
        logits = model(torch.tensor([s.prompt_ids + s.response_ids])).logits[0]
        places = slice(len(s.prompt_ids) - 1, -1)
        logp = torch.log_softmax(logits[places], -1).gather(1, torch.tensor(s.response_ids)[:, None])
        (-(logp - logp.detach()).exp() * s.advantage * s.coef).sum().backward()
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP))
    optimizer.step()
    return dict(model.named_parameters()), norm


def errors(folder: Path, stage: int) -> dict[int, dict[str, float]]:
    """Compare one step on 1 to 8 uneven responses, which make 1 to 8 micro-batches."""
    settings = Optimization(zero_stage=stage, clip_norm=CLIP, tokens_per_microbatch=40, learning_rate=LR)
    policy = Policy(folder, RunSpec(model=Model(), optimization=settings))
    if policy.ranks.rank:
        policy.follow()
        return {}
    start = policy.state()
    report = {}
    for num in (1, 2, 5, 8):
        policy.load_state(start)
        report[num] = one_step(policy, folder, sequences(num))
    policy.close()
    return report


def one_step(policy: Policy, folder: Path, batch: list[Sequence]) -> dict[str, float]:
    update = policy.update(batch, LR, ALGORITHM, [0])
    expected, norm = plain_step(folder, batch)
    first = {name: parameter.grad * 0.1 for name, parameter in expected.items() if parameter.grad is not None}
    moments, weights = policy.state().moments["exp_avg"], dict(policy.weights())
    largest = max(float(value.abs().max()) for value in first.values())
    return {
        "gradient": max(float((moments[name] - value).abs().max()) for name, value in first.items()) / largest,
        "norm": abs(update.grad_norm - norm) / norm,
        "steps": policy.state().steps,
        "moved": max(float((weights[name] - value.detach()).abs().max()) for name, value in expected.items()),
    }


def main() -> None:
    launching.prepare_environment()
    torch.set_num_threads(1)
    report = {stage: errors(Path(sys.argv[1]), stage) for stage in (0, 1, 2, 3)}
    if os.environ["RANK"] == "0":
        print("REPORT " + json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
