"""The algorithm's interface to the training data, and the messages between coordinator and workers."""
