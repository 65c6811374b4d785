"""Vector operations on some rows together, and on neighbouring scores of one row, to find the leaves that rows fall into.

Numba does not vectorise these short loops. So the intrinsics emit vector operations explicitly. LLVM translates them to the
instructions that the processor has. The results are the same on all processors.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels.lanes import I32, INDEX, i64, load, place_of, require_contiguous, row_of, spread, store

ROW_LANES = 64  # rows that take a decision of a tree together
MOST_LEAVES = (
    256  # of their tree: a lane may have one byte for the leaf, and to descend a larger tree is faster
)
SCORE_LANES = 8
COLUMN_LANES = 16  # columns of bins that are transposed together
SET_BITS = 32  # splits of categories that one look-up decides

COLUMN, BOUND, LEFT, RIGHT = range(4)  # the numbers of a node's record
SHIFT_BITS = 8  # of a bound


def _choose(is_right):
    """Return an intrinsic function(chosen, to, rows, first, nodes, node) that takes the decision of a node for ROW_LANES rows.

    It sets chosen[to] to chosen[RIGHT] for the rows that go right, and to chosen[LEFT] for the others. The node is nodes[node]:
    (COLUMN, BOUND, LEFT, RIGHT). What is known of the rows is rows[first + COLUMN], and is_right(builder, known, bound) tells
    which go right: known is a vector, and bound a number.

    nodes (m, 4) is uint32; chosen (c, ROW_LANES) and rows (r, ROW_LANES) are of the same unsigned type. All are C-contiguous.
    """

    def choose(typingctx, chosen, to, rows, first, nodes, node):
        require_contiguous(chosen, rows, nodes)
        signature = types.void(chosen, INDEX, rows, INDEX, nodes, INDEX)

        def codegen(context, builder, signature, args):
            chosen_value, to, rows_value, first, nodes_value, node = args
            record, _, _ = row_of(context, builder, signature.args[4], nodes_value, node)

            def lanes(position, array, row):
                return row_of(context, builder, signature.args[position], array, row)[0]

            def read(position, array, row):
                return load(builder, lanes(position, array, row), ROW_LANES)

            column, bound, left, right = (
                builder.load(builder.gep(record, [i64(name)])) for name in (COLUMN, BOUND, LEFT, RIGHT)
            )
            known = read(2, rows_value, builder.add(first, builder.zext(column, first.type)))
            goes_right = is_right(builder, known, bound)
            sides = [read(0, chosen_value, builder.zext(side, first.type)) for side in (right, left)]
            store(builder, builder.select(goes_right, *sides), lanes(0, chosen_value, to))
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(choose)


def bound_of(limit: Any, shift: Any) -> Any:
    """Return the BOUND at which `choose_rows` sends ranks above `limit` to the right, after it has added `shift` to both.

    The shift, below 256, is such that the rank of missing values overflows to 0, and no other rank overflows: they go left.
    """
    return (limit + shift) << SHIFT_BITS | shift


def _is_above(builder, ranks, bound):
    """Return where the ranks, plus the lowest bits of BOUND, are above its other bits."""
    lane, vector = ranks.type.element, ranks.type
    mask = ir.Constant(bound.type, (1 << SHIFT_BITS) - 1)
    shift = builder.trunc(builder.and_(bound, mask), lane)
    limit = builder.trunc(builder.lshr(bound, ir.Constant(bound.type, SHIFT_BITS)), lane)
    shifted = builder.add(ranks, spread(builder, shift, vector.count))
    return builder.icmp_unsigned(">", shifted, spread(builder, limit, vector.count))


def _lacks_bit(builder, members, bit):
    """Return where members do not have the bit BOUND."""
    lane, vector = members.type.element, members.type
    found = builder.and_(members, spread(builder, builder.trunc(bit, lane), vector.count))
    return builder.icmp_unsigned("==", found, ir.Constant(vector, [0] * vector.count))


choose_rows: Any = _choose(_is_above)  # rows: ranks
choose_members: Any = _choose(_lacks_bit)  # rows: at which splits each row goes left


def _divide_words(typingctx, words, members, first):
    """Set members[first + i] to the bits i * b .. (i + 1) * b - 1 of words[0], where b are the bits of a lane of members.

    words (1, ROW_LANES) is uint32, members (m, ROW_LANES) of a smaller unsigned type. Both are C-contiguous.
    """
    require_contiguous(words, members)
    signature = types.void(words, members, INDEX)

    def codegen(context, builder, signature, args):
        words_value, members_value, first = args
        n_bits = signature.args[1].dtype.bitwidth
        word = ir.VectorType(ir.IntType(SET_BITS), ROW_LANES)
        lane = ir.VectorType(ir.IntType(n_bits), ROW_LANES)
        source, _, _ = row_of(context, builder, signature.args[0], words_value, i64(0))
        found = load(builder, source, ROW_LANES)
        for i in range(SET_BITS // n_bits):
            row = builder.add(first, i64(i))
            target, _, _ = row_of(context, builder, signature.args[1], members_value, row)
            bits = builder.lshr(found, ir.Constant(word, [i * n_bits] * ROW_LANES))
            store(builder, builder.trunc(bits, lane), target)
        return context.get_dummy_value()

    return signature, codegen


divide_words: Any = intrinsic(_divide_words)


def _add_scores(typingctx, scores, row, column, values, leaf, lane, n_trees):
    """Add values[leaf[t, lane], lanes] to scores[row, lanes] for t = 0 .. n_trees - 1: lanes = column:column + SCORE_LANES.

    scores (n, width) and values (leaves, width) are float64, leaf (trees, rows) is uint32. All are C-contiguous.
    """
    require_contiguous(scores, values, leaf)
    signature = types.void(scores, INDEX, INDEX, values, leaf, INDEX, INDEX)

    def codegen(context, builder, signature, args):
        scores_value, row, column, values_value, leaf_value, lane, n_trees = args
        target = place_of(context, builder, signature.args[0], scores_value, row, column)
        total = cgutils.alloca_once_value(builder, load(builder, target, SCORE_LANES))
        with cgutils.for_range(builder, n_trees) as loop:
            number = builder.load(place_of(context, builder, signature.args[4], leaf_value, loop.index, lane))
            own = builder.zext(number, row.type)
            source = place_of(context, builder, signature.args[3], values_value, own, column)
            builder.store(builder.fadd(builder.load(total), load(builder, source, SCORE_LANES)), total)
        store(builder, builder.load(total), target)
        return context.get_dummy_value()

    return signature, codegen


add_scores: Any = intrinsic(_add_scores)


def _interleave(builder, a, b, half):
    """Return the bytes of a and b in turn, from the lower or upper half of every COLUMN_LANES of each."""
    n, places = a.type.count, range(half * COLUMN_LANES // 2, (half + 1) * COLUMN_LANES // 2)
    order = [of + i + k for i in range(0, n, COLUMN_LANES) for k in places for of in (0, n)]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, n), order))


def _joined(builder, parts):
    """Return one vector of all lanes of these, whose number is a power of two."""
    while len(parts) > 1:
        n = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(I32, n), list(range(n)))
        parts = [builder.shuffle_vector(a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _transpose_bins(typingctx, bins, rows, first, column, lanes, to):
    """Set lanes[to + c, j] = bins[rows[first + j], column + c] for c < COLUMN_LANES, j < ROW_LANES.

    Columns beyond the last are read from the row behind. bins (n, D) and lanes (m, ROW_LANES) are uint8, rows (r,) is int32. All
    are C-contiguous.
    """
    require_contiguous(bins, rows, lanes)
    signature = types.void(bins, rows, INDEX, INDEX, lanes, INDEX)

    def codegen(context, builder, signature, args):
        bins_value, rows_value, first, column, lanes_value, to = args
        order, _, _ = row_of(context, builder, signature.args[1], rows_value)

        def of_row(j):
            row = builder.zext(builder.load(builder.gep(order, [builder.add(first, i64(j))])), first.type)
            place = place_of(context, builder, signature.args[0], bins_value, row, column)
            return load(builder, place, COLUMN_LANES)

        # Vector k has the rows k, k + 16, .. . To interleave each vector of the first half with one of the second, four times,
        # transposes the 16 x 16 bytes that lie at the same place of all vectors.
        n, half = COLUMN_LANES, COLUMN_LANES // 2
        vectors = [_joined(builder, [of_row(j) for j in range(k, ROW_LANES, n)]) for k in range(n)]
        for _ in range(n.bit_length() - 1):
            vectors = [_interleave(builder, vectors[k // 2], vectors[k // 2 + half], k % 2) for k in range(n)]
        for c, vector in enumerate(vectors):
            target, _, _ = row_of(context, builder, signature.args[4], lanes_value, builder.add(to, i64(c)))
            store(builder, vector, target)
        return context.get_dummy_value()

    return signature, codegen


transpose_bins: Any = intrinsic(_transpose_bins)
