import json

import numpy as np
import pytest

from galaxy_al import STRATEGIES, Learner, Snapshot, simulate
from galaxy_al.learner import Seconds
from galaxy_al.models.sklearn_head import HeadTrainer
from galaxy_al.simulation import play_round
from galaxy_al.strategies import make_strategy


def rare_blobs(size=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [size // 40, size // 40, size - 2 * (size // 40)])
    centers = np.array([[4, 0], [0, 4], [0, 0]])
    return rng.normal(size=(size, 2)) + centers[truth], truth


def random_features():
    """A pipeline that ends in a linear classifier."""
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(RBFSampler(random_state=3), LogisticRegression(max_iter=1000))


def scored(head, embeddings, labels, n_classes=3):
    """The snapshot after training such a head."""
    trainer = HeadTrainer(lambda seed: head, n_classes=n_classes)
    return trainer.fit(embeddings, labels).snapshot(embeddings)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_runs_and_reports_what_it_labelled(strategy):
    embeddings, truth = rare_blobs()
    history = simulate(embeddings, truth, strategy, batch_size=30, rounds=4, seed=1)
    assert [step.n_labels for step in history] == [30, 60, 90, 120]
    asked = [index for step in history for index in step.indices]
    assert len(set(asked)) == 120
    for step, upto in zip(history, (30, 60, 90, 120), strict=True):
        assert step.rare_found == np.count_nonzero(truth[asked[:upto]] < 2)
        assert 0 <= step.balanced_accuracy <= 1
        assert 0 <= step.average_precision <= 1


def test_each_seed_begins_with_its_own_random_batch_and_repeats_it():
    embeddings, truth = rare_blobs()
    first = [simulate(embeddings, truth, batch_size=30, rounds=2, seed=s) for s in (0, 1, 0)]
    assert first[0] == first[2]
    assert set(first[0][0].indices) != set(first[1][0].indices)


@pytest.mark.slow
def test_galaxy_finds_far_more_of_the_rare_than_random():
    embeddings, truth = rare_blobs(4000)
    found = {
        strategy: np.mean(
            [
                simulate(embeddings, truth, strategy, batch_size=50, rounds=6, seed=s)[
                    -1
                ].rare_found
                for s in range(3)
            ]
        )
        for strategy in ("galaxy", "random")
    }
    assert found["galaxy"] > 4 * found["random"]


def test_all_strategies_begin_with_the_same_batch_of_a_seed():
    """But for those that have an explorer of their own."""
    embeddings, truth = rare_blobs()
    names = [name for name in STRATEGIES if make_strategy(name).explorer is None]
    first = {simulate(embeddings, truth, name, seed=3, rounds=1)[0].indices for name in names}
    assert len(first) == 1


def test_a_small_pool_ends_the_run_early():
    embeddings, truth = rare_blobs(80)
    history = simulate(embeddings, truth, batch_size=50, rounds=9)
    assert [step.n_labels for step in history] == [50, 80]
    assert simulate(embeddings, truth, batch_size=50, rounds=9)[-1].rare_found == 4


def answered(learner, truth, n):
    asked = []
    for _ in range(n):
        asked.append(learner.ask())
        learner.tell(asked[-1], truth[asked[-1]])
    return asked


def test_a_learner_carries_labels_and_skips_over_a_refit():
    embeddings, truth = rare_blobs()
    learner = Learner(embeddings, 3, batch_size=10)
    answered(learner, truth, 20)
    skipped, released = learner.ask(), learner.ask()
    learner.state.skip(skipped)
    learner.state.release(released)
    before = dict(learner.state.labels)
    learner.refit()
    assert learner.state.labels == before
    asked = answered(learner, truth, len(truth) - 21)
    assert skipped not in asked
    assert released in asked


def test_questions_in_flight_survive_a_refit():
    embeddings, truth = rare_blobs()
    learner = Learner(embeddings, 3, batch_size=10)
    answered(learner, truth, 20)
    waiting = [learner.ask(), learner.ask()]
    learner.refit()
    assert list(learner.state.pending) == waiting
    assert not set(waiting) & {learner.ask() for _ in range(50)}
    learner.state.release(waiting[0])
    learner.tell(waiting[1], 0)
    learner.state.withdraw(waiting[1])
    assert waiting[1] not in learner.state.labels


def test_what_happens_while_the_next_round_is_prepared_is_carried_over():
    embeddings, truth = rare_blobs()
    learner = Learner(embeddings, 3, batch_size=10)
    answered(learner, truth, 20)
    old = list(learner.state.labels)
    skipped, not_now = learner.ask(), learner.ask()
    learner.state.skip(skipped)
    learner.state.skip(not_now)
    ready = learner.prepare_round(learner.state.copy(), ask_again=[not_now])
    later = answered(learner, truth, 5)
    learner.state.withdraw(old[0])
    learner.tell(old[1], (truth[old[1]] + 1) % 3)
    learner.state.restore(skipped)
    skipped_later, held = learner.ask(), learner.ask()
    learner.state.skip(skipped_later)
    before = dict(learner.state.labels)
    learner.start_round(ready)
    assert learner.state.labels == before
    assert set(later) < learner.state.labels.keys()
    assert old[0] not in learner.state.labels
    assert learner.state.skipped == {skipped_later}
    assert list(learner.state.pending) == [held]
    assert sorted(answered(learner, truth, len(truth) - len(before) - 2)) == sorted(
        set(range(len(truth))) - before.keys() - {skipped_later, held}
    )


def test_a_round_prepared_at_once_is_a_refit():
    embeddings, truth = rare_blobs()
    one, other = (Learner(embeddings, 3, batch_size=10, seed=3) for _ in range(2))
    for learner in (one, other):
        answered(learner, truth, 20)
    one.refit()
    other.start_round(other.prepare_round(other.state.copy()))
    assert answered(one, truth, 30) == answered(other, truth, 30)


def test_until_two_classes_are_known_the_explorer_asks():
    embeddings, _ = rare_blobs()
    learner = Learner(embeddings, 3, batch_size=10, explore="typiclust")
    assert learner.is_exploring
    for _ in range(10):
        learner.tell(learner.ask(), 2)
    learner.refit()
    assert learner.is_exploring
    learner.tell(learner.ask(), 0)
    assert learner.is_exploring
    learner.refit()
    assert not learner.is_exploring
    assert learner.state.random == set()


def test_a_head_of_ones_own():
    from sklearn.neighbors import KNeighborsClassifier

    embeddings, truth = rare_blobs()
    history = simulate(
        embeddings, truth, head=lambda seed: KNeighborsClassifier(1), batch_size=40, rounds=3
    )
    assert history[-1].n_labels == 120


def test_classes_without_labels_get_nothing_and_one_class_alone_everything_alike():
    embeddings, _ = rare_blobs()
    two = scored(random_features(), embeddings, {0: 0, 399: 2, 398: 2})
    for view in (two.proba, two.balanced):
        assert (view[:, 1] == 0).all()
        np.testing.assert_allclose(view.sum(axis=1), 1)
    one = scored(random_features(), embeddings, {0: 2})
    assert (one.proba == 1 / 3).all()
    assert (one.balanced == 1 / 3).all()


def test_the_head_weighs_the_classes_as_the_paper_does():
    # With weights 1 / N_k(L), repeating all examples of one class changes nothing.
    from sklearn.linear_model import LogisticRegression

    embeddings, truth = rare_blobs()
    rng = np.random.default_rng(0)
    known = rng.choice(400, 80, replace=False)
    labels = {int(i): int(truth[i]) for i in known} | {0: 0, 10: 1}
    ours = random_features()
    scored(ours, embeddings, labels)
    features = ours[0].transform(embeddings[list(labels)])
    y = np.array(list(labels.values()))
    weights = 1 / np.bincount(y)[y]
    by_hand = LogisticRegression(max_iter=1000)
    by_hand.fit(features, y, sample_weight=weights * len(y) / weights.sum())
    np.testing.assert_allclose(by_hand.coef_, ours[-1].coef_, atol=1e-3)


def test_bad_input_is_refused():
    embeddings, truth = rare_blobs()
    with pytest.raises(ValueError, match="Unknown strategy 'best'"):
        simulate(embeddings, truth, "best")
    with pytest.raises(ValueError, match="Unknown head 'big'"):
        simulate(embeddings, truth, head="big")
    with pytest.raises(ValueError, match="N >= 1 rows"):
        simulate(np.zeros(3), truth)
    with pytest.raises(ValueError, match="class, 0 or more, for each of 400 examples"):
        simulate(embeddings, truth[:10])
    for arguments, message in [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"rounds": -1}, "rounds must be at least 0, got -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            simulate(embeddings, truth, **arguments)
    with pytest.raises(ValueError, match="two classes or more, got only 3"):
        simulate(embeddings, np.full(400, 3))
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        Learner(embeddings, 1)
    embeddings[7, 1] = np.nan
    with pytest.raises(ValueError, match="finite; row 7 is not"):
        Learner(embeddings, 3)


@pytest.mark.parametrize("n_seen", [2, 3])
def test_the_last_layer_and_its_inputs_give_the_scores_of_the_head(n_seen):
    embeddings, truth = rare_blobs()
    labels = {i: int(truth[i]) for i in range(0, 400, 3) if truth[i] > 2 - n_seen}
    fitted = scored(random_features(), embeddings, labels)
    weights, bias = fitted.head
    logits = fitted.embeddings @ weights.T + bias
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, fitted.balanced, atol=1e-9)
    proba *= np.bincount(list(labels.values()), minlength=3)
    proba /= proba.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, fitted.proba, atol=1e-9)


