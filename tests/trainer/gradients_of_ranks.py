"""Started by test_deepspeed_equals_autograd: compare updates with plain autograd and print the errors."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from vantage_trainer import ranks as launching
from vantage_trainer.composition import Algorithm, Clip, GroupMean, Ratio, TokenMean
from vantage_trainer.critic import Critic, ValueModel
from vantage_trainer.engine_state import AdamState
from vantage_trainer.policy import Policy
from vantage_trainer.presets import PRESETS
from vantage_trainer.sequences import Sequence
from vantage_trainer.spec import Model, Optimization, RunSpec

LR = 1e-2
PPO = PRESETS["ppo"].algorithm.baseline
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


def valued(batch: list[Sequence]) -> list[Sequence]:
    """Add old values and returns of all sizes, so that some values lie outside the band and some inside."""
    chance = torch.Generator().manual_seed(len(batch))
    drawn = [torch.randn(2, len(s.response_ids), generator=chance) / 3 for s in batch]
    return [replace(s, value=value, target=target) for s, (value, target) in zip(batch, drawn, strict=True)]


def value_model(folder: Path, state: AdamState) -> ValueModel:
    from transformers import AutoModelForCausalLM

    model = ValueModel(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    model.load_state_dict({name: value.clone() for name, value in state.parameters.items()})
    return model


def plain_value_step(model: ValueModel, batch: list[Sequence]) -> float:
    """One AdamW step of the clipped value loss, token by token as it is written; returns the gradient's norm."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    for s in batch:
        ids = torch.tensor([s.prompt_ids + s.response_ids])
        values = model(ids, torch.arange(len(s.prompt_ids) - 1, s.length - 1))
        for value, old, target in zip(values, s.value, s.target, strict=True):
            near = torch.minimum(torch.maximum(value, old - PPO.value_clip), old + PPO.value_clip)
            larger = torch.maximum((value - target) ** 2, (near - target) ** 2)
            (PPO.value_coef * s.coef * larger / 2).backward(retain_graph=True)
    norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP))
    optimizer.step()
    return norm


def errors(folder: Path, stage: int) -> dict[int, dict[str, float]]:
    """Compare one step on 1 to 8 uneven responses, which make 1 to 8 micro-batches."""
    settings = Optimization(zero_stage=stage, clip_norm=CLIP, tokens_per_microbatch=40, learning_rate=LR)
    spec = RunSpec(model=Model(), optimization=settings, algorithm=PRESETS["ppo"].algorithm)
    policy = Policy(folder, spec)
    if policy.ranks.rank:
        policy.follow()
        return {}
    start, critic = policy.state(), begun_critic(policy)
    begun, report = critic.state(), {}
    for num in (1, 2, 5, 8):
        policy.load_state(start)
        critic.load_state(begun)
        report[num] = one_step(policy, folder, sequences(num))
        report[num] |= {f"critic {name}": v for name, v in one_value_step(critic, folder, begun, num).items()}
    policy.close()
    return report


def begun_critic(policy: Policy) -> Critic:
    """Copy the policy's body, and give the head weights: from a head of zeros the body gets no gradient."""
    critic = policy.critic
    critic.begin(policy.weights())
    state = critic.state()
    state.parameters["head.weight"] = torch.randn(1, 128, generator=torch.Generator().manual_seed(0)) / 8
    critic.load_state(state)
    return critic


def one_step(policy: Policy, folder: Path, batch: list[Sequence]) -> dict[str, float]:
    update = policy.update(batch, LR, ALGORITHM, [0])
    expected, norm = plain_step(folder, batch)
    return compared(expected, policy.state(), norm, update.grad_norm) | {
        "moved": max(float((value - expected[name].detach()).abs().max()) for name, value in policy.weights())
    }


def one_value_step(critic: Critic, folder: Path, begun: AdamState, num: int) -> dict[str, float]:
    batch, model = valued(sequences(num)), value_model(folder, begun)
    found = critic.values(batch)
    with torch.no_grad():
        wanted = [
            model(torch.tensor([s.prompt_ids + s.response_ids]), torch.arange(len(s.prompt_ids) - 1, s.length - 1))
            for s in batch
        ]
    norm, update = plain_value_step(model, batch), critic.update(batch, LR, PPO)
    assert update.num_tokens == sum(len(s.response_ids) for s in batch), update
    assert num == 1 or 0 < update.num_clipped < update.num_tokens, update
    answer = compared(dict(model.named_parameters()), critic.state(), norm, update.grad_norm)
    gaps = [float((one - other).abs().max()) for one, other in zip(found, wanted, strict=True)]
    return answer | {"value": max(gaps)}


def compared(expected: dict[str, torch.Tensor], state: AdamState, norm: float, found: float) -> dict[str, float]:
    """Read the gradient from Adam's first moment, and set it against autograd's."""
    first = {name: parameter.grad * 0.1 for name, parameter in expected.items() if parameter.grad is not None}
    largest = max(float(value.abs().max()) for value in first.values())
    moments = state.moments["exp_avg"]
    return {
        "gradient": max(float((moments[name] - value).abs().max()) for name, value in first.items()) / largest,
        "norm": abs(found - norm) / norm,
        "steps": state.steps,
    }


def main() -> None:
    launching.prepare_environment()
    torch.set_num_threads(1)
    report = {stage: errors(Path(sys.argv[1]), stage) for stage in (0, 1, 2, 3)}
    if os.environ["RANK"] == "0":
        print("REPORT " + json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
