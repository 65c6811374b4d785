"""Every compiled loop over rows.

The kernels know NumPy arrays only. Each releases the GIL, so a pool of threads runs them side by side, and each is
cached on disk after its first compilation.
"""
