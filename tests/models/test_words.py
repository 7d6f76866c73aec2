"""Words beside embeddings: both rankings take turns, and words alone can find what vectors miss."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from galaxy_al import Learner
from galaxy_al.errors import InvalidArgument
from galaxy_al.models.auto import AutoTrainer
from galaxy_al.models.words import WordTrainer, reordered, word_table
from galaxy_al.simulation import play_round

WORDS = ["rain", "corn", "price", "bank", "ship", "trade", "oil", "steel", "rate", "tax"]


def take_turns(first, second):
    """The definition: the first of one list, the first of the other, the second of one, ..."""
    order = []
    for pair in zip(first, second):
        order += [item for item in dict.fromkeys(pair) if item not in order]
    return order


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30),
    st.booleans(),
)
def test_the_probabilities_are_dealt_out_in_turns(scores, words_first):
    head, words = np.array(scores).T
    rare = (head + 1) / 20
    split = np.array([0.25, 0.75])
    proba = np.column_stack([rare[:, None] * split, 1 - rare])
    table = reordered(proba, words.astype(float), words_first=words_first)
    by_head, by_words = (
        sorted(range(len(scores)), key=lambda i: -values[i]) for values in (rare, words)
    )
    order = take_turns(by_words, by_head) if words_first else take_turns(by_head, by_words)
    dealt = table[order, :-1].sum(axis=1)
    np.testing.assert_allclose(dealt, np.sort(rare)[::-1], rtol=0.01)
    assert (np.diff(dealt) < 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1)
    np.testing.assert_allclose(table[:, 0] / table[:, 1], 1 / 3)


def test_the_table_of_words_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(50)]
    expected = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(texts)
    products = word_table(texts) @ word_table(texts).T
    np.testing.assert_allclose(products.toarray(), (expected @ expected.T).toarray(), atol=1e-12)


def keyword_pool():
    """Vectors that say nothing, and texts of which the rare ones have a word of their own."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [15, 285])
    texts = [
        " ".join([*rng.choice(WORDS, 6), *(["gold"] if label == 0 else [])]) for label in truth
    ]
    return rng.normal(size=(300, 16)), truth, texts


def n_found(embeddings, truth, texts, n_labels):
    learner = Learner(embeddings, 2, goal="find-all", texts=texts)
    learner.resume({0: 0, 299: 1})
    while len(learner.state.labels) < n_labels:
        play_round(learner, truth)
    return sum(label == 0 for label in learner.state.labels.values())


def test_words_find_what_the_vectors_do_not_show():
    embeddings, truth, texts = keyword_pool()
    assert n_found(embeddings, truth, texts, 40) == 15
    assert n_found(embeddings, truth, None, 40) < 10


def test_with_labels_of_one_class_the_head_stays_as_it_is():
    embeddings, _, texts = keyword_pool()
    plain = AutoTrainer(n_classes=2).fit(embeddings, {3: 1}).proba(embeddings)
    model = WordTrainer(AutoTrainer(n_classes=2), texts).fit(embeddings, {3: 1})
    np.testing.assert_array_equal(model.proba(embeddings), plain)


def test_labelled_examples_keep_their_probabilities():
    embeddings, _, texts = keyword_pool()
    labels = {0: 0, 1: 0, 100: 1, 200: 1}
    plain = AutoTrainer(n_classes=2).fit(embeddings, labels).proba(embeddings)
    proba = WordTrainer(AutoTrainer(n_classes=2), texts).fit(embeddings, labels).proba(embeddings)
    np.testing.assert_array_equal(proba[list(labels)], plain[list(labels)])
    np.testing.assert_allclose(np.sort(proba[:, 0]), np.sort(plain[:, 0]), rtol=0.01)


def test_texts_of_another_pool_are_refused():
    with pytest.raises(InvalidArgument, match="as many as the pool has examples, 4, got 1"):
        Learner(np.eye(4), 2, goal="find-all", texts=["a"])


def test_a_classifier_does_not_read_the_texts():
    embeddings, _, texts = keyword_pool()
    labels = {0: 0, 100: 1}
    with_texts, without = Learner(embeddings, 2, texts=texts), Learner(embeddings, 2)
    for learner in (with_texts, without):
        learner.resume(labels)
    np.testing.assert_array_equal(with_texts.proba, without.proba)
