"""The training loop against the objective minimised naively, and what models promise."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from galaxy_al import GalaxyError
from galaxy_al.models.networks import resnet
from galaxy_al.models.networks.devices import has_fast_bfloat16
from galaxy_al.models.networks.network import FLOOR
from galaxy_al.models.networks.resnet import ResNet18, read_weights
from galaxy_al.models.networks.training import RECIPES, Trainer
from support.quick_networks import QUICK, every_network, items_for, some_labels, trained

NETWORKS = ("linear", "mlp", "resnet18")


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_a_linear_head_minimises_the_weighted_cross_entropy(scale):
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 200, p=[0.1, 0.2, 0.7])
    embeddings = rng.normal(size=(200, 4)) + np.eye(3, 4)[truth]
    unit = embeddings / np.sqrt((embeddings**2).mean())
    weight = 1 / np.bincount(truth)[truth]

    def objective(parameters):
        table = parameters.reshape(3, 5)
        proba = softmax(unit @ table[:, :4].T + table[:, 4])
        loss = -(weight * np.log(proba[np.arange(200), truth])).sum() / weight.sum()
        return loss + 5e-5 / 2 * (parameters**2).sum()

    best = minimize(objective, np.zeros(15), method="BFGS").x.reshape(3, 5)
    expected = softmax(unit @ best[:, :4].T + best[:, 4])
    shown = (scale * embeddings).astype(np.float32)
    model = Trainer("linear", n_classes=3).fit(shown, dict(enumerate(truth.tolist())))
    np.testing.assert_allclose(model.balanced(shown), expected, atol=0.01)
    in_pool = expected * np.bincount(truth)
    in_pool /= in_pool.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.proba(shown), in_pool, atol=0.01)


def test_repeating_all_examples_of_a_class_changes_no_balanced_probability():
    items = items_for("linear", 30)
    labels = dict(enumerate([0] * 5 + [1] * 25))
    once = Trainer("linear", n_classes=2).fit(items, labels).balanced(items)
    more = np.concatenate([items, *[items[:5]] * 4])
    repeated = labels | {30 + i: 0 for i in range(20)}
    again = Trainer("linear", n_classes=2).fit(more, repeated).balanced(items)
    # The scale to which inputs are brought depends on the examples, and so a little does the rest.
    np.testing.assert_allclose(again, once, atol=0.02)


@every_network
def test_the_last_layer_and_its_inputs_give_the_scores(network):
    items = items_for(network)
    model = trained(network, items, some_labels())
    snapshot = model.snapshot(items)
    weights, bias = snapshot.head
    assert weights.shape == (3, snapshot.embeddings.shape[1])
    expected = softmax(snapshot.embeddings @ weights.T + bias)
    np.testing.assert_allclose(snapshot.balanced, expected, atol=1e-4)
    np.testing.assert_allclose(model.balanced(items), snapshot.balanced, atol=1e-5)
    np.testing.assert_allclose(model.proba(items), snapshot.proba, atol=1e-5)


@every_network
def test_a_class_without_labels_gets_the_floor(network):
    items = items_for(network)
    labels = {i: y for i, y in some_labels(4).items() if y in (0, 2)}
    model = trained(network, items, labels, n_classes=4)
    balanced, snapshot = model.balanced(items), model.snapshot(items)
    np.testing.assert_allclose(balanced[:, [1, 3]], FLOOR)
    np.testing.assert_allclose(snapshot.balanced[:, [1, 3]], FLOOR, rtol=1e-5)
    assert (snapshot.proba[:, [1, 3]] <= FLOOR).all()
    for view in (balanced, snapshot.balanced, snapshot.proba):
        np.testing.assert_allclose(view.sum(axis=1), 1, atol=1e-5)


@every_network
def test_probabilities_in_the_pool_are_the_balanced_ones_times_the_shares_of_the_labels(network):
    items = items_for(network)
    labels = dict(enumerate([0] * 3 + [1] * 5 + [2] * 16))
    model = trained(network, items, labels)
    expected = model.balanced(items).astype(np.float64) * [3, 5, 16]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.proba(items), expected, atol=1e-6)
    snapshot = model.snapshot(items)
    np.testing.assert_allclose(snapshot.class_priors, [3 / 24, 5 / 24, 16 / 24])
    np.testing.assert_allclose(snapshot.balanced, model.balanced(items), atol=1e-6)


@every_network
@pytest.mark.parametrize("labels", [{}, {3: 1}, {3: 1, 4: 1}])
def test_while_one_class_is_known_all_are_equally_likely(network, labels):
    items = items_for(network)
    model = trained(network, items, labels)
    snapshot = model.snapshot(items)
    for view in (model.proba(items), model.balanced(items), snapshot.proba, snapshot.balanced):
        np.testing.assert_allclose(view, 1 / 3)
    weights, bias = snapshot.head
    assert not weights.any()
    assert not bias.any()


@every_network
def test_the_same_seed_gives_the_same_network_and_the_global_generator_is_left_alone(network):
    items, labels = items_for(network), some_labels()
    before = torch.get_rng_state()
    first = trained(network, items, labels).proba(items)
    np.testing.assert_array_equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(trained(network, items, labels).proba(items), first)
    if network != "linear":  # which is convex, and begins at 0
        other = trained(network, items, labels, seed=1).proba(items)
        assert not np.array_equal(other, first)


@every_network
def test_it_learns(network):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    if network == "resnet18":
        items = np.zeros((60, 32, 32, 3), dtype=np.uint8)
        items[np.arange(60), :, :, truth] = 200
        items += rng.integers(0, 50, size=items.shape, dtype=np.uint8)
        recipe = replace(RECIPES["resnet18"], epochs=8, batch_size=20, rate=1e-3)
    else:
        items = (rng.normal(size=(60, 4)) * 0.3 + np.eye(3, 4)[truth]).astype(np.float32)
        recipe = None
    model = Trainer(network, n_classes=3, recipe=recipe).fit(items, dict(enumerate(truth)))
    assert (model.proba(items).argmax(axis=1) == truth).mean() > 0.95


def test_training_stops_early_only_if_asked(monkeypatch):
    from galaxy_al.models.networks import training as train

    items, labels = items_for("mlp"), some_labels()
    epochs = []
    batches = train._batches

    def counted(*arguments):
        epochs.append(1)
        return batches(*arguments)

    monkeypatch.setattr(train, "_batches", counted)
    recipe = replace(RECIPES["mlp"], epochs=60)
    Trainer("mlp", n_classes=3, recipe=recipe).fit(items, labels)
    assert len(epochs) == 60
    epochs.clear()
    Trainer("mlp", n_classes=3, recipe=replace(recipe, stop_below=0.9)).fit(items, labels)
    assert 1 < len(epochs) < 60


@pytest.mark.parametrize("kind", ["memory map", "float64", "float16", "Fortran", "reversed"])
def test_any_table_of_floats_is_scored_where_it_lies(kind, tmp_path):
    items = items_for("linear", 50)
    model = Trainer("linear", n_classes=3).fit(items, some_labels())
    expected = model.proba(items)
    if kind == "memory map":
        np.save(tmp_path / "a.npy", items)
        shown = np.load(tmp_path / "a.npy", mmap_mode="r")
    elif kind == "reversed":
        shown, expected = items[::-1], expected[::-1]
    else:
        shown = np.asfortranarray(items) if kind == "Fortran" else items.astype(kind)
    np.testing.assert_allclose(model.proba(shown), expected, atol=2e-3)


def test_a_pool_of_many_blocks_is_scored_like_one(monkeypatch):
    from galaxy_al.models.networks import network as module

    items = items_for("mlp", 101)
    model = trained("mlp", items, some_labels())
    expected = model.proba(items)
    monkeypatch.setitem(module._ROWS_AT_ONCE, "mlp", 10)
    np.testing.assert_allclose(model.proba(items), expected, atol=1e-6)


def test_a_class_for_each_example_is_the_same_as_classes_by_index():
    items, labels = items_for("linear"), some_labels()
    every = np.full(len(items), -1)
    every[list(labels)] = list(labels.values())
    trainer = Trainer(n_classes=3)
    np.testing.assert_array_equal(
        trainer.fit(items, every).proba(items), trainer.fit(items, labels).proba(items)
    )


def test_no_batch_of_the_network_has_one_image_only():
    recipe = replace(QUICK["resnet18"], epochs=1, batch_size=10)
    trainer = Trainer("resnet18", n_classes=3, recipe=recipe)
    trainer.fit(items_for("resnet18"), {i: i % 3 for i in range(21)})


@pytest.mark.parametrize("kind", ["int32", ">f4", "longdouble"])
def test_tables_of_other_numbers_are_taken_too(kind):
    items = np.round(items_for("linear") * 9)
    model = Trainer(n_classes=3).fit(items, some_labels())
    other = Trainer(n_classes=3).fit(items.astype(kind), some_labels())
    np.testing.assert_allclose(other.proba(items.astype(kind)), model.proba(items), atol=1e-5)


def test_what_cannot_be_scored_is_named_and_nothing_is_ever_nan():
    items = items_for("linear")
    model = Trainer(n_classes=3).fit(items, some_labels())
    items[33, 2] = np.inf
    with pytest.raises(ValueError, match="Example 33 cannot be scored"):
        model.proba(items)
    with pytest.raises(GalaxyError, match="a weight is not finite"):
        Trainer(n_classes=3).fit(items_for("linear") * np.float32(1e-40), some_labels())


def test_a_head_refuses_images_before_it_reads_them(tmp_path):
    from galaxy_al.data import Pool

    class Unread:
        def __len__(self):
            return 1

        def __getitem__(self, index):
            raise AssertionError("it was read")

    with pytest.raises(ValueError, match="linear takes embeddings, got images"):
        Trainer(n_classes=2).fit(Pool(["a"], "images", Unread()), {})


def test_training_that_diverges_is_an_error():
    items = items_for("mlp")
    recipe = replace(RECIPES["mlp"], rate=1e30)
    with pytest.raises(GalaxyError, match="Training diverged"):
        Trainer("mlp", n_classes=3, recipe=recipe).fit(items, some_labels())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Trainer("lienar", n_classes=2), "Unknown network 'lienar'. Choose from: linear"),
        (lambda: Trainer(n_classes=1), "n_classes must be at least 2, got 1"),
        (lambda: Trainer("mlp", n_classes=2, weights="x.pth"), "weights are for resnet18"),
        (
            lambda: Trainer(n_classes=2).fit(np.zeros((3, 2), dtype=str), {}),
            "linear takes an N x d table of numbers",
        ),
        (
            lambda: Trainer("resnet18", n_classes=2).fit(np.zeros((3, 2)), {}),
            "resnet18 takes N x H x W x 3 bytes",
        ),
        (lambda: Trainer(n_classes=2).fit(np.eye(3), {0: 2}), "labels must be classes 0 to 1"),
        (lambda: Trainer(n_classes=2).fit(np.eye(3), {0: 0.9, 1: 1}), "got 0.9 for 0"),
        (
            lambda: Trainer("resnet18", n_classes=2).fit(np.zeros((2, 0, 4, 3), np.uint8), {}),
            r"takes N x H x W x 3 bytes, got shape \(2, 0, 4, 3\)",
        ),
        (lambda: Trainer("linear", n_classes=2, precision="bfloat16"), "precision is for resnet18"),
        (
            lambda: Trainer("resnet18", n_classes=2, precision="half"),
            "float32, bfloat16, fastest, got 'half'",
        ),
        (lambda: Trainer(n_classes=2).fit(np.eye(3), {-1: 0}), "by index, 0 to 2, got -1"),
        (lambda: Trainer(n_classes=2).fit(np.eye(3), {3: 0}), "by index, 0 to 2, got 3"),
        (lambda: Trainer(n_classes=2).fit(np.eye(3), [0, 1]), "a class for each of 3 examples"),
        (
            lambda: Trainer(n_classes=2).fit(np.diag([1, np.nan, 1]), {0: 0, 1: 1}),
            "Example 1 is not finite",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_resnet_is_torchvisions_by_name_and_size():
    state = ResNet18(1000).state_dict()
    parameters = sum(p.numel() for p in ResNet18(1000).parameters())
    assert parameters == 11_689_512  # as torchvision's documentation has it
    assert len(state) == 122
    assert state["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert state["layer4.1.bn2.running_var"].shape == (512,)
    assert state["fc.weight"].shape == (1000, 512)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_imagenet_weights_are_the_beginning_and_the_last_layer_is_new(tmp_path, suffix):
    torch.manual_seed(7)
    state = ResNet18(1000).state_dict()
    path = tmp_path / f"resnet18{suffix}"
    if suffix == ".pth":
        torch.save(state, path)
    else:
        from safetensors.torch import save_file

        save_file(state, path)
    trainer = Trainer("resnet18", n_classes=3, weights=path)
    network = trainer.fit(items_for("resnet18", 4), {}).network
    assert torch.equal(network.layer3[0].conv1.weight, state["layer3.0.conv1.weight"])
    assert network.fc.weight.shape == (3, 512)


def test_imagenet_weights_are_taken_from_the_data_folder_and_their_sum_is_compared(
    tmp_path, monkeypatch
):
    from safetensors.torch import save_file

    torch.manual_seed(7)
    state = ResNet18(1000).state_dict()
    path = tmp_path / "resnet18-imagenet.safetensors"
    save_file(state, path)
    monkeypatch.setenv("GALAXY_AL_DATA", str(tmp_path))
    with pytest.raises(GalaxyError, match=r"resnet18-imagenet.safetensors is not the file it"):
        read_weights("imagenet")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(resnet, "OWN_IMAGENET_SHA256", found)
    assert torch.equal(read_weights("imagenet")["fc.bias"], state["fc.bias"])


def test_files_that_are_no_weights_of_a_resnet_are_refused(tmp_path):
    path = tmp_path / "resnet18-0123abcd.pth"
    torch.save(ResNet18(2).state_dict(), path)
    with pytest.raises(GalaxyError, match=r"its SHA256 sum is .*, not 0123abcd"):
        Trainer("resnet18", n_classes=2, weights=path)
    other = tmp_path / "other.pth"
    torch.save({"layer1.0.conv1.weight": torch.zeros(2)}, other)
    trainer = Trainer("resnet18", n_classes=2, weights=other)
    with pytest.raises(GalaxyError, match=r"not the weights of a ResNet-18: layer1.0.conv1"):
        trainer.fit(items_for("resnet18", 4), {})
    torch.save([torch.zeros(2)], other)
    with pytest.raises(GalaxyError, match="does not hold tensors by name only"):
        Trainer("resnet18", n_classes=2, weights=other)
    dated = tmp_path / "resnet18-20240115.pth"  # which is a date, and no checksum
    torch.save(ResNet18(2).state_dict(), dated)
    Trainer("resnet18", n_classes=2, weights=dated)
    torch.save(print, other)
    with pytest.raises(GalaxyError, match="Cannot read weights from"):
        Trainer("resnet18", n_classes=2, weights=other)
    with pytest.raises(GalaxyError, match=r"There is no .*missing.pth"):
        Trainer("resnet18", n_classes=2, weights=tmp_path / "missing.pth")


def test_weights_come_from_a_url_once_and_its_sum_is_compared(server, monkeypatch, tmp_path):
    monkeypatch.setenv("GALAXY_AL_HOME", str(tmp_path / "home"))
    torch.manual_seed(0)
    state = ResNet18(2).state_dict()
    torch.save(state, tmp_path / "weights.pth")
    server["content"] = (tmp_path / "weights.pth").read_bytes()
    found = hashlib.sha256(server["content"]).hexdigest()
    url = f"{server['url']}/resnet18-{found[:8]}.pth"
    for _ in range(2):
        read = read_weights(url)
        assert torch.equal(read["conv1.weight"], state["conv1.weight"])
    assert len(server["ranges"]) == 1
    read_weights(f"{server['url']}/other.pth#sha256={found}")
    assert len(server["ranges"]) == 2
    read_weights(f"{server['url']}/other.pth?download=true#sha256={found.upper()}")
    assert len(server["ranges"]) == 2
    with pytest.raises(GalaxyError, match=r"other.pth was not kept: .*not the file it should be"):
        read_weights(f"{server['url']}/other.pth#sha256={found[::-1]}")
    with pytest.raises(GalaxyError, match=r"plain.pth needs a checksum: add #sha256="):
        read_weights(f"{server['url']}/plain.pth")


def test_the_resnet_takes_image_files_of_any_size(tmp_path):
    from PIL import Image

    from galaxy_al.data import load_pool
    from galaxy_al.errors import UnreadableImage

    colors = [(250, 10, 10), (10, 250, 10)]
    for i in range(12):
        Image.new("RGB", (20 + i, 40 - i), colors[i % 2]).save(tmp_path / f"{i:02d}.png")
    pool = load_pool(tmp_path)
    recipe = replace(RECIPES["resnet18"], epochs=8, rate=1e-3)
    trainer = Trainer("resnet18", n_classes=2, image_size=(24, 32), recipe=recipe)
    model = trainer.fit(pool, {i: i % 2 for i in range(6)})
    assert model.shape.image_size == (24, 32)
    plain = np.array([[[color] * 32] * 24 for color in colors * 6], dtype=np.uint8)
    np.testing.assert_allclose(model.proba(pool), model.proba(plain), atol=1e-6)
    assert (model.proba(pool).argmax(axis=1) == np.arange(12) % 2).all()
    (tmp_path / "03.png").write_bytes(b"no image")
    with pytest.raises(UnreadableImage, match=r"Cannot read .*03.png as an image"):
        model.proba(load_pool(tmp_path))
    by_default = Trainer("resnet18", n_classes=2).fit(pool, {})
    assert by_default.shape.image_size == (224, 224)


def test_bfloat16_gives_nearly_the_same_network_and_the_same_seed_the_same_one():
    items, labels = items_for("resnet18"), some_labels()
    single = trained("resnet18", items, labels).balanced(items)
    first, again = (
        trained("resnet18", items, labels, precision="bfloat16").balanced(items) for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    assert 0 < np.abs(first - single).max() < 0.1


def test_the_fastest_precision_is_bfloat16_where_there_are_instructions_for_it():
    items, labels = items_for("resnet18"), some_labels()
    is_half = has_fast_bfloat16(torch.device("cpu"))
    chosen, fastest = (
        trained("resnet18", items, labels, precision=precision).balanced(items)
        for precision in ("bfloat16" if is_half else "float32", "fastest")
    )
    np.testing.assert_array_equal(chosen, fastest)


def test_steps_are_as_many_epochs_as_they_take():
    recipe = replace(RECIPES["resnet18"], steps=200)
    assert [recipe.epochs_for(n) for n in (1, 50, 100, 101, 400, 750)] == [
        200,
        200,
        200,
        100,
        50,
        25,
    ]
    whole = replace(RECIPES["mlp"], batch_size=None, steps=7)
    assert whole.epochs_for(1000) == 7
    assert RECIPES["resnet18"].epochs_for(12) == 500


def test_networks_are_moved_to_a_device_by_its_name_only():
    """What runs on a CPU runs on a GPU: nothing names CUDA but the choice of the device."""
    folder = Path(resnet.__file__).parent
    naming = [file.name for file in folder.glob("*.py") if "cuda" in file.read_text().lower()]
    assert sorted(naming) == ["devices.py", "training.py"]  # the latter in its documentation
    assert ".cuda(" not in "".join(file.read_text() for file in folder.glob("*.py"))
