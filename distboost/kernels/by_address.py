"""Calls of kernels by the address of their machine code: a kernel that calls others so is soon compiled: these are not again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from numba import typeof, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic


def kinds_of(*arguments: Any) -> tuple[Any, ...]:
    """Return Numba's types of some arguments."""
    return tuple(typeof(argument) for argument in arguments)


def address_of(dispatcher: Any, kinds: Sequence[Any]) -> int:
    """Return the address of a kernel's machine code for arguments of these types, in this process."""
    dispatcher.compile(tuple(kinds))  # or loads it
    compiled = dispatcher.overloads[tuple(kinds)]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


@cache
def caller(kinds: tuple[Any, ...]) -> Any:
    """Return a function f(address, arguments), for kernels, that calls the code for such a tuple of arguments at an address.

    The code returns nothing.
    """

    def call(typingctx, address, arguments):
        if len(arguments) != len(kinds):
            raise TypingError(f"{len(kinds)} arguments are wanted, not {len(arguments)}")
        for given, kind in zip(arguments, kinds, strict=True):
            if typingctx.can_convert(given, kind) is None:
                raise TypingError(f"{given} is not {kind}")

        def codegen(context, builder, signature, args):
            given = zip(cgutils.unpack_tuple(builder, args[1]), signature.args[1], kinds, strict=True)
            values = [context.cast(builder, *one) for one in given]
            code = context.call_conv.get_function_type(types.none, kinds)
            callee = builder.inttoptr(args[0], code.as_pointer())
            status, _ = context.call_conv.call_function(builder, callee, types.none, kinds, values)
            with builder.if_then(status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(types.int64, arguments), codegen

    return intrinsic(call)
