"""Tables on the workers of a cluster."""

from itertools import pairwise

from galaxy_al.cluster.parts import ClusterParts
from galaxy_al.shards import Rows, ShardedTable


def on_cluster(client):
    """Cuts an array into shards that the workers of the cluster keep."""

    def shard(array, starts):
        rows = [Rows(low, array[low:high]) for low, high in pairwise(starts)]
        return ShardedTable(ClusterParts.of(client, rows), starts, array.shape[1], array.dtype)

    return shard