def test_a_classifier_without_a_linear_last_layer_says_so_where_one_is_needed():
    from sklearn.naive_bayes import GaussianNB

    embeddings, truth = rare_blobs()
    assert simulate(embeddings, truth, "badge", lambda seed: GaussianNB(), 50, 2)[-1].n_labels
    with pytest.raises(ValueError, match="Strategy 'base' needs head"):
        Learner(embeddings, 3, strategy="base", head=lambda seed: GaussianNB())


@pytest.mark.filterwarnings("ignore:The current default behavior, quantile_method")  # of 1.7
def test_pipelines_in_pipelines_and_with_sparse_features_are_heads_too():
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer

    embeddings, truth = rare_blobs()
    heads = (
        lambda seed: make_pipeline(LogisticRegression()),
        lambda seed: make_pipeline(PCA(2), make_pipeline(PCA(2), LogisticRegression())),
        lambda seed: make_pipeline(KBinsDiscretizer(5), LogisticRegression()),
        lambda seed: make_pipeline("passthrough", LogisticRegression()),
    )
    for head in heads:
        for strategy in ("random", "base"):
            history = simulate(embeddings, truth, strategy, head, batch_size=50, rounds=3)
            assert history[-1].n_labels == 150


def test_a_graph_that_does_not_fit_is_refused_before_anybody_labels():
    from galaxy_al.strategies import S2

    with pytest.raises(ValueError, match="graph has 4 nodes, the pool 100"):
        Learner(rare_blobs(100)[0], 3, strategy=S2(np.ones((4, 4))))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_while_one_class_is_known_the_order_of_the_pool_does_not_matter(strategy):
    # Scores that are all the same would let strategies ask 0, 1, 2, and so on.
    rng = np.random.default_rng(0)
    learner = Learner(rng.normal(size=(2000, 2)), 2, strategy=strategy, batch_size=20)
    for _ in range(20):
        learner.tell(learner.ask(), 1)
    learner.refit()
    assert np.mean([learner.ask() for _ in range(20)]) > 500


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_first_batch_of_one_class_only_stops_no_strategy(strategy):
    learner = Learner(rare_blobs(200)[0], 3, strategy=strategy, batch_size=5)
    for _ in range(3):
        for _ in range(5):
            learner.tell(learner.ask(), 2)
        learner.refit()
    assert len(learner.state.labels) == 15


