"""Show what an algorithm makes of a batch: `python -m vantage_trainer.objective --algorithm A.json --batch B.json`.

Prints JSON with advantages, ratios, weights, coefficients and the gradient of the loss, one inner list per response.
A.json is a preset's name or a composition; B.json holds {"inputs": {...}} with ragged lists.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from math import isfinite
from pathlib import Path

import torch
from pydantic import JsonValue, ValidationError
from torch import Tensor

from vantage_trainer.algorithms.coefficient import coefficients
from vantage_trainer.algorithms.credit import Credit, credit
from vantage_trainer.algorithms.critic import token_credit, value_loss
from vantage_trainer.algorithms.loss import Loss, loss
from vantage_trainer.algorithms.measure import metrics
from vantage_trainer.algorithms.ratio import importance
from vantage_trainer.algorithms.regularizer import kl_in_reward
from vantage_trainer.algorithms.tokens import Tokens
from vantage_trainer.composition import Algorithm, CriticGae, Divergence
from vantage_trainer.pass_at_k import mean_pass_at_k, pass_at_k
from vantage_trainer.presets import PRESETS
from vantage_trainer.ragged import Batch, Inputs, read
from vantage_trainer.ragged_top import Top, read_top
from vantage_trainer.refusals import composition_refusals, explain
from vantage_trainer.spec import Reward, Rollout

Answer = dict[str, JsonValue]


def inspect(algorithm: Algorithm, inputs: Inputs, response_limit: int) -> Answer:
    """Compute the objective of one batch as one optimizer step; raises ValueError with a sentence."""
    batch = read(inputs, Reward().correct_threshold)
    kl_B = _kl_of_responses(algorithm, batch)
    found = credit(
        algorithm,
        batch.reward_B,
        batch.group_B,
        batch.length_B,
        correct_B=batch.correct_B,
        truncated_B=batch.truncated_B,
        response_limit=response_limit,
        kl_B=kl_B,
    )
    answer = _of_responses(found) | {"response_limit": response_limit}
    return answer | _of_tokens(algorithm, batch, found, response_limit) if "logp_new" in batch.columns else answer


def _kl_of_responses(algorithm: Algorithm, batch: Batch) -> Tensor | None:
    """Sum the KL that belongs in the reward; a batch of bare rewards has none to subtract."""
    kl = algorithm.regularizer.kl
    if kl is None or kl.where != "reward" or algorithm.baseline.kind == "critic_gae":
        return None
    if not batch.columns:
        return torch.zeros_like(batch.reward_B)
    _demand(batch, "logp_ref", "a KL to the reference policy")
    chosen_T = batch.mask_T
    response_T, ref_T = batch.response_T[chosen_T], batch.columns["logp_ref"][chosen_T]
    return kl_in_reward(kl, _old(batch)[chosen_T], ref_T, response_T, len(batch.row_B))


def _old(batch: Batch) -> Tensor:
    """With one optimizer step per batch the old log-probabilities are the current ones."""
    _demand(batch, "logp_new", "a ratio or a KL")
    return batch.columns.get("logp_old", batch.columns["logp_new"])


def _demand(batch: Batch, name: str, what: str) -> None:
    if name not in batch.columns:
        raise ValueError(f"The composition has {what}, so the batch needs inputs.{name}.")


def _of_responses(found: Credit) -> Answer:
    flags = {"effective_response": found.effective_B, "flat_group": found.flat_B, "group_of_one": found.lone_B}
    shaped: list[JsonValue] = [value if isfinite(value) else None for value in found.reward_B.tolist()]
    answer: Answer = {"advantages": found.advantage_B.tolist()}
    return answer | {name: flag_B.long().tolist() for name, flag_B in flags.items()} | {"shaped_reward": shaped}


def _of_tokens(algorithm: Algorithm, batch: Batch, found: Credit, response_limit: int) -> Answer:
    coef_B = coefficients(
        algorithm.aggregation, batch.length_B, batch.group_B, found.effective_B, response_limit=response_limit
    )
    coef_T = coef_B[batch.response_T] * batch.mask_T
    logp_T = batch.columns["logp_new"].clone().requires_grad_()
    mask_T = batch.mask_T & found.effective_B[batch.response_T]
    advantage_T, by_critic = _advantages(algorithm, batch, found, coef_T, mask_T)
    outcome = loss(algorithm, _tokens(algorithm, batch, advantage_T, logp_T, coef_T, mask_T))
    (gradient_T,) = torch.autograd.grad(outcome.loss, logp_T)
    every = _tokens(algorithm, batch, advantage_T, logp_T.detach(), coef_T, batch.mask_T)
    found_T: Answer = {
        "ratio": batch.rows(every.restored(importance(algorithm.ratio, every.trained()), 1.0)),
        "weight": batch.rows(outcome.weight_T),
        "keep": batch.rows(outcome.keep_T),
        "coef": batch.rows(coef_T),
        "token_loss": batch.rows(outcome.term_T),
        "grad_logp": batch.rows(gradient_T),
        "loss": outcome.loss.item(),
    }
    return found_T | by_critic | _measured(batch, outcome)


def _advantages(
    algorithm: Algorithm, batch: Batch, found: Credit, coef_T: Tensor, mask_T: Tensor
) -> tuple[Tensor, Answer]:
    """Give every token its response's advantage, or what the critic makes of it together with the critic's own loss."""
    part = algorithm.baseline
    if not isinstance(part, CriticGae):
        return found.advantage_B[batch.response_T], {}
    _demand(batch, "value_old", "a critic")
    full = {"value_new": batch.columns["value_old"], "logp_old": _old(batch)} | batch.columns
    kept = {name: column_T[mask_T] for name, column_T in full.items()}
    given = token_credit(
        algorithm,
        found.reward_B,
        kept["value_old"],
        batch.response_T[mask_T],
        old_logp_T=kept["logp_old"],
        ref_logp_T=kept.get("logp_ref"),
    )
    value_N = kept["value_new"].clone().requires_grad_()
    own_loss = value_loss(part, value_N, kept["value_old"], given.return_T, coef_T[mask_T])
    (gradient_N,) = torch.autograd.grad(own_loss, value_N)
    columns = {"advantages": given.advantage_T, "token_reward": given.reward_T, "returns": given.return_T}
    placed = {name: _placed(value_N, mask_T) for name, value_N in (columns | {"grad_value": gradient_N}).items()}
    answer: Answer = {name: batch.rows(value_T) for name, value_T in placed.items()}
    return placed["advantages"], answer | {"value_loss": own_loss.item()}


def _placed(value_N: Tensor, mask_T: Tensor) -> Tensor:
    return torch.zeros(mask_T.shape, dtype=value_N.dtype).masked_scatter(mask_T, value_N.detach())


def _tokens(
    algorithm: Algorithm, batch: Batch, advantage_T: Tensor, logp_T: Tensor, coef_T: Tensor, mask_T: Tensor
) -> Tokens:
    if algorithm.regularizer.kl is not None:
        _demand(batch, "logp_ref", "a KL to the reference policy")
    if algorithm.regularizer.entropy is not None:
        _demand(batch, "entropy", "an entropy bonus")
    top = _top(algorithm, batch)
    return Tokens(
        behaviour_top_TK=None if top is None else top.behaviour_TK,
        current_top_TK=None if top is None else top.current_TK,
        logp_T=logp_T,
        old_logp_T=_old(batch),
        behaviour_logp_T=batch.columns.get("logp_behav", _old(batch)),
        advantage_T=advantage_T,
        coef_T=coef_T,
        mask_T=mask_T,
        response_T=batch.response_T,
        ref_logp_T=batch.columns.get("logp_ref"),
        entropy_T=batch.columns.get("entropy"),
    )


def _top(algorithm: Algorithm, batch: Batch) -> Top | None:
    part = algorithm.trust_region
    if not isinstance(part, Divergence) or part.form == "binary":
        return None
    return read_top(batch.inputs, batch.row_B.tolist(), part.k)


def _measured(batch: Batch, outcome: Loss) -> Answer:
    known = metrics(outcome.sums, outcome.maxima)
    has_behaviour = "logp_behav" in batch.columns
    return {name: value for name, value in known.items() if has_behaviour or not name.startswith("mismatch/")}


def estimate(inputs: Inputs) -> Answer:
    """Answer a batch that holds counts of correct samples instead of responses."""
    rows, prompts = inputs["n_c_k"], inputs.get("prompts")
    if not isinstance(rows, list):
        raise ValueError("inputs.n_c_k must be a list of [n, c, k].")
    answer: Answer = {"value": [pass_at_k(*row) for row in rows]}  # type: ignore[misc]  # rows are lists of three
    if isinstance(prompts, dict):
        answer["benchmark_mean"] = mean_pass_at_k(prompts["n"], prompts["c"], prompts["k"])  # type: ignore[arg-type]
    return answer


def read_algorithm(name: str) -> Algorithm:
    """Find a preset by name, or read a composition, bare or under the key `algorithm`, from a file."""
    if name in PRESETS:
        return PRESETS[name].algorithm
    if not Path(name).is_file():
        raise ValueError(f"{name} is neither a preset nor a file; the presets are {', '.join(PRESETS)}.")
    content = json.loads(Path(name).read_text())
    if isinstance(content, str):
        return read_algorithm(content)
    if not isinstance(content, dict):
        raise ValueError(f"{name} must hold a preset's name or one choice per part.")
    try:
        return Algorithm.model_validate(content.get("algorithm", content))
    except ValidationError as error:
        raise ValueError(" ".join(refusal.sentence for refusal in explain(error, Algorithm))) from error


def read_batch(path: str) -> dict[str, JsonValue]:
    """Read a batch file; raises ValueError with a sentence where it is not one."""
    content = json.loads(Path(path).read_text())
    if not isinstance(content, dict) or not isinstance(content.get("inputs"), dict):
        raise ValueError(f'{path} must hold {{"inputs": {{...}}}}.')
    return content


def answer(arguments: Namespace) -> Answer:
    """Read both files and compute; a response limit comes from the command, the batch, or the run's default."""
    algorithm, content = read_algorithm(arguments.algorithm), read_batch(arguments.batch)
    if refusals := composition_refusals(algorithm):
        raise ValueError(" ".join(refusal.sentence for refusal in refusals))
    inputs, config = content["inputs"], content.get("config")
    assert isinstance(inputs, dict)
    if "n_c_k" in inputs:
        return estimate(inputs)
    stated = inputs.get("response_limit") or (config.get("M") if isinstance(config, dict) else None)
    limit = arguments.response_limit or stated or Rollout().response_limit
    if not isinstance(limit, int) or limit < 1:
        raise ValueError(f"The response limit is {limit!r}; it must be a whole number of at least 1.")
    return inspect(algorithm, inputs, limit)


def main() -> int:
    """Print the answer as one JSON object, or a sentence on stderr and exit with 2."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--algorithm", required=True, help="a preset's name or a file with a composition")
    parser.add_argument("--batch", required=True, help='a file with {"inputs": {...}}')
    parser.add_argument("--response-limit", type=int, help="what the composition's length constants refer to")
    try:
        print(json.dumps(answer(parser.parse_args()), allow_nan=False))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
