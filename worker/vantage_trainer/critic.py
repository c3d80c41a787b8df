"""The critic: a value model with a DeepSpeed engine of its own, trained beside the policy over the same ranks.

Rank 0 calls, the other ranks follow. Shapes: _BT padded rows, _T response tokens one after another, _TH hidden states.
The value of a token is that of the state before it: the prompt and the tokens written so far.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vantage_trainer.algorithms.critic import value_clipped, value_loss
from vantage_trainer.composition import CriticGae
from vantage_trainer.engine import Engine
from vantage_trainer.engine_state import MOMENTS, AdamState
from vantage_trainer.ranks import Conducted, Ranks
from vantage_trainer.sequences import Sequence, by_index, judged, microbatches, rows
from vantage_trainer.spec import RunSpec
from vantage_trainer.trained_model import load


class ValueHead(nn.Linear):
    """One number per hidden state, in float32; it begins at 0, so the first values are 0."""

    def __init__(self, size: int) -> None:
        super().__init__(size, 1)
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, hidden_TH: Tensor) -> Tensor:
        return nn.functional.linear(hidden_TH.float(), self.weight.float(), self.bias.float()).squeeze(-1)


class ValueModel(nn.Module):
    """A language model's body under a value head; `origin` names each of the body's weights as the policy does."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        names = {parameter: name for name, parameter in model.named_parameters()}
        self.body: Any = model.get_decoder()
        self.head = ValueHead(model.get_output_embeddings().weight.shape[1])
        self.origin = {f"body.{name}": names[parameter] for name, parameter in self.body.named_parameters()}

    def forward(self, ids_BT: Tensor, place_T: Tensor) -> Tensor:
        hidden_BTH = self.body(input_ids=ids_BT, use_cache=False).last_hidden_state
        return self.head(hidden_BTH.flatten(0, 1)[place_T])


@dataclass(frozen=True)
class ValueUpdate:
    """One optimizer step of the critic: its loss before its weight, and how many tokens were clipped of how many."""

    loss: float
    grad_norm: float
    num_clipped: float
    num_tokens: float


class Critic(Conducted):
    """Values, updates and state of the value model over all ranks."""

    def __init__(self, folder: Path, spec: RunSpec, ranks: Ranks) -> None:
        super().__init__(ranks)
        self._spec = spec
        self._model = ValueModel(load(folder, spec)).to(getattr(torch, spec.model.dtype))
        self._engine = Engine(self._model, self._model, spec)
        self.num_parameters = self._engine.num_parameters

    def begin(self, weights: list[tuple[str, Tensor]]) -> None:
        """Start as a copy of the policy's body with a head of zeros and a fresh optimizer."""
        self._together("begin", dict(weights))

    def values(self, sequences: list[Sequence]) -> list[Tensor]:
        """Return the value before every token of each response, without a gradient, in the order given."""
        return self._together("values", sequences)

    def update(self, sequences: list[Sequence], lr: float, part: CriticGae) -> ValueUpdate:
        """Take one optimizer step towards the returns, on all sequences together."""
        return self._together("update", sequences, lr, part)

    def state(self) -> AdamState:
        """Collect float32 parameters and Adam moments by name, on rank 0."""
        return self._together("state")

    def load_state(self, state: AdamState) -> None:
        self._together("load_state", state)

    def fresh_optimizer(self) -> None:
        """Forget Adam's moments."""
        self._together("fresh_optimizer")

    def _begin(self, weights: dict[str, Tensor]) -> None:
        own = self._engine.state(keep=True)
        body = {name: weights[given].detach().float().cpu() for name, given in self._model.origin.items()}
        fresh = {name: body.get(name, torch.zeros_like(value)) for name, value in own.parameters.items()}
        still = {moment: {name: torch.zeros_like(value) for name, value in fresh.items()} for moment in MOMENTS}
        self._engine.load_state(AdamState(fresh, still, 0))

    @torch.no_grad()
    def _values(self, sequences: list[Sequence]) -> list[Tensor]:
        mine: dict[int, Tensor] = {}
        numbered = [replace(sequence, index=index) for index, sequence in enumerate(sequences)]
        for batch in self._dealt(numbered):
            mine |= by_index(batch, self._forward(batch))
        return self.ranks.in_order(mine)

    def _update(self, sequences: list[Sequence], lr: float, part: CriticGae) -> ValueUpdate:
        sums = torch.zeros(3, dtype=torch.float64)
        for batch in self._dealt(sequences):
            value, found = self._loss(batch, part)
            self._engine.backward(part.value_coef * value)
            sums += found
        norm = self._engine.step(lr)
        total, clipped, tokens = sum(self.ranks.gather(sums), torch.zeros(3)).tolist()
        return ValueUpdate(total, norm, clipped, tokens)

    def _loss(self, batch: list[Sequence], part: CriticGae) -> tuple[Tensor, Tensor]:
        """Return a micro-batch's contribution, and what it adds to loss, clipped and all trained tokens."""
        laid = judged(batch, self._forward(batch))
        value = value_loss(part, laid.value_T, laid.value_old_T, laid.return_T, laid.coef_T)
        clipped_T = value_clipped(part, laid.value_T, laid.value_old_T, laid.return_T)
        found = [value.detach().double().cpu(), clipped_T.double().sum().cpu(), torch.tensor(float(len(clipped_T)))]
        return value, torch.stack([one.double() for one in found])

    def _forward(self, batch: list[Sequence]) -> Tensor:
        laid = rows(batch, self._engine.device)
        return self._engine(laid.ids_BT, laid.place_T)

    def _dealt(self, sequences: list[Sequence]) -> list[list[Sequence]]:
        budget = self._spec.optimization.tokens_per_microbatch
        return microbatches(sequences, self.ranks.rank, self.ranks.world, budget)

    def _state(self) -> AdamState:
        return self._engine.state(keep=self.ranks.rank == 0)

    def _load_state(self, state: AdamState) -> None:
        self._engine.load_state(state)

    def _fresh_optimizer(self) -> None:
        self._engine.fresh_optimizer()
