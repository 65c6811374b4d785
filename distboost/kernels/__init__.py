"""Every compiled loop over rows.

Kernels take NumPy arrays and numbers only. A kernel releases the GIL, so that a pool of threads can run kernels in parallel. Its
machine code is cached on disk when it is first compiled.

The comments `IN` and `OUT` give the shape and dtype of the arrays that a kernel reads and writes, and `float` stands for float32
or float64. There are n rows, D features and K classes. A row weight comes with the data; the other
weights of a row are those that boosting computes from its scores. These names mean the same in all kernels:

| name | meaning |
| --- | --- |
| scores (n, K) float | F, the scores of the rows |
| labels (n,) int32 | y, the class of each row |
| weights (n,) float64 | row weights: sample weight times class weight, scaled to at most 2^8 |
| bins (n, D) uint8 | the bin of each value |
| order (r,) int32 | the rows of the growing tree, sorted by node |
| spans (nodes, 2) int32 | node m has the rows ``order[spans[m, 0]:spans[m, 1]]`` |
| leaves (leaves,) int64 | the node that each leaf of the tree is; "leaf l" is the node leaves[l] |
| shift, factor | numbers are divided by e^shift, then stored as integers in units of 1/factor |
| weight_factor | row weights are summed in units of 1/weight_factor, or not at all if it is 0 |
| error_factor | row weights of misclassified rows are summed in units of 1/error_factor |
"""
