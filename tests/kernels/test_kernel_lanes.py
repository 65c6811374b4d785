"""Many numbers at once: what loops over rows and classes do one by one, to the last bit."""

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from distboost.kernels import lanes
from distboost.kernels.margin import linked_weights, parts
from distboost.kernels.simd import padded
from distboost.kernels.simd_exp import WIDE, exp_rows, is_beaten
from distboost.kernels.simd_rows import add_times_row, put_row
from distboost.kernels.tiles import EXPONENTIAL, LOGISTIC, SOFTMAX, TILE_ROWS, tile_of, weigh
from tests.kernels.cases import exp, times

pytestmark = pytest.mark.pairwise

CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 7, 8, 9, 10, 16, 26, 70])


@njit
def exponentials(u, n):
    exp_rows(u, n)


@njit
def beaten(scores, labels, out):
    for i in range(scores.shape[0]):
        out[i] = is_beaten(scores, i, labels[i])


@njit
def put(out, u, factor, weights, sums):
    for i in range(weights.shape[0]):
        sums[i] = put_row(out, i, u, i, factor, *parts(weights[i]))


@njit
def add(out, groups, labels, u, factor, weights, sums):
    for i in range(weights.shape[0]):
        sums[i] = add_times_row(out, groups[i], labels[i], u, i, factor, *parts(weights[i]))


@intrinsic
def as_floats(typingctx, numbers, i, out):
    """Set out[i] to numbers[i], eight int64 numbers."""

    def codegen(context, builder, signature, args):
        source, target = (
            lanes.row_of(context, builder, signature.args[a], args[a], args[1])[0] for a in (0, 2)
        )
        lanes.store(builder, lanes.as_floats(context, builder, lanes.load(builder, source)), target)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, out), codegen


@intrinsic
def times_as_ints(typingctx, numbers, i, multiple, out):
    """Set out[i] to numbers[i], eight float64 numbers, times a multiple."""

    def codegen(context, builder, signature, args):
        source, target = (
            lanes.row_of(context, builder, signature.args[a], args[a], args[1])[0] for a in (0, 3)
        )
        found = lanes.times_as_ints(context, builder, lanes.load(builder, source), args[2])
        lanes.store(builder, found, target)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64, out), codegen


POINTS = np.concatenate(
    [
        np.random.default_rng(0).uniform(-720, 709, 3000),
        np.random.default_rng(1).uniform(-1, 1, 1000),
        np.arange(-1400, 1023) * np.log(2) / 2,  # where the reduction changes sides
        [0.0, -0.0, 1e-300, -1e-300, 5e-324, -700.0, -700.1, -745.0, -1e4, -1e300, -np.inf, 709.0],
    ]
)


@pytest.mark.parametrize("n_classes", [2, 3, 8, 10, 26, 100])
@pytest.mark.parametrize("skipped", [0, 1, 5])
def test_exponentials_of_rows(n_classes, skipped):
    """Those of single numbers, wherever they lie; only a few numbers behind the rows change."""
    numbers = POINTS[skipped:]
    n = len(numbers) // n_classes
    u = np.zeros((n + WIDE, n_classes))
    u[:n] = numbers[: n * n_classes].reshape(n, n_classes)
    expected = exp(u)
    exponentials(u, n)
    np.testing.assert_array_equal(u[:n].view(np.int64), expected[:n].view(np.int64))
    assert not u.ravel()[n * n_classes + WIDE - 1 :].any()


def test_arrays_with_gaps_are_refused():
    with pytest.raises(TypingError, match="contiguous"):
        exponentials(np.zeros((50, 8))[:, ::2], 3)


@CLASSES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_is_beaten(n_classes, dtype):
    """Ties go to the first class; numbers of the next row do not count, and nothing behind the array is read."""
    rng = np.random.default_rng(n_classes)
    scores = rng.integers(0, 3, (40, n_classes)).astype(dtype)
    scores[::4] = 0.0
    labels = rng.integers(0, n_classes, 40)
    found = np.empty(40, bool)
    beaten(scores, labels, found)
    np.testing.assert_array_equal(found, scores.argmax(axis=1) != labels)


