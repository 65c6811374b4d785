"""Where the rows of a training are: in this process or on a cluster, in memory or on disk."""
