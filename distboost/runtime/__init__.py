"""Where the rows of a training run are: in this process or on a cluster, in memory or on disk."""
