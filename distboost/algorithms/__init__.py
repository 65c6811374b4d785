"""The boosting algorithms, one file for each paper."""
