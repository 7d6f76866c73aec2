"""A network without idle weights is the same function, and learns the same."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from galaxy_al.models.networks.compact import compact, put_back, windows_of
from galaxy_al.models.networks.resnet import ResNet18

pytestmark = pytest.mark.torch


class OneConvolution(nn.Module):
    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, kernel, stride, padding)

    def embed(self, images):
        return self.conv(images)


@settings(deadline=None)
@given(
    size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    padding=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_any_convolution_stays_the_same_function(size, kernel, stride, padding, seed):
    if min(size) + 2 * padding < kernel:
        return
    torch.manual_seed(seed)
    network = OneConvolution(kernel, stride, padding)
    windows = windows_of(network, size)
    smaller, images = compact(network, windows), torch.randn(2, 3, *size)
    expected = network.embed(images)
    torch.testing.assert_close(smaller.embed(images), expected)
    # A weight has an effect or not: ask the gradient.
    expected.square().sum().backward()
    reached = network.conv.weight.grad.abs().sum(dim=(0, 1)) > 0
    for rows, columns in windows.values():
        assert not reached[[i for i in range(kernel) if i not in range(kernel)[rows]]].any()
        assert not reached[:, [i for i in range(kernel) if i not in range(kernel)[columns]]].any()
        assert smaller.conv.weight.numel() < network.conv.weight.numel()


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (17, 40), (64, 64), (96, 96)])
def test_a_resnet_stays_the_same_function_and_gets_back_what_was_learned(size):
    torch.manual_seed(0)
    network = ResNet18(3)
    windows = windows_of(network, size)
    assert bool(windows) == (min(size) < 64)
    smaller, images = compact(network, windows), torch.randn(4, 3, *size)
    kept = copy.deepcopy(network.state_dict())
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in smaller.parameters():
            parameter.mul_(float(rng.uniform(0.9, 1.1)))
    put_back(smaller, network, windows)
    torch.testing.assert_close(network.eval()(images), smaller.eval()(images))
    for name, (rows, columns) in windows.items():
        idle = torch.ones_like(kept[name], dtype=torch.bool)
        idle[:, :, rows, columns] = False
        assert torch.equal(network.state_dict()[name][idle], kept[name][idle])


def test_steps_without_the_idle_weights_are_the_steps_of_the_whole_network():
    """The reference: the paper's loss, weight decay in it, on all weights, by a plain Adam."""
    torch.manual_seed(0)
    images, targets = torch.randn(8, 3, 32, 32), torch.tensor([0, 0, 1, 1, 1, 1, 1, 1])
    whole = ResNet18(2)
    windows = windows_of(whole, (32, 32))
    smaller = compact(whole, windows)
    plain = torch.optim.Adam(whole.parameters(), lr=1e-4)
    fast = torch.optim.Adam(smaller.parameters(), lr=1e-4, weight_decay=5e-2, fused=True)
    weight = torch.tensor([1 / 2, 1 / 6])
    for _ in range(3):
        plain.zero_grad()
        penalty = sum(parameter.square().sum() for parameter in whole.parameters())
        loss = functional.cross_entropy(whole(images), targets, weight) + 5e-2 / 2 * penalty
        loss.backward()
        plain.step()
        fast.zero_grad()
        functional.cross_entropy(smaller(images), targets, weight).backward()
        fast.step()
    found, expected = smaller.eval()(images), whole.eval()(images)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)
    before = compact(ResNet18(2), windows).eval()(images)
    assert (before - expected).abs().max() > 0.05