@CLASSES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("link", [EXPONENTIAL, LOGISTIC, SOFTMAX])
def test_weights_of_a_tile(n_classes, dtype, link):
    """Those of its rows, one by one; the last rows of the array among them."""
    rng = np.random.default_rng([n_classes, link])
    n, s, shift = 3 * TILE_ROWS + 5, 0.7, 1.25
    scores = rng.normal(scale=3.0, size=(n, n_classes)).astype(dtype)
    scores[:4] *= 500.0  # exponents below the lowest
    labels = rng.integers(0, n_classes, n).astype(np.int32)
    order = rng.permutation(n).astype(np.int32)
    u, size = tile_of(n_classes)
    for first in range(0, n, size):
        rows = order[first : first + size]
        weigh(scores, labels, order, first, len(rows), s, link, shift, u)
        for t, i in enumerate(rows):
            expected = np.empty(n_classes)
            if link == EXPONENTIAL:
                expected[:] = exp(s * (scores[i] - scores[i, labels[i]]).astype(np.float64) - shift)
                expected[labels[i]] = 0.0
            else:
                linked_weights(scores[i], labels[i], s, link, expected)
            np.testing.assert_array_equal(u[t].view(np.int64), expected.view(np.int64))


@CLASSES
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_put_row_and_add_times_row(n_classes, dtype):
    """Weights of 1, whole weights and fractions, each multiplied after the rounding."""
    rng = np.random.default_rng(n_classes)
    bits = 20 if dtype == "i4" else 52
    weights = np.array([1.0, 0.0, 3.0, 256.0, 0.3, 255.9, 1.0])
    u = rng.random((len(weights) + WIDE, n_classes))
    q = np.array(
        [[times(w, np.rint(x * 2.0**bits)) for x in row] for w, row in zip(weights, u, strict=False)]
    )

    out = np.full((len(weights), padded(n_classes) + 8), 99, dtype)
    sums = np.empty(len(weights), np.int64)
    put(out, u, 2.0**bits, weights, sums)
    np.testing.assert_array_equal(out[:, :n_classes], -q)
    assert not out[:, n_classes : padded(n_classes)].any()
    assert (out[:, padded(n_classes) :] == 99).all()
    np.testing.assert_array_equal(sums, q.sum(axis=1))

    before = rng.integers(-(2**50), 2**50, (2, n_classes, n_classes))
    groups, labels = rng.integers(0, 2, len(weights)), rng.integers(0, n_classes, len(weights))
    pairs, expected, sums = before.copy(), before.copy(), np.empty(len(weights), np.int64)
    np.add.at(expected, (groups, labels), q)
    add(pairs, groups, labels, u, 2.0**bits, weights, sums)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_array_equal(sums, q.sum(axis=1))


@pytest.mark.parametrize("by_processor", [True, False])
def test_conversions_of_lanes(by_processor, monkeypatch):
    """With the processor's instructions and without them, whichever this one has."""
    monkeypatch.setattr(lanes, "_converts_lanes", lambda context: by_processor)

    @njit
    def to_floats(numbers, out):
        for i in range(numbers.shape[0]):
            as_floats(numbers, i, out)

    @njit
    def to_ints(numbers, multiple, out):
        for i in range(numbers.shape[0]):
            times_as_ints(numbers, i, multiple, out)

    rng = np.random.default_rng(0)
    powers = 2 ** np.arange(62)
    drawn = rng.integers(-(2**62), 2**62, 512) >> rng.integers(0, 62, 512)
    numbers = np.concatenate([powers, powers - 1, powers + 1, drawn, [0, 2**63 - 1]])
    numbers = np.concatenate([numbers, -numbers]).reshape(-1, 8)
    floats = np.empty(numbers.shape)
    to_floats(numbers, floats)
    np.testing.assert_array_equal(floats, numbers.astype(float))
    for multiple in (0, 1, 3, 256):
        whole = np.where(np.abs(floats) < 2.0**62 / max(multiple, 1), floats, 0.0)
        ints = np.empty(whole.shape, np.int64)
        to_ints(whole, multiple, ints)
        np.testing.assert_array_equal(ints, whole.astype(np.int64) * multiple)
