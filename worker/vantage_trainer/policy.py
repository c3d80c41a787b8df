"""The policy under training: a Hugging Face model in a DeepSpeed engine, with its reference and, where asked, a critic.

Rank 0 calls, the other ranks follow(): each public method below runs on all of them. Shapes: _T response tokens of a
micro-batch, one after another.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage_trainer.algorithms.loss import Loss, loss
from vantage_trainer.algorithms.measure import Sums, added
from vantage_trainer.composition import Algorithm
from vantage_trainer.critic import Critic
from vantage_trainer.engine import Engine, begin_distributed
from vantage_trainer.engine_state import AdamState
from vantage_trainer.head import ResponseModel
from vantage_trainer.ranks import Conducted, Ranks
from vantage_trainer.sequences import Sequence, by_index, microbatches, rows, tokens
from vantage_trainer.spec import RunSpec
from vantage_trainer.trained_model import load


@dataclass(frozen=True)
class Update:
    """One optimizer step: its loss, the gradient's norm before clipping, metric sums, and tokens of inspected ones."""

    loss: float
    grad_norm: float
    sums: Sums
    maxima: dict[str, Tensor]
    inspected: dict[int, dict[str, list[float]]] = field(default_factory=dict)


class Policy(Conducted):
    """Log-probabilities, updates and weights of one model over all ranks."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        begin_distributed()
        super().__init__(Ranks())
        self._spec = spec
        self._folder = folder
        self._model = ResponseModel(load(folder, spec))
        self._engine = Engine(self._model, self._model.model, spec)
        self.num_parameters = self._engine.num_parameters
        self._reference: ResponseModel | None = None
        with_critic = spec.algorithm.baseline.kind == "critic_gae"
        self.critic = Critic(folder, spec, self.ranks) if with_critic else None

    def update(self, sequences: list[Sequence], lr: float, algorithm: Algorithm | None, inspect: list[int]) -> Update:
        """Take one optimizer step on all sequences together; without an algorithm, imitate them."""
        return self._together("update", sequences, lr, algorithm, inspect)

    def logprobs(self, sequences: list[Sequence], *, reference: bool = False) -> list[Tensor]:
        """Return the log-probabilities of every response's tokens, without a gradient, in the order given."""
        return self._together("logprobs", sequences, reference)

    def weights(self) -> list[tuple[str, Tensor]]:
        """Return every parameter by its Hugging Face name, on rank 0; a tied one comes once."""
        return self._together("weights")

    def freeze_reference(self, weights: dict[str, Tensor] | None = None) -> None:
        """Keep a copy of the policy, or of the given weights, as the reference."""
        self._together("freeze_reference", weights)

    def reference_weights(self) -> dict[str, Tensor]:
        return {} if self._reference is None else dict(self._reference.model.named_parameters())

    def state(self) -> AdamState:
        """Collect float32 parameters and Adam moments by name, on rank 0."""
        return self._together("state")

    def load_state(self, state: AdamState) -> None:
        self._together("load_state", state)

    def fresh_optimizer(self) -> None:
        """Forget Adam's moments, as a new stage begins."""
        self._together("fresh_optimizer")

    def random_states(self) -> list[Tensor]:
        """Return the state of every rank's random numbers."""
        return self._together("random_states")

    def set_random_states(self, states: list[Tensor]) -> None:
        self._together("set_random_states", states)

    def close(self) -> None:
        """Let the other ranks go."""
        self.ranks.dismiss()

    def follow(self) -> None:
        """Do what rank 0 does, until it closes; the life of every other rank."""
        self.ranks.follow()

    def _update(self, sequences: list[Sequence], lr: float, algorithm: Algorithm | None, inspect: list[int]) -> Update:
        parts: list[Loss] = []
        inspected: dict[int, dict[str, list[float]]] = {}
        total = torch.zeros((), dtype=torch.float64)
        for batch in self._dealt(sequences):
            value, part, current_T = self._loss(batch, algorithm)
            self._engine.backward(value)
            total += value.detach().double().cpu()
            if part is not None:
                parts.append(part)
                inspected |= _inspected(batch, part, current_T, set(inspect))
        norm = self._engine.step(lr)
        return self._merged(float(total), norm, parts, inspected)

    def _loss(self, batch: list[Sequence], algorithm: Algorithm | None) -> tuple[Tensor, Loss | None, Tensor]:
        logp_T, entropy_T = self._forward(self._engine, batch, with_entropy=algorithm is not None)
        laid = tokens(batch, logp_T, entropy_T)
        if algorithm is None:
            return -(laid.coef_T * laid.mask_T * logp_T).sum(), None, logp_T.detach()
        part = loss(algorithm, laid)
        return part.loss, part, logp_T.detach()

    def _forward(
        self, model: Any, batch: list[Sequence], *, with_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        laid = rows(batch, self._engine.device)
        return model(laid.ids_BT, laid.place_T, laid.target_T, self._spec.rollout.temperature, with_entropy)

    def _merged(
        self, total: float, norm: float, parts: list[Loss], inspected: dict[int, dict[str, list[float]]]
    ) -> Update:
        mine = (total, added([part.sums for part in parts]), [part.maxima for part in parts], inspected)
        ranks = self.ranks.gather(mine)
        maxima: dict[str, Tensor] = {}
        for found in (found for _, _, several, _ in ranks for found in several):
            maxima |= {name: torch.maximum(value, maxima.get(name, value)) for name, value in found.items()}
        return Update(
            loss=sum(rank[0] for rank in ranks),
            grad_norm=norm,
            sums=added([rank[1] for rank in ranks]),
            maxima=maxima,
            inspected={index: found for rank in ranks for index, found in rank[3].items()},
        )

    @torch.no_grad()
    def _logprobs(self, sequences: list[Sequence], reference: bool) -> list[Tensor]:
        model = self._reference if reference else self._engine
        mine: dict[int, Tensor] = {}
        numbered = [replace(sequence, index=index) for index, sequence in enumerate(sequences)]
        for batch in self._dealt(numbered):
            logp_T, _ = self._forward(model, batch)
            mine |= by_index(batch, logp_T)
        return self.ranks.in_order(mine)

    def _dealt(self, sequences: list[Sequence]) -> list[list[Sequence]]:
        budget = self._spec.optimization.tokens_per_microbatch
        return microbatches(sequences, self.ranks.rank, self.ranks.world, budget)

    def _weights(self) -> list[tuple[str, Tensor]]:
        return list(self._engine.gathered(keep=self.ranks.rank == 0))

    def _freeze_reference(self, weights: dict[str, Tensor] | None) -> None:
        if self._reference is None:
            model = ResponseModel(load(self._folder, self._spec))
            self._reference = model.to(self._engine.device).requires_grad_(False)
        weights = dict(self._weights()) if weights is None else weights
        named = dict(self._reference.model.named_parameters())
        for name, value in self.ranks.share(weights if self.ranks.world == 1 else _on_cpu(weights)).items():
            named[name].copy_(value)

    def _state(self) -> AdamState:
        return self._engine.state(keep=self.ranks.rank == 0)

    def _load_state(self, state: AdamState) -> None:
        self._engine.load_state(state)

    def _fresh_optimizer(self) -> None:
        self._engine.fresh_optimizer()

    def _random_states(self) -> list[Tensor]:
        return self.ranks.gather(torch.get_rng_state())

    def _set_random_states(self, states: list[Tensor]) -> None:
        if self.ranks.rank < len(states):
            torch.set_rng_state(states[self.ranks.rank])


def _on_cpu(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.cpu() for name, value in weights.items()}


def _inspected(
    batch: list[Sequence], part: Loss, logp_T: Tensor, wanted: set[int]
) -> dict[int, dict[str, list[float]]]:
    """Pick the tokens of the responses that somebody will look at."""
    arrays = {"logp": logp_T, "ratio": part.ratio_T, "weight": part.weight_T, "keep": part.keep_T}
    found: dict[int, dict[str, list[float]]] = {}
    start = 0
    for sequence in batch:
        end = start + len(sequence.response_ids)
        if sequence.index in wanted and sequence.trained:
            found[sequence.index] = {name: value[start:end].tolist() for name, value in arrays.items()}
            found[sequence.index] |= _given(sequence)
        start = end
    return found


def _given(sequence: Sequence) -> dict[str, list[float]]:
    """What the update was given for each token of a response."""
    known = {"coef": [sequence.coef] * len(sequence.response_ids)}
    return known if sequence.ref is None else known | {"ref": sequence.ref.tolist()}
