"""A batch as a file holds it: ragged lists, one inner list per response. Shapes: _B per response, _T per token."""

from dataclasses import dataclass
from numbers import Real

import torch
from pydantic import JsonValue
from torch import Tensor

Inputs = dict[str, JsonValue]
COLUMNS = ("logp_new", "logp_old", "logp_behav", "logp_ref", "value_old", "value_new", "entropy")


@dataclass(frozen=True)
class Batch:
    """Everything known of a batch, flat, in float64; NaN where a number was null."""

    group_B: Tensor
    reward_B: Tensor
    correct_B: Tensor
    truncated_B: Tensor
    length_B: Tensor
    row_B: Tensor
    mask_T: Tensor
    columns: dict[str, Tensor]
    inputs: Inputs

    @property
    def response_T(self) -> Tensor:
        return torch.repeat_interleave(torch.arange(len(self.row_B)), self.row_B)

    def rows(self, value_T: Tensor) -> list[JsonValue]:
        """Cut a flat array into the file's rows; what is not a number becomes null."""
        return [[_json(number) for number in row.tolist()] for row in value_T.split(self.row_B.tolist())]


def read(inputs: Inputs, correct_threshold: float) -> Batch:
    """Read `inputs`; raises ValueError with a sentence where lists do not fit together."""
    group_B = _labels(inputs)
    num = len(group_B)
    reward_B = torch.tensor(_of_length(_column(inputs, "reward"), num, "reward"), dtype=torch.float64)
    mask = inputs.get("response_mask", [[] for _ in range(num)])
    row_B = torch.tensor([len(row) for row in _rows(mask, "response_mask", num)], dtype=torch.int64)
    mask_T = _flat(mask, "response_mask", row_B).nan_to_num(0.0) != 0
    response_T = torch.repeat_interleave(torch.arange(num), row_B)
    length_B = torch.zeros(num, dtype=torch.int64).index_add(0, response_T, mask_T.long())
    names = [name for name in COLUMNS if name in inputs]
    return Batch(
        group_B=group_B,
        reward_B=reward_B,
        correct_B=_flags(inputs, "correct", reward_B >= correct_threshold),
        truncated_B=_flags(inputs, "truncated", torch.zeros(num, dtype=torch.bool)),
        length_B=_lengths(inputs, length_B, row_B),
        row_B=row_B,
        mask_T=mask_T,
        columns={name: _flat(inputs[name], name, row_B) for name in names},
        inputs=inputs,
    )


def _lengths(inputs: Inputs, counted_B: Tensor, row_B: Tensor) -> Tensor:
    """Trained tokens: as counted; where no token is listed, as `inputs.length` says; bare rewards have one each."""
    if "length" in inputs:
        stated = _of_length(_column(inputs, "length"), len(row_B), "length")
        if not all(value.is_integer() and value >= 0 for value in stated):
            raise ValueError("inputs.length must hold whole numbers, the trained tokens of each response.")
        return torch.where(row_B > 0, counted_B, torch.tensor(stated, dtype=torch.int64))
    return counted_B if "response_mask" in inputs else torch.ones_like(counted_B)


def _json(number: float | int | bool) -> float | int | None:
    value = int(number) if isinstance(number, bool) else number
    return value if value - value == 0 else None


def _labels(inputs: Inputs) -> Tensor:
    labels = _column(inputs, "group")
    if not all(label.is_integer() for label in labels):
        raise ValueError("inputs.group must hold whole numbers, the prompt of each response.")
    return torch.tensor(labels, dtype=torch.int64)


def _column(inputs: Inputs, name: str) -> list[float]:
    values = inputs.get(name)
    if not isinstance(values, list):
        raise ValueError(f"inputs.{name} is missing; give one value per response.")
    return [_number(value, f"inputs.{name}[{index}]") for index, value in enumerate(values)]


def _number(value: object, place: str) -> float:
    if value is None:
        return float("nan")
    if not isinstance(value, Real):
        raise ValueError(f"{place} is {value!r}; it must be a number or null.")
    return float(value)


def _of_length(values: list[float], num: int, name: str) -> list[float]:
    if len(values) != num:
        raise ValueError(f"inputs.{name} holds {len(values)} values for {num} responses; give one per response.")
    return values


def _rows(rows: JsonValue, name: str, num: int) -> list[list[JsonValue]]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ValueError(f"inputs.{name} must be a list of lists, one per response.")
    if len(rows) != num:
        raise ValueError(f"inputs.{name} holds {len(rows)} rows for {num} responses; give one per response.")
    return [row for row in rows if isinstance(row, list)]


def _flat(rows: JsonValue, name: str, row_B: Tensor) -> Tensor:
    lists = _rows(rows, name, len(row_B))
    for index, (row, length) in enumerate(zip(lists, row_B.tolist(), strict=True)):
        if len(row) != length:
            raise ValueError(f"inputs.{name}[{index}] holds {len(row)} values and response_mask {length}.")
    numbers = [_number(value, f"inputs.{name}[{index}]") for index, row in enumerate(lists) for value in row]
    return torch.tensor(numbers, dtype=torch.float64)


def _flags(inputs: Inputs, name: str, otherwise: Tensor) -> Tensor:
    if name not in inputs:
        return otherwise
    values = _of_length(_column(inputs, name), len(otherwise), name)
    return torch.tensor([value == 1 for value in values], dtype=torch.bool)
