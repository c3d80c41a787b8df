"""Float32 parameters and Adam moments of a DeepSpeed engine by Hugging Face name, for any ZeRO stage and any ranks."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class AdamState:
    """What a run's optimizer knows, whole and independent of how ranks share it."""

    parameters: dict[str, Tensor] = field(default_factory=dict)
    moments: dict[str, dict[str, Tensor]] = field(default_factory=lambda: {name: {} for name in MOMENTS})
    steps: int = 0


def reset_adam(engine: Any) -> None:
    """Set all moments and the step count to zero, creating them where they are not there yet."""
    inner = _inner(engine)
    for tensor in _optimized(engine):
        zeros = {moment: torch.zeros_like(tensor.data) for moment in MOMENTS}
        inner.state[tensor] = {"step": torch.zeros(()), **zeros}
    relink = getattr(engine.optimizer, "_lazy_init_hp_params_optimizer_state", None)
    if relink is not None:  # ZeRO 1 and 2 keep views of the moments
        engine.optimizer._hp_optimizer_states_linked = False
        relink()


def read_state(engine: Any, model: nn.Module, *, keep: bool) -> AdamState:
    """Collect the state on the CPU; all ranks call, those with `keep` get it."""
    found = AdamState(steps=_steps(engine))
    for name, parameter in model.named_parameters():
        value = _full_parameter(parameter)
        moments = {moment: _full_moment(engine, parameter, moment) for moment in MOMENTS}
        if keep:
            found.parameters[name] = value.detach().float().cpu().clone()
            for moment, tensor in moments.items():
                found.moments[moment][name] = tensor.detach().float().cpu().clone()
    return found


def write_state(engine: Any, model: nn.Module, state: AdamState) -> None:
    """Put a whole state back; every rank has it and keeps its share."""
    for name, parameter in model.named_parameters():
        _set(engine, parameter, state.parameters[name], {m: state.moments[m][name] for m in MOMENTS})
    for values in _inner(engine).state.values():
        values["step"].fill_(float(state.steps))


def _optimized(engine: Any) -> list[Tensor]:
    """Return the tensors that the torch optimizer inside steps: flat partitions with ZeRO, parameters without."""
    for attribute in ("fp32_partitioned_groups_flat", "single_partition_of_fp32_groups", "fp32_groups_flat_partition"):
        if hasattr(engine.optimizer, attribute):
            return list(getattr(engine.optimizer, attribute))
    return [parameter for group in engine.optimizer.param_groups for parameter in group["params"]]


def _inner(engine: Any) -> torch.optim.Optimizer:
    """Return the torch optimizer inside whatever ZeRO wraps around it."""
    return getattr(engine.optimizer, "optimizer", engine.optimizer)


def _steps(engine: Any) -> int:
    return max(int(state["step"]) for state in _inner(engine).state.values())


def _is_shared(parameter: Tensor) -> bool:
    return hasattr(parameter, "ds_id") or hasattr(parameter, "_hp_mapping")


def _full_parameter(parameter: Tensor) -> Tensor:
    from deepspeed.utils import safe_get_full_fp32_param

    return safe_get_full_fp32_param(parameter) if _is_shared(parameter) else parameter


def _full_moment(engine: Any, parameter: Tensor, moment: str) -> Tensor:
    from deepspeed.utils import safe_get_full_optimizer_state

    if _is_shared(parameter):
        return safe_get_full_optimizer_state(parameter, moment)
    return _inner(engine).state[parameter][moment]


@torch.no_grad()
def _set(engine: Any, parameter: Tensor, value: Tensor, moments: dict[str, Tensor]) -> None:
    if hasattr(parameter, "ds_id"):
        _set_partition(parameter, value, moments)
        return
    parameter.data.copy_(value)
    if hasattr(parameter, "_hp_mapping"):
        _set_fragments(parameter, value, moments)
        return
    for name, tensor in moments.items():
        _inner(engine).state[parameter][name].copy_(tensor)


def _set_fragments(parameter: Tensor, value: Tensor, moments: dict[str, Tensor]) -> None:
    """ZeRO 1 and 2: each rank takes the part of the float32 copy and of the moments that it owns."""
    from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

    safe_set_full_fp32_param(parameter, value.to(parameter.device))
    for name, tensor in moments.items():
        safe_set_full_optimizer_state(parameter, tensor.to(parameter.device), name)


def _set_partition(parameter: Any, value: Tensor, moments: dict[str, Tensor]) -> None:
    """ZeRO 3: each rank takes its slice of the padded flat tensor, for the model and for the optimizer."""
    from deepspeed.utils import safe_set_local_fp32_param, safe_set_local_optimizer_state

    mine = _slice(parameter, value)
    parameter.ds_tensor.data.copy_(mine)
    if parameter.data.shape == value.shape:  # DeepSpeed keeps small parameters whole between uses
        parameter.data.copy_(value)
    safe_set_local_fp32_param(parameter, mine)
    for name, tensor in moments.items():
        safe_set_local_optimizer_state(parameter, _slice(parameter, tensor), name)


def _slice(parameter: Any, value: Tensor) -> Tensor:
    rank = torch.distributed.get_rank()
    size = parameter.ds_tensor.numel()
    flat = torch.zeros(size * torch.distributed.get_world_size(), dtype=value.dtype)
    flat[: value.numel()] = value.flatten()
    return flat[rank * size : (rank + 1) * size].to(parameter.ds_tensor.device)
