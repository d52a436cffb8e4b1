"""The Q-network: an MLP with two hidden layers (P 2.4.2, sizes of the authors' code)."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from tres_scrapy.frontier.feature import FEATURES

LEAK = 0.1


class QNetwork(nn.Sequential):
    """Maps x(s, a) [n, 8] to Q [n, 1]; its initial weights come from `generator`."""

    def __init__(self, hidden: tuple[int, int], generator: torch.Generator) -> None:
        sizes = (len(FEATURES), *hidden, 1)
        layers: list[nn.Module] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [_linear(fan_in, fan_out, generator), nn.LeakyReLU(LEAK)]
        super().__init__(*layers[:-1])  # the output is linear


def _linear(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(fan_in, fan_out)
    nn.init.kaiming_uniform_(layer.weight, a=LEAK, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
