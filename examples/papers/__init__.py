"""The tables of the papers, measured with distboost: one script per paper.

python -m examples.papers.saberian_vasconcelos --quick
"""