@pytest.mark.slow
@pytest.mark.parametrize("head", ["auto", pytest.param("mlp", marks=pytest.mark.torch)])
def test_what_is_made_once_for_a_pool_is_made_of_the_embeddings_themselves(head):
    from galaxy_al.graphs.neighbor_graph import knn_graph
    from galaxy_al.strategies.s2 import S2

    embeddings, truth = rare_blobs(100)
    strategy = S2()
    simulate(embeddings, truth, strategy, head, batch_size=10, rounds=3)
    np.testing.assert_array_equal(strategy.graph.toarray(), knn_graph(embeddings).toarray())


@pytest.mark.slow
@pytest.mark.parametrize("head", ["auto", pytest.param("linear", marks=pytest.mark.torch)])
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_run_that_was_broken_off_goes_on_exactly(strategy, head):
    embeddings, truth = rare_blobs()
    whole = simulate(embeddings, truth, strategy, head, batch_size=20, rounds=6, seed=2)
    for done in (1, 4):
        asked = [index for step in whole[:done] for index in step.indices]
        learner = Learner(embeddings, 3, strategy=strategy, head=head, batch_size=20, seed=2)
        kept = json.loads(json.dumps(whole[done - 1].generator_state))
        random = [index for step in whole[:done] for index in step.random]
        learner.resume({index: int(truth[index]) for index in asked}, kept, random=random)
        assert [play_round(learner, truth) for _ in range(6 - done)] == whole[done:]


