"""The scikit-learn face."""
