"""The policy under training: a Hugging Face model in a DeepSpeed engine. Only this file imports deepspeed.

Rank 0 calls, the other ranks follow(): each public method below runs on all of them. Shapes: _T response tokens of a
micro-batch, one after another.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage_trainer.algorithms.loss import Loss, loss
from vantage_trainer.algorithms.measure import Sums, added
from vantage_trainer.composition import Algorithm
from vantage_trainer.engine_state import AdamState, read_state, reset_adam, write_state
from vantage_trainer.head import ResponseModel
from vantage_trainer.ranks import Ranks
from vantage_trainer.sequences import Sequence, microbatches, rows, tokens
from vantage_trainer.spec import RunSpec

# DeepSpeed measures the gradient's norm only when it clips, and clips at 1.0 when told nothing.
NO_CLIPPING = 1e30


@dataclass(frozen=True)
class Update:
    """One optimizer step: its loss, the gradient's norm before clipping, metric sums, and tokens of inspected ones."""

    loss: float
    grad_norm: float
    sums: Sums
    maxima: dict[str, Tensor]
    inspected: dict[int, dict[str, list[float]]] = field(default_factory=dict)


class Policy:
    """Log-probabilities, updates and weights of one model over all ranks."""

    def __init__(self, folder: Path, spec: RunSpec) -> None:
        _quiet_deepspeed()
        import deepspeed

        self._deepspeed = deepspeed
        deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo", verbose=False)
        self.ranks = Ranks()
        self._spec = spec
        self._folder = folder
        self._model = _load(folder, spec)
        self.num_parameters = sum(parameter.numel() for parameter in self._model.parameters())
        self._reference: ResponseModel | None = None
        self._norm = 0.0
        self._engine = self._initialize()
        self._device: torch.device = self._engine.device
        reset_adam(self._engine)

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
        self.ranks.share(("close", ()))

    def follow(self) -> None:
        """Do what rank 0 does, until it closes; the life of every other rank."""
        while True:
            name, arguments = self.ranks.share(None)
            if name == "close":
                return
            getattr(self, f"_{name}")(*arguments)

    def _together(self, name: str, *arguments: Any) -> Any:
        assert self.ranks.rank == 0, "rank 0 calls, the others follow"
        self.ranks.share((name, arguments))
        return getattr(self, f"_{name}")(*arguments)

    def _update(self, sequences: list[Sequence], lr: float, algorithm: Algorithm | None, inspect: list[int]) -> Update:
        parts: list[Loss] = []
        inspected: dict[int, dict[str, list[float]]] = {}
        total = torch.zeros((), dtype=torch.float64)
        for batch in self._dealt(sequences):
            value, part, current_T = self._loss(batch, algorithm)
            self._engine.backward(value * self.ranks.world, scale_wrt_gas=False)
            total += value.detach().double().cpu()
            if part is not None:
                parts.append(part)
                inspected |= _inspected(batch, part, current_T, set(inspect))
        self._step(lr)
        return self._merged(float(total), parts, inspected)

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
        laid = rows(batch, self._device)
        return model(laid.ids_BT, laid.place_T, laid.target_T, self._spec.rollout.temperature, with_entropy)

    def _step(self, lr: float) -> None:
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        self._engine.step()
        norm = self._engine.get_global_grad_norm()
        self._norm = self._norm if norm is None else float(norm)

    def _merged(self, total: float, parts: list[Loss], inspected: dict[int, dict[str, list[float]]]) -> Update:
        mine = (total, added([part.sums for part in parts]), [part.maxima for part in parts], inspected)
        ranks = self.ranks.gather(mine)
        maxima: dict[str, Tensor] = {}
        for found in (found for _, _, several, _ in ranks for found in several):
            maxima |= {name: torch.maximum(value, maxima.get(name, value)) for name, value in found.items()}
        return Update(
            loss=sum(rank[0] for rank in ranks),
            grad_norm=self._norm,
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
            pieces = logp_T.float().cpu().split([len(s.response_ids) for s in batch])
            mine |= {s.index: piece for s, piece in zip(batch, pieces, strict=True) if s.trained}
        found = {index: piece for rank in self.ranks.gather(mine) for index, piece in rank.items()}
        return [found[index] for index in range(len(found))]

    def _dealt(self, sequences: list[Sequence]) -> list[list[Sequence]]:
        budget = self._spec.optimization.tokens_per_microbatch
        return microbatches(sequences, self.ranks.rank, self.ranks.world, budget)

    def _weights(self) -> list[tuple[str, Tensor]]:
        return list(self._gathered())

    def _gathered(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._model.model.named_parameters():
            if not hasattr(parameter, "ds_id"):
                yield name, parameter.data
                continue
            with self._deepspeed.zero.GatheredParameters([parameter]):
                if self.ranks.rank == 0:
                    yield name, parameter.data.clone()

    def _freeze_reference(self, weights: dict[str, Tensor] | None) -> None:
        model = _load(self._folder, self._spec).to(self._device).requires_grad_(False)
        weights = dict(self._gathered()) if weights is None else weights
        named = dict(model.model.named_parameters())
        for name, value in self.ranks.share(weights if self.ranks.world == 1 else _on_cpu(weights)).items():
            named[name].copy_(value)
        self._reference = model

    def _state(self) -> AdamState:
        return read_state(self._engine, self._model.model, keep=self.ranks.rank == 0)

    def _load_state(self, state: AdamState) -> None:
        write_state(self._engine, self._model.model, state)

    def _fresh_optimizer(self) -> None:
        reset_adam(self._engine)

    def _random_states(self) -> list[Tensor]:
        return self.ranks.gather(torch.get_rng_state())

    def _set_random_states(self, states: list[Tensor]) -> None:
        if self.ranks.rank < len(states):
            torch.set_rng_state(states[self.ranks.rank])

    def _initialize(self) -> Any:
        settings = self._spec.optimization
        optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=0.0, betas=settings.betas, eps=settings.eps, weight_decay=settings.weight_decay
        )
        engine, *_ = self._deepspeed.initialize(
            model=self._model, optimizer=optimizer, config=engine_settings(self._spec), dist_init_required=False
        )
        engine.clip_fp32_gradients = self._clip
        return engine

    def _clip(self) -> None:
        """Clip at ZeRO 0, where DeepSpeed does not tell the norm it found."""
        limit = self._engine.gradient_clipping()
        self._norm = float(torch.nn.utils.clip_grad_norm_(self._model.parameters(), limit))


def engine_settings(spec: RunSpec) -> dict[str, Any]:
    """Leave nothing that changes the mathematics to DeepSpeed's defaults; the caller decides when a step ends."""
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_clipping": spec.optimization.clip_norm or NO_CLIPPING,
        "zero_optimization": {"stage": spec.optimization.zero_stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": spec.model.dtype == "bfloat16"},
        "steps_per_print": 1 << 60,
    }


def _quiet_deepspeed() -> None:
    """Choose the accelerator and skip a C++ build of about 90 s that only makes CPU collectives faster."""
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("DEEPSPEED_LOG_LEVEL", "WARNING")
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def _load(folder: Path, spec: RunSpec) -> ResponseModel:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, spec.model.dtype))
    model.config.use_cache = False
    if spec.optimization.activation_checkpointing:
        model.gradient_checkpointing_enable()
    return ResponseModel(model)


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
        start = end
    return found
