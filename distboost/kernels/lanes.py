"""What the intrinsics emit for eight lanes of a row, or for one number of it.

Numba does not vectorise the short loops over classes inside the loop over rows. So intrinsics emit vector operations, which LLVM
translates to the instructions that the processor has. The results are the same on all processors.

The loops over a row's lanes are inside the intrinsics: loops in Numba's code would count references to the arrays, row by row.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

LANES = 8
SUM_LANES = 4  # of the 64-bit sums of histograms: so these take less memory
F64, I64, I32 = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
FLOATS, INTS = ir.VectorType(F64, LANES), ir.VectorType(I64, LANES)
BITS_FROM = 1.5 * 2.0**52  # n is in the last bits of BITS_FROM + n, |n| < 2^51
BITS = 0x4338000000000000  # those of BITS_FROM
_BYTES = {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
BYTE_POINTER = ir.IntType(8).as_pointer()
INDEX = types.intp


def i64(number):
    return ir.Constant(I64, number)


def constant(number, n=LANES):
    """Return lanes that all hold a constant, a float or an int."""
    own = F64 if isinstance(number, float) else I64
    return ir.Constant(ir.VectorType(own, n), [ir.Constant(own, number)] * n)


def spread(builder, number, n=LANES):
    """Return lanes that all hold `number`."""
    undefined = ir.Constant(ir.VectorType(number.type, n), ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, n), [0] * n))


def like(builder, number, x):
    """Return `number` in as many lanes as x has, or alone."""
    return spread(builder, number) if isinstance(x.type, ir.VectorType) else number


def numbered(builder, first, x):
    """Return first, first + 1, .. in as many lanes as x has, or `first` alone."""
    if not isinstance(x.type, ir.VectorType):
        return first
    n = x.type.count
    return builder.add(spread(builder, first, n), ir.Constant(ir.VectorType(I64, n), list(range(n))))


def as_float64(builder, x):
    if x.type in (F64, FLOATS):
        return x
    return builder.fpext(x, FLOATS if isinstance(x.type, ir.VectorType) else F64)


def call(builder, name, result, *args):
    """Call an intrinsic function of LLVM."""
    signature = ir.FunctionType(result, [arg.type for arg in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}"), args)


def of_lanes(builder, name, x, *others):
    """Call an intrinsic function of LLVM for each lane of x and of the others, or for these numbers."""
    lanes = f"v{x.type.count}f64" if isinstance(x.type, ir.VectorType) else "f64"
    return call(builder, f"{name}.{lanes}", x.type, x, *others)


def _converts_lanes(context):
    """Return whether the processor converts lanes of int64 from and to float64. Without AVX-512, x86 converts one by one."""
    triple, _, features = context.codegen().magic_tuple()
    return not triple.startswith("x86") or "+avx512dq" in features


def times_as_ints(context, builder, x, multiple):
    """Return int(x) multiple, of lanes or of one number: x is whole, |x| < 2^62 and 0 <= multiple < 2^19.

    Without the processor's help, x = high 2^32 + low, and the bits of BITS_FROM + n, as a number, are those of BITS_FROM plus n.
    """
    if not isinstance(x.type, ir.VectorType):
        return builder.mul(builder.fptosi(x, I64), multiple)
    if _converts_lanes(context):
        return builder.mul(builder.fptosi(x, INTS), spread(builder, multiple))
    weight = spread(builder, builder.sitofp(multiple, F64))
    high = of_lanes(builder, "floor", builder.fmul(x, constant(2.0**-32)))
    low = of_lanes(builder, "fmuladd", high, constant(-(2.0**32)), x)
    # All products and sums are exact, whether fused or not.
    from_ = constant(BITS_FROM)
    sums = (of_lanes(builder, "fmuladd", n, weight, from_) for n in (high, low))
    high, low = (builder.bitcast(lanes, INTS) for lanes in sums)
    whole = builder.add(builder.shl(high, constant(32)), low)  # the lower 32 bits of BITS are 0
    return builder.sub(whole, constant(BITS))


def as_floats(context, builder, x):
    """Return lanes of int64 as float64, rounded once.

    Without the processor's help, x = high 2^32 + low with low >= 0: the bits of 2^52 + low are those of 2^52 plus low, and the
    bits of 2^84 + 2^63 + high 2^32 are those of 2^84 plus high + 2^31.
    """
    floats = ir.VectorType(F64, x.type.count)
    if _converts_lanes(context):
        return builder.sitofp(x, floats)
    low = builder.or_(
        builder.and_(x, constant(2**32 - 1, x.type.count)), constant(0x4330000000000000, x.type.count)
    )
    high = builder.xor(
        builder.lshr(x, constant(32, x.type.count)), constant(0x4530000080000000, x.type.count)
    )
    high = builder.fsub(
        builder.bitcast(high, floats), constant(2.0**84 + 2.0**63 + 2.0**52, x.type.count)
    )  # exact
    return builder.fadd(high, builder.bitcast(low, floats))


def sum_of(builder, lanes):
    """Return the sum of eight lanes, int64."""
    return call(builder, f"vector.reduce.add.v{LANES}i64", I64, lanes)


def require_contiguous(*arrays):
    for array in arrays:
        if array.layout != "C":
            raise TypingError("lanes are read from C-contiguous arrays only")


def row_of(context, builder, typ, array, *index):
    """Return the address of the row array[index], the number of elements from there to the array's end, and the row's length."""
    view = cgutils.create_struct_proxy(typ)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, view.shape)
    offset = i64(0)
    for length, i in zip(shape[1:], index, strict=True):
        offset = builder.mul(builder.add(offset, i), length)
    return builder.gep(view.data, [offset]), builder.sub(view.nitems, offset), shape[-1]


def place_of(context, builder, typ, array, row, column):
    """Return the address of array[row, column]."""
    return builder.gep(row_of(context, builder, typ, array, row)[0], [column])


def prefetched(builder, address):
    """Begin to bring the line of an address into the cache, while other work goes on."""
    address = builder.bitcast(address, BYTE_POINTER)
    read, keep, data = (ir.Constant(I32, flag) for flag in (0, 3, 1))
    signature = ir.FunctionType(ir.VoidType(), [address.type, I32, I32, I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], signature)
    builder.call(function, [address, read, keep, data])


def load(builder, address, n=LANES):
    """Load lanes."""
    lanes = ir.VectorType(address.type.pointee, n)
    return builder.load(builder.bitcast(address, lanes.as_pointer()), align=_BYTES[str(address.type.pointee)])


def store(builder, lanes, address):
    """Store lanes, or one number."""
    builder.store(
        lanes, builder.bitcast(address, lanes.type.as_pointer()), align=_BYTES[str(address.type.pointee)]
    )


def lanes_of(builder, width, n=LANES):
    """Loop over the first of every n lanes of `width`."""
    return cgutils.for_range_slice(builder, i64(0), width, i64(n), inc=True)


def change_row(builder, target, width, added):
    """Set target[k] = added(target[k], k, load) for all k < width, for eight lanes at a time and then one by one."""
    n_whole = builder.and_(width, i64(-LANES))
    with lanes_of(builder, n_whole) as (k, _):
        place = builder.gep(target, [k])
        old = load(builder, place)
        store(builder, added(old, k, load), place)
    with cgutils.for_range_slice(builder, n_whole, width, i64(1), inc=True) as (k, _):
        place = builder.gep(target, [k])
        builder.store(added(builder.load(place), k, lambda b, address: b.load(address)), place)


def each_score(builder, row, n_left, width, emit):
    """Emit code for all scores of a row: emit(k, F) for eight lanes F from k on, of which the last reach beyond the row.

    `n_left` is the number of elements from the row to the array's end. If the lanes would reach beyond it, F is one number.
    """
    padded_width = builder.and_(builder.add(width, i64(LANES - 1)), i64(-LANES))
    with builder.if_else(builder.icmp_signed("<=", padded_width, n_left), likely=True) as (then, otherwise):
        with then, lanes_of(builder, width) as (k, _):
            emit(k, load(builder, builder.gep(row, [k])))
        with otherwise, cgutils.for_range(builder, width) as loop:
            emit(loop.index, builder.load(builder.gep(row, [loop.index])))
