"""The forms of a network for training and for scoring are the same function as the network."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from galaxy_al.models.networks.dense import DenseConvolution, make_dense
from galaxy_al.models.networks.fast_forms import for_scoring, for_training
from galaxy_al.models.networks.resnet import ResNet18

pytestmark = pytest.mark.torch


@settings(deadline=None)
@given(
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    has_bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_matrix_is_any_convolution_and_has_its_gradients(
    size, kernel, stride, padding, has_bias, seed
):
    if any(n + 2 * p < k for n, p, k in zip(size, padding, kernel)):
        return
    torch.manual_seed(seed)
    conv = nn.Conv2d(3, 4, kernel, stride, padding, bias=has_bias).double()
    dense = DenseConvolution(copy.deepcopy(conv), size)
    images = [torch.randn(2, 3, *size, dtype=torch.float64, requires_grad=True) for _ in range(1)]
    images.append(images[0].detach().clone().requires_grad_())
    found = dense(images[0]), conv(images[1])
    torch.testing.assert_close(*found)
    for outputs in found:
        outputs.sin().sum().backward()
    torch.testing.assert_close(images[0].grad, images[1].grad)
    torch.testing.assert_close(dense.weight.grad, conv.weight.grad)


def learned_resnet(n_classes):
    """A ResNet whose batch norms are not the identity."""
    torch.manual_seed(0)
    network = ResNet18(n_classes)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.weight.data, module.running_var):
                values.uniform_(0.5, 2)
            for values in (module.bias.data, module.running_mean):
                values.uniform_(-0.3, 0.3)
    return network


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (17, 40), (64, 64), (96, 96)])
def test_a_resnet_scores_the_same_in_the_form_for_scoring(size):
    network, images = learned_resnet(3).eval(), torch.randn(4, 3, *size)
    before = copy.deepcopy(network.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(for_scoring(network, size)(images), network(images))
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("size", [(32, 32), (17, 40), (64, 64)])
def test_a_resnet_has_the_same_gradients_in_the_form_for_training(size):
    network, images = learned_resnet(2).double(), torch.randn(6, 3, *size, dtype=torch.float64)
    network.eval()  # with batches this small, statistics of a batch would magnify rounding
    fast, windows = for_training(network, size)
    for one in (network, fast):
        one(images).square().sum().backward()
    for name, parameter in fast.named_parameters():
        rows, columns = windows.get(name, (slice(None), slice(None)))
        whole = network.get_parameter(name).grad
        expected = whole[:, :, rows, columns] if name in windows else whole
        torch.testing.assert_close(parameter.grad, expected)


def test_images_of_32_by_32_have_matrices_in_the_last_two_layers_only():
    network = ResNet18(2)
    make_dense(network, (32, 32))
    found = {name for name, part in network.named_modules() if isinstance(part, DenseConvolution)}
    assert {name.split(".")[0] for name in found} == {"layer3", "layer4"}
    assert len(found) == 3 + 4
