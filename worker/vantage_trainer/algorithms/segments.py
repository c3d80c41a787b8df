"""Sums over the responses of a group or the tokens of a response, given back to each member.

Shapes: _B one value per response, _T one per token; an index is dense, 0 .. number of segments - 1.
"""

import torch
from torch import Tensor


def dense(label_B: Tensor) -> Tensor:
    """Turn arbitrary integer labels into a dense index."""
    return torch.unique(label_B, return_inverse=True)[1]


def total(value_B: Tensor, index_B: Tensor) -> Tensor:
    """Sum of the member's segment; differentiable."""
    return torch.zeros_like(value_B).index_add(0, index_B, value_B)[index_B]


def largest(value_B: Tensor, index_B: Tensor) -> Tensor:
    """Largest value of the member's segment."""
    empty_B = torch.full_like(value_B, -torch.inf)
    return empty_B.scatter_reduce(0, index_B, value_B, "amax")[index_B]
