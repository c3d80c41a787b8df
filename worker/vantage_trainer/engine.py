"""A module in a DeepSpeed engine: gradients summed exactly over micro-batches and ranks.

Only this file and engine_state, which reads what DeepSpeed holds, import deepspeed.
"""

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from vantage_trainer.engine_state import AdamState, read_state, reset_adam, write_state
from vantage_trainer.spec import RunSpec

# DeepSpeed measures the gradient's norm only when it clips, and clips at 1.0 when told nothing.
NO_CLIPPING = 1e30


class Engine:
    """Forward, backward and Adam for one module; `named` is the part of it whose names checkpoints use."""

    def __init__(self, module: nn.Module, named: nn.Module, spec: RunSpec) -> None:
        begin_distributed()
        import deepspeed

        self._deepspeed = deepspeed
        self._module, self._named = module, named
        self._norm = 0.0
        self.num_parameters = sum(parameter.numel() for parameter in module.parameters())
        self._engine = self._initialize(spec)
        self.device: torch.device = self._engine.device
        reset_adam(self._engine)

    def __call__(self, *arguments: Any) -> Any:
        return self._engine(*arguments)

    def backward(self, contribution: Tensor) -> None:
        """Add one micro-batch's gradient; DeepSpeed divides by the ranks, which is undone here."""
        self._engine.backward(contribution * torch.distributed.get_world_size(), scale_wrt_gas=False)

    def step(self, lr: float) -> float:
        """Let Adam step on what was added up; returns the gradient's norm before clipping."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        self._engine.step()
        norm = self._engine.get_global_grad_norm()
        self._norm = self._norm if norm is None else float(norm)
        return self._norm

    def gathered(self, *, keep: bool) -> Iterator[tuple[str, Tensor]]:
        """Go through all parameters by name; all ranks call, those with `keep` get them whole."""
        for name, parameter in self._named.named_parameters():
            if not hasattr(parameter, "ds_id"):
                yield name, parameter.data
                continue
            with self._deepspeed.zero.GatheredParameters([parameter]):
                if keep:
                    yield name, parameter.data.clone()

    def state(self, *, keep: bool) -> AdamState:
        return read_state(self._engine, self._named, keep=keep)

    def load_state(self, state: AdamState) -> None:
        write_state(self._engine, self._named, state)

    def fresh_optimizer(self) -> None:
        reset_adam(self._engine)

    def _initialize(self, spec: RunSpec) -> Any:
        settings = spec.optimization
        optimizer = torch.optim.AdamW(
            self._module.parameters(),
            lr=0.0,
            betas=settings.betas,
            eps=settings.eps,
            weight_decay=settings.weight_decay,
        )
        engine, *_ = self._deepspeed.initialize(
            model=self._module, optimizer=optimizer, config=engine_settings(spec), dist_init_required=False
        )
        engine.clip_fp32_gradients = self._clip
        return engine

    def _clip(self) -> None:
        """Clip at ZeRO 0, where DeepSpeed does not tell the norm it found."""
        limit = self._engine.gradient_clipping()
        self._norm = float(torch.nn.utils.clip_grad_norm_(self._module.parameters(), limit))


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


def begin_distributed() -> None:
    """Let the ranks of this run find each other, once; several engines share them."""
    if torch.distributed.is_initialized():
        return
    _quiet_deepspeed()
    import deepspeed

    deepspeed.init_distributed(dist_backend="nccl" if torch.cuda.is_available() else "gloo", verbose=False)


def _quiet_deepspeed() -> None:
    """Choose the accelerator and skip a C++ build of about 90 s that only makes CPU collectives faster."""
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("DEEPSPEED_LOG_LEVEL", "WARNING")
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
