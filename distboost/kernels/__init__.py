"""Every compiled loop over rows.

Kernels take NumPy arrays only. Each releases the GIL, so that a pool of threads can run them in parallel, and each is cached
on disk after its first compilation.
"""