def test_a_resumed_learner_does_not_ask_what_was_skipped():
    embeddings, truth = rare_blobs(60)
    learner = Learner(embeddings, 3, batch_size=10)
    learner.resume({0: 0, 50: 2}, skipped=[7, 8])
    assert {0, 7, 8, 50}.isdisjoint(answered(learner, truth, 56))


@pytest.mark.torch
@pytest.mark.parametrize("head", ["linear", "mlp", "classifier", "trainer"])
def test_networks_classifiers_and_trainers_are_heads(head):
    from sklearn.naive_bayes import GaussianNB

    from galaxy_al.models.networks.training import Trainer

    embeddings, truth = rare_blobs()
    heads = {"classifier": GaussianNB(), "trainer": Trainer("mlp", n_classes=3, seed=5)}
    history = simulate(embeddings, truth, "galaxy", heads.get(head, head), 50, 4)
    assert history[-1].balanced_accuracy > 0.8
    assert history == simulate(embeddings, truth, "galaxy", heads.get(head, head), 50, 4)


@pytest.mark.torch
def test_the_paper_s_network_learns_from_images_by_every_strategy_that_needs_embeddings():
    from dataclasses import replace

    from galaxy_al.models.networks.training import RECIPES, Trainer

    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [15, 45])
    images = rng.integers(0, 60, size=(60, 32, 32, 3), dtype=np.uint8)
    images[truth == 0, :, :, 0] += 180
    recipe = replace(RECIPES["resnet18"], epochs=4, rate=1e-3)
    for strategy in ("galaxy", "s2", "badge"):
        trainer = Trainer("resnet18", n_classes=2, recipe=recipe)
        history = simulate(images, truth, strategy, trainer, batch_size=15, rounds=2)
        assert history[-1].n_labels == 30
        assert history[-1].average_precision > 0.9


