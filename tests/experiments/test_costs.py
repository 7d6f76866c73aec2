"""What a suite will cost, against a loop that counts every image."""

import pytest
from click.testing import CliRunner

from galaxy_al import GalaxyError
from galaxy_al.cli.main import cli
from galaxy_al.experiments.costs import Speed, costs_of, measure_speed
from galaxy_al.experiments.datasets import pool_size
from galaxy_al.experiments.results import RunProgress
from galaxy_al.experiments.suite import Head, load_suite

pytestmark = pytest.mark.torch
SPEED = Speed(training=100, scoring=1000, n_weights=11_000_000)


@pytest.mark.parametrize("name", ["paper-small", "paper-small-digits", "figure4", "large-budget"])
def test_costs_are_those_of_a_loop_that_counts(name):
    suite = load_suite(name, "paper")
    head, done = suite.head, {run.key: 3 for run in suite.runs()[:2]}
    progress = {key: RunProgress(3, 3 * suite.batch_size, 0.5, 50_000) for key in done}
    for cost in costs_of(suite, progress, SPEED):
        trained = scored = rounds = 0
        for run in suite.runs():
            if run.setting != cost.setting:
                continue
            for number in range(done.get(run.key, 0) + 1, suite.rounds + 1):
                n_labels, steps = number * suite.batch_size, 0
                epochs = 500 if head.steps is None else 0
                while head.steps is not None and steps < head.steps:
                    epochs, steps = epochs + 1, steps + -(-n_labels // 100)
                trained += epochs * n_labels
                scored += pool_size(cost.setting)
                rounds += 1
        assert (cost.trained, cost.scored, cost.rounds) == (trained, scored, rounds)
        assert cost.seconds == pytest.approx(trained / 100 + scored / 1000)
        assert cost.memory > pool_size(cost.setting) * (3072 + 2048) + 11_000_000 * 16


@pytest.mark.parametrize(
    ("setting", "size"),
    [
        ("cifar10-2", 50_000),
        ("cifar10-2-small", 10_000),
        ("svhn-test-3-noisy", 26_032),
        ("cifar100-10-thinned", 45_500 + 9 * 45),
    ],
)
def test_the_size_of_a_setting_is_known_without_its_data(setting, size):
    assert pool_size(setting) == size


def test_the_speed_is_measured_here_and_only_for_networks_that_take_images():
    speed = measure_speed(Head("resnet18", precision="bfloat16"))
    assert speed.training > 0
    assert speed.scoring > speed.training
    assert speed.n_weights == 11_177_538
    with pytest.raises(GalaxyError, match="use --size paper"):
        measure_speed(Head("linear"))


def test_a_dry_run_shows_the_costs_and_runs_nothing(tmp_path):
    results = tmp_path / "r.sqlite"
    command = ["bench", "run", "figure5", "--size", "paper", "--dry-run", "--results", str(results)]
    said = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert said.exit_code == 0
    assert "cifar10-3" in said.output
    assert "hours with --jobs" in said.output
    assert not results.exists()
