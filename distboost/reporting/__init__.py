"""A model and its evaluation as one self-contained HTML page."""
