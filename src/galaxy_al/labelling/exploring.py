"""The first questions of a project, kept on the disk: clustering takes longer than all the rest."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from galaxy_al.errors import GalaxyError
from galaxy_al.snapshot import Snapshot
from galaxy_al.strategies.typiclust import TypiClust
from galaxy_al.system.files import digest, writing

_SAMPLE = 1000  # embeddings by which a pool is known


class RememberedTypiClust(TypiClust):
    """TypiClust that reads its last ranking from a file if it is asked for the same again.

    It asks what TypiClust asks, and leaves the generator in the same state.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def rank(self, snapshot: Snapshot, budget: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """``budget`` askable indices, as of `TypiClust`."""
        before = _key(snapshot, budget, rng)
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept["before"] == before:
                rng.bit_generator.state = kept["after"]
                return np.array(kept["ranking"], dtype=np.intp)
        ranking = super().rank(snapshot, budget, rng)
        found = {
            "before": before,
            "after": rng.bit_generator.state,
            "ranking": ranking.tolist(),
        }
        with suppress(GalaxyError), writing(self._path) as part:  # on a full disk it asks slowly
            part.write_text(json.dumps(found), encoding="utf-8")
        return ranking


def _key(snapshot: Snapshot, budget: int, rng: np.random.Generator) -> str:
    """What the ranking depends on; of the embeddings their shape and about `_SAMPLE` rows."""
    embeddings = snapshot.required_embeddings
    sample = np.ascontiguousarray(embeddings[:: max(len(embeddings) // _SAMPLE, 1)])
    state = json.dumps(rng.bit_generator.state)
    known = snapshot.labels.tobytes(), snapshot.skipped.tobytes()
    return digest([str(embeddings.shape), sample.tobytes(), *known, str(budget), state])
