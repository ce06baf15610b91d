"""Parameters of a kernel: what each one takes, read from its annotation. Binds nothing and launches nothing."""

from __future__ import annotations

import inspect
import typing
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_T = TypeVar("_T", bound=np.generic)


@final
class Access(Enum):
    """What a kernel does with a parameter. ANY is an unannotated one: an array it may write, or a scalar."""

    IN = "In"
    OUT = "Out"
    INOUT = "InOut"
    SCALAR = "scalar"
    ANY = "any"


In = Annotated[npt.NDArray[_T], Access.IN]
"""A device array the kernel only reads; it sees a read-only view."""
Out = Annotated[npt.NDArray[_T], Access.OUT]
"""A device array the kernel writes without reading it."""
InOut = Annotated[npt.NDArray[_T], Access.INOUT]
"""A device array the kernel reads and writes."""

_ABSTRACT = frozenset(
    {np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating}
    | {np.complexfloating, np.flexible, np.character}
)
_REQUIRED = inspect.Parameter.empty
_REAL = (float, int, np.integer, np.floating, np.bool_)
_SCALARS: dict[type, tuple[type, ...]] = {  # the annotation itself first
    float: _REAL,
    int: (int, np.integer, np.bool_),
    bool: (bool, np.bool_),
    complex: (complex, *_REAL, np.complexfloating),
}


@final
class Param:
    """One parameter. `dtype` is a dtype, an abstract numpy type, or None for any; `scalar` the types of a scalar."""

    __slots__ = ("access", "default", "dtype", "name", "scalar", "takes_array")

    def __init__(
        self,
        name: str,
        access: Access,
        dtype: np.dtype[Any] | type[np.generic] | None = None,
        scalar: tuple[type, ...] | None = None,
        default: Any = _REQUIRED,
    ) -> None:
        self.name = name
        self.access = access
        self.dtype = dtype
        self.scalar = scalar  # None: no scalar here
        self.default = default
        self.takes_array = access is not Access.SCALAR

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED

    @property
    def takes_scalar(self) -> bool:
        return self.scalar is not None

    def fits(self, dtype: np.dtype[Any]) -> bool:
        """Whether a device array of `dtype` may be passed."""
        if self.dtype is None:
            return True
        if isinstance(self.dtype, np.dtype):
            return dtype == self.dtype
        return issubclass(dtype.type, self.dtype)

    def due(self) -> str:
        """What it takes, for an error text."""
        if self.access is Access.SCALAR:
            return f"a scalar ({self.scalar[0].__name__})" if self.scalar else "a scalar"
        kind = ""
        if self.dtype is not None:
            kind = f" of {self.dtype if isinstance(self.dtype, np.dtype) else self.dtype.__name__}"
        return f"a device array{kind}" + (" or a scalar" if self.takes_scalar else "")

    def __repr__(self) -> str:
        return f"<Param {self.name}: {self.access.value}, {self.due()}>"


def of_ufunc(fn: np.ufunc) -> tuple[Param, ...]:
    """Parameters of a numpy ufunc: its inputs (array or scalar), then its outputs, all positional."""
    ins = [Param(f"x{i + 1}" if fn.nin > 1 else "x", Access.IN, None, (object,)) for i in range(fn.nin)]
    outs = [Param(f"out{i + 1}" if fn.nout > 1 else "out", Access.OUT) for i in range(fn.nout)]
    return (*ins, *outs)


def of_function(fn: Callable[..., Any]) -> tuple[tuple[Param, ...], Param | None]:
    """Parameters of a function, and what its `*args` take (None without them). TypeError for keyword-only ones.

    A builtin without a signature takes anything.
    """
    try:
        signature = inspect.signature(fn)
    except ValueError:
        return (), Param("args", Access.ANY, None, (object,))
    hints = _hints(fn)
    params: list[Param] = []
    rest: Param | None = None
    for name, parameter in signature.parameters.items():
        param = _param(name, hints.get(name, _REQUIRED), parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = param
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            params.append(param)
        elif param.required:
            raise TypeError(f"kernel {fn.__name__}: parameter {name} is keyword-only; a launch passes by position")
    return tuple(params), rest


def resolve_local(fn: Callable[..., Any], frame: FrameType) -> None:
    """Resolve string annotations that name locals of `frame`, the function in which `fn` is being made a kernel.

    The others stay strings until the first launch, so that they may name what a module defines later. A frame's locals
    are looked at only if some name needs them: that look keeps them alive until the frame ends.
    """
    annotations = getattr(fn, "__annotations__", {})
    scope = getattr(fn, "__globals__", {})
    if frame.f_code.co_name == "<module>":
        return
    for name, value in annotations.items():
        if isinstance(value, str):
            try:
                eval(value, scope)
            except (NameError, AttributeError):
                try:
                    annotations[name] = eval(value, scope, dict(frame.f_locals))
                except (NameError, AttributeError):
                    continue


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn, include_extras=True)
    except (NameError, AttributeError) as error:
        text = f"kernel {fn.__name__}: cannot resolve its annotations ({error}); import the name at the top"
        raise TypeError(text) from error


def _param(name: str, hint: Any, default: Any) -> Param:
    if hint in (_REQUIRED, Any, object):
        return Param(name, Access.ANY, None, (object,), default)
    access: Access | None = None
    if typing.get_origin(hint) is Annotated:
        access = next((mark for mark in hint.__metadata__ if isinstance(mark, Access)), None)
        hint = hint.__origin__
    if typing.get_origin(hint) is np.ndarray:
        return Param(name, access or Access.INOUT, _dtype(hint), None, default)
    if isinstance(hint, type):
        if issubclass(hint, np.ndarray):
            return Param(name, access or Access.INOUT, None, None, default)
        if hint in _SCALARS:
            return Param(name, Access.SCALAR, None, _SCALARS[hint], default)
        if issubclass(hint, np.generic):
            return Param(name, Access.SCALAR, None, (hint, *_REAL, complex, np.generic), default)
        return Param(name, Access.SCALAR, None, (hint,), default)
    return Param(name, Access.ANY, None, (object,), default)


def _dtype(hint: Any) -> np.dtype[Any] | type[np.generic] | None:
    """The dtype in ndarray[shape, dtype[T]], or None when T is open."""
    inner = typing.get_args(typing.get_args(hint)[1])
    kind = inner[0] if inner else None
    kind = typing.get_origin(kind) or kind  # floating[Any] is floating
    if kind in _ABSTRACT:
        return typing.cast("type[np.generic]", kind)
    return np.dtype(kind) if isinstance(kind, type) and kind is not Any else None