def test_the_seconds_of_a_round_are_those_of_its_parts(monkeypatch):
    from galaxy_al.strategies import Random

    clock = [0.0]
    for module in ("learner", "simulation"):
        monkeypatch.setattr(f"galaxy_al.{module}.time.perf_counter", lambda: clock[0])

    class Slow:
        """Trains for 5 and scores for 10 seconds."""

        def fit(self, pool, labels):
            clock[0] += 5
            return self

        def snapshot(self, pool, labels=None):
            clock[0] += 10
            return Snapshot(np.full((len(pool), 3), 1 / 3), labels)

    class Slowly(Random):
        def start(self, *arguments, **others):
            clock[0] += 2
            return super().start(*arguments, **others)

    embeddings, truth = rare_blobs()
    second = simulate(embeddings, truth, Slowly(), Slow(), 20, 2)[1]
    assert second.seconds == Seconds(selection=2, training=5, scoring=10, judging=0)


def test_with_an_annotator_who_errs_the_truth_still_counts():
    from galaxy_al.simulation import noisy_annotator

    embeddings, truth = rare_blobs()
    annotator = noisy_annotator(truth, 0.3, np.random.default_rng(0))
    history = simulate(embeddings, truth, "galaxy", batch_size=50, rounds=2, annotator=annotator)
    asked = [index for step in history for index in step.indices]
    assert history[-1].rare_found == np.count_nonzero(truth[asked] != 2)
    told = [annotator(index) for index in asked]
    assert np.count_nonzero(np.array(told) != 2) != history[-1].rare_found
    clean = simulate(embeddings, truth, "galaxy", batch_size=50, rounds=2)
    assert clean[0].indices == history[0].indices
    assert clean[1].indices != history[1].indices


def test_classifiers_that_take_weights_get_those_of_the_paper():
    # With weights 1 / N_k(L), repeating all examples of one class changes nothing.
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    embeddings, truth = rare_blobs()
    labels = {i: int(truth[i]) for i in range(0, 400, 4)}
    rare = [i for i, label in labels.items() if label == 0]
    more = np.concatenate([embeddings, *[embeddings[rare]] * 6])
    repeated = labels | {400 + i: 0 for i in range(6 * len(rare))}
    heads = (GaussianNB, lambda: make_pipeline("passthrough", LogisticRegression(C=1e6)))
    for head in heads:
        once = scored(head(), embeddings, labels).balanced
        again = scored(head(), more, repeated).balanced[:400]
        np.testing.assert_allclose(again, once, atol=0.02)
    plain = make_pipeline(StandardScaler(), KNeighborsClassifier(3))  # takes none
    fitted = scored(plain, embeddings, labels)
    np.testing.assert_array_equal(fitted.proba, plain.predict_proba(embeddings))
    np.testing.assert_array_equal(fitted.balanced, fitted.proba)


def test_probabilities_in_the_pool_are_those_of_a_head_without_weights():
    # Exactly so for naive Bayes, where weights change nothing but the class priors.
    from sklearn.naive_bayes import GaussianNB

    embeddings, truth = rare_blobs()
    labels = {i: int(truth[i]) for i in range(0, 400, 4)}
    plain = GaussianNB().fit(embeddings[list(labels)], list(labels.values()))
    fitted = scored(GaussianNB(), embeddings, labels)
    np.testing.assert_allclose(fitted.proba, plain.predict_proba(embeddings), atol=1e-9)
    equal = GaussianNB(priors=[1 / 3] * 3).fit(embeddings[list(labels)], list(labels.values()))
    np.testing.assert_allclose(fitted.balanced, equal.predict_proba(embeddings), atol=1e-9)


def test_a_head_with_class_weights_of_its_own_is_taken_at_its_word():
    from sklearn.linear_model import LogisticRegression

    embeddings, truth = rare_blobs()
    labels = {i: int(truth[i]) for i in range(0, 400, 4)}
    own = LogisticRegression(class_weight="balanced")
    fitted = scored(own, embeddings, labels)
    np.testing.assert_array_equal(fitted.proba, own.predict_proba(embeddings))
    np.testing.assert_array_equal(fitted.balanced, fitted.proba)
