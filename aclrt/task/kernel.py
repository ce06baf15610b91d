"""A Kernel: a Python function or numpy ufunc that the device's cores run, and the binding of its launch arguments.

Not a launch: where it goes and when it runs is the stream's affair. Arguments cross to the device as an entry of its
argument table (the seeds' argLoaderRecord_), made here once per combination and found again at the next launch.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from typing import TYPE_CHECKING, Any, Generic, Literal, final, overload

import numpy as np

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.task import params as p
from aclrt.task.memory import DeviceArray
from hw.chips import Core, SqeFlag

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from typing_extensions import ParamSpec

    from aclrt.task.launcher import Launcher
    from hw.driver import Driver

    P = ParamSpec("P", default=...)
else:
    from typing import ParamSpec  # a default is for checkers: a bare `Kernel` is one of any signature

    P = ParamSpec("P")
Hot = set["Launcher"]  # the launchers that keep an SQE of some arguments
CoreName = Literal["aiv", "aic", "aicpu"]

CORES: dict[str, Core] = {"aiv": Core.AIV, "aic": Core.AIC, "aicpu": Core.AICPU}
CACHE_SIZE = 1024  # bindings kept per kernel and device
SCALAR_BINDINGS = 64  # of these, ever made with scalars: a kernel whose scalars keep changing stops asking for a place
ONE_SHOT = int(SqeFlag.ONE_SHOT)

_IMMUTABLE = (int, float, complex, np.generic)
_HOST_ARRAYS = (np.ndarray, bytes, bytearray, memoryview)  # a HostBuffer is a bytearray


@final
class Bound:
    """Launch arguments as the kernel will see them: numpy views and scalars, and the allocations the views are on.

    A kept one is found again by the same arguments. `live` is then (entry of the argument table, SQE flags) for live
    launches, None until one asked.
    """

    __slots__ = ("bases", "kept", "live", "scalars", "values")

    def __init__(self, values: tuple[Any, ...], bases: tuple[int, ...], scalars: tuple[tuple[int, Any], ...]) -> None:
        self.values = values
        self.bases = bases
        self.scalars = scalars  # (position, value): a key that is equal may still be another object (2, 2.0, True)
        self.kept = False
        self.live: tuple[int, int] | None = None

    def same(self, args: tuple[Any, ...]) -> bool:
        """Whether `args`, equal to those bound, hold the very same scalars."""
        # A loop, because `all(...)` costs five times as much on a path taken per launch.
        for position, value in self.scalars:  # noqa: SIM110
            if args[position] is not value:
                return False
        return True


@final
class DeviceSide:
    """What one kernel has on one device: its program, and the bindings made so far.

    Invariants: `watched` holds live allocations only, every base of a cached binding among them, so that a binding
    found here views live memory; an entry of the argument table is dropped only while the device is idle, because a
    queued task may still name it; `hot` (one table for all devices of a kernel) holds the kept bindings of device
    arrays alone that have an entry, for `task.launcher`.
    """

    __slots__ = ("__weakref__", "cache", "driver", "hot", "kernel", "program", "retired", "scalar_room", "watched")

    def __init__(self, driver: Driver, program: int, kernel: Kernel[Any]) -> None:
        self.driver = weakref.ref(driver)  # a kernel outlives devices
        self.program = program
        self.kernel = weakref.ref(kernel)
        self.hot = kernel.hot
        self.cache: dict[tuple[Any, ...], Bound] = {}
        self.retired: list[int] = []
        self.watched: set[int] = set()
        self.scalar_room = SCALAR_BINDINGS

    def memory_freed(self, base: int) -> None:
        """An allocation is gone: forget the bindings that view it."""
        self.watched.discard(base)
        for key in [key for key, bound in self.cache.items() if base in bound.bases]:
            self.retire(self.cache.pop(key))
            self.cool(key)

    def cool(self, args: tuple[Any, ...]) -> None:
        """No launcher may take a kept SQE of these arguments any more."""
        for launcher in self.hot.pop(args, ()):
            launcher.hot.pop((self.kernel(), *args), None)

    def retire(self, bound: Bound) -> None:
        bound.kept = False
        if bound.live is not None:
            self.retired.append(bound.live[0])

    def find(self, args: tuple[Any, ...]) -> Bound | None:
        """The kept binding of these very arguments."""
        try:
            bound = self.cache.get(args)
        except TypeError:  # something unhashable among them; binding will name it
            return None
        return bound if bound is not None and bound.same(args) else None

    def keep(self, driver: Driver, args: tuple[Any, ...], bound: Bound) -> None:
        """Keep a binding, if it is one that may come again."""
        if bound.scalars:
            if self.scalar_room == 0 or not all(isinstance(value, _IMMUTABLE) for _, value in bound.scalars):
                return
            if args in self.cache:  # equal scalars, other objects: leave the one that is there
                return
            self.scalar_room -= 1
        if len(self.cache) >= CACHE_SIZE:
            for old in self.cache.values():
                self.retire(old)
            for key in self.cache:
                self.cool(key)
            self.cache.clear()
        if self.retired and driver.idle():
            for handle in self.retired:
                driver.args_drop(handle)
            self.retired.clear()
        self.cache[args] = bound
        bound.kept = True


@final
class Kernel(Generic[P]):
    """A registered kernel. Calling it runs the plain function on numpy arrays, now; a stream launches it.

    `fn` is the very object the device calls. `cost_ns` is device time under the virtual clock, a number or a function
    of the arguments as the kernel sees them.
    """

    __name__: str
    __wrapped__: Callable[..., Any]
    fused = False

    def __init__(
        self,
        fn: Callable[..., Any],
        core: CoreName,
        cost_ns: int | Callable[..., int],
        name: str | None,
        offload: bool | None,
    ) -> None:
        self.fn = fn
        self.core: CoreName = core
        self.cost_ns = cost_ns
        self.offload = offload
        functools.update_wrapper(self, fn)
        self.name = name or str(getattr(fn, "__name__", type(fn).__name__))
        self._params: tuple[p.Param, ...] | None = None
        self._rest: p.Param | None = None
        self._sides: weakref.WeakKeyDictionary[Driver, DeviceSide] = weakref.WeakKeyDictionary()
        self._side: DeviceSide | None = None  # of the driver used last
        self.hot: dict[tuple[Any, ...], Hot] = {}
        self._checked: set[tuple[Any, ...]] = set()  # signatures a ufunc accepted

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self.fn(*args, **kwargs)

    @property
    def params(self) -> tuple[p.Param, ...]:
        """What each parameter takes. Annotations are resolved at first use, so that they may name later things."""
        if self._params is None:
            if isinstance(self.fn, np.ufunc):
                self._params = p.of_ufunc(self.fn)
            else:
                self._params, self._rest = p.of_function(self.fn)
        return self._params

    def program(self, driver: Driver) -> int:
        """The program id of this kernel on a device, loaded at first use."""
        return self._on(driver).program

    def arguments(self, driver: Driver, args: tuple[Any, ...]) -> tuple[int, int]:
        """For a live launch: (entry of the device's argument table, SQE flags). Errors as for `bind`.

        A repeated launch with the same device arrays finds its entry again; otherwise the entry is one-shot. A captured
        task must have an entry of its own, which an update may change: it uses `bind`.
        """
        side = self._side
        if side is None or side.driver() is not driver:
            side = self._on(driver)
        try:
            bound = side.cache.get(args)
        except TypeError:  # something unhashable among them; binding will name it
            bound = None
        if bound is not None and bound.live is not None and (not bound.scalars or bound.same(args)):
            return bound.live
        bound = self.bind(driver, args)
        entry = driver.args_put(bound.values, bound.bases)
        if not bound.kept:
            return entry, ONE_SHOT
        bound.live = (entry, 0)
        if not bound.scalars:
            self.hot[args] = set()
        return bound.live

    def bind(self, driver: Driver, args: tuple[Any, ...]) -> Bound:
        """Check launch arguments and turn device arrays into numpy views.

        TypeError names the parameter of a wrong type, dtype or count; ValueError that of a shape a ufunc cannot take;
        AclError 107000 a freed array, or one of another device.
        """
        side = self._on(driver)
        bound = side.find(args)
        if bound is None:
            bound = self._bind(driver, side, args)
            side.keep(driver, args, bound)
        return bound

    def _bind(self, driver: Driver, side: DeviceSide, args: tuple[Any, ...]) -> Bound:
        values: list[Any] = []
        bases: list[int] = []
        scalars: list[tuple[int, Any]] = []
        watched = side.watched
        params = self.params
        pairs = zip(params, args, strict=True) if len(args) == len(params) else self._match(args)
        for position, (param, arg) in enumerate(pairs):
            if isinstance(arg, DeviceArray):
                due = param.dtype
                known = arg.base in watched and arg.driver is driver and param.takes_array
                if not known or (due is not None and due is not arg.data.dtype):
                    self._check_array(driver, param, arg)
                    if arg.base not in watched:
                        driver.watch(arg.base, side)
                        watched.add(arg.base)
                values.append(arg.readonly if param.access is p.Access.IN else arg.data)
                if arg.base not in bases:
                    bases.append(arg.base)
            else:
                self._check_scalar(param, arg)
                values.append(arg)
                if position < len(args):
                    scalars.append((position, arg))
        if isinstance(self.fn, np.ufunc):
            self._check_ufunc(self.fn, values)
        return Bound(tuple(values), tuple(bases), tuple(scalars))

    def _match(self, args: tuple[Any, ...]) -> list[tuple[p.Param, Any]]:
        """Pair parameters with arguments, filling in defaults."""
        params = self.params
        matched = list(zip(params, args, strict=False))
        if len(args) > len(params) and self._rest is not None:
            matched += [(self._rest, arg) for arg in args[len(params) :]]
        missing = params[len(args) :]
        if len(args) > len(matched) or any(param.required for param in missing):
            names = ", ".join(param.name for param in params)
            raise TypeError(f"launch of {self.name}: it takes {len(params)} arguments ({names}), {len(args)} given")
        return matched + [(param, param.default) for param in missing]

    def _check_array(self, driver: Driver, param: p.Param, arg: DeviceArray) -> None:
        if not param.takes_array:
            raise self._wrong(param, f"the device array {arg!r}")
        if not param.fits(arg.dtype):
            raise self._wrong(param, f"one of {arg.dtype}")
        if arg.driver is not driver:
            met = f"parameter {param.name} is {arg!r} of another device"
            raise fail(Code.RT_PARAM_INVALID, f"launch of {self.name}", met, "pass an array of the stream's device")
        if arg.freed:
            met = f"parameter {param.name} is {arg!r}"
            raise fail(Code.RT_PARAM_INVALID, f"launch of {self.name}", met, "do not use it after free")

    def _check_scalar(self, param: p.Param, arg: object) -> None:
        if isinstance(arg, _HOST_ARRAYS):
            kind = type(arg).__name__
            todo = "; upload it with Device.array" if param.takes_array else ""
            raise self._wrong(param, f"a host array ({kind}){todo}")
        if param.scalar is None:
            todo = "; make it a window with aclrt.view" if type(arg) is int else ""
            raise self._wrong(param, f"{arg!r}{todo}")
        if not isinstance(arg, param.scalar):
            raise self._wrong(param, repr(arg))

    def _wrong(self, param: p.Param, got: str) -> TypeError:
        return TypeError(f"launch of {self.name}: parameter {param.name} takes {param.due()}, not {got}")

    def _check_ufunc(self, fn: np.ufunc, values: list[Any]) -> None:
        """What the ufunc would refuse when it runs, refused at the launch."""
        dtypes = tuple([_dtype_for_ufunc(value) for value in values])
        shapes = tuple([value.shape if isinstance(value, np.ndarray) else () for value in values])
        if (dtypes, shapes) in self._checked:
            return
        try:
            fn.resolve_dtypes(dtypes, casting="same_kind")
        except TypeError as error:
            raise TypeError(f"launch of {self.name}: dtypes {[str(d) for d in dtypes]} do not fit: {error}") from error
        if fn.signature is None:
            for param, out in zip(self.params[fn.nin :], shapes[fn.nin :], strict=True):
                try:
                    fits = np.broadcast_shapes(*shapes[: fn.nin], out) == out
                except ValueError:
                    fits = False
                if not fits:
                    met = f"shape {out} of {param.name} does not take inputs of {list(shapes[: fn.nin])}"
                    raise ValueError(f"launch of {self.name}: {met}")
        if len(self._checked) < CACHE_SIZE:
            self._checked.add((dtypes, shapes))

    def _on(self, driver: Driver) -> DeviceSide:
        """This kernel's side on `driver`, made at first use."""
        side = self._side
        if side is None or side.driver() is not driver:
            side = self._sides.get(driver)
            if side is None:
                program = driver.load(
                    self.fn, core=CORES[self.core], name=self.name, cost_ns=self.cost_ns, offload=self.offload
                )
                side = self._sides[driver] = DeviceSide(driver, program, self)
            self._side = side
        return side

    def __repr__(self) -> str:
        return f"<Kernel {self.name} {self.core}, on {len(self._sides)} devices>"


def _dtype_for_ufunc(value: Any) -> Any:
    kind = type(value)
    return kind if kind in (int, float, complex) else getattr(value, "dtype", None) or np.result_type(value)


@overload
def kernel(
    fn: np.ufunc,
    /,
    *,
    core: CoreName = "aiv",
    cost_ns: int | Callable[..., int] = 0,
    name: str | None = None,
    offload: bool | None = None,
) -> Kernel[...]: ...
@overload
def kernel(
    fn: Callable[P, Any],
    /,
    *,
    core: CoreName = "aiv",
    cost_ns: int | Callable[..., int] = 0,
    name: str | None = None,
    offload: bool | None = None,
) -> Kernel[P]: ...
@overload
def kernel(
    fn: None = None,
    /,
    *,
    core: CoreName = "aiv",
    cost_ns: int | Callable[..., int] = 0,
    name: str | None = None,
    offload: bool | None = None,
) -> Callable[[Callable[P, Any]], Kernel[P]]: ...
def kernel(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    core: CoreName = "aiv",
    cost_ns: int | Callable[..., int] = 0,
    name: str | None = None,
    offload: bool | None = None,
) -> Any:
    """Make a kernel of a function or a numpy ufunc; as `@kernel`, `@kernel(core=...)` or `kernel(np.add)`.

    `core`: where it runs, and so the code of its failure: "aiv" 507035, "aic" 507015, "aicpu" 507018. `cost_ns`: its
    device time under the virtual clock. `offload`: on a worker thread, always (True), never, or by measurement (None).
    """
    if core not in CORES:
        raise ValueError(f"kernel: core is {core!r}; use one of {', '.join(CORES)}")
    if not callable(cost_ns) and (not isinstance(cost_ns, int) or cost_ns < 0):
        raise ValueError(f"kernel: cost_ns is {cost_ns!r}; give whole nanoseconds, or a function of the arguments")

    def make(fn: Callable[..., Any], frame: FrameType) -> Kernel[...]:
        if isinstance(fn, Kernel):
            raise TypeError(f"kernel: {fn!r} is one already; pass its `.fn`")
        if not callable(fn) or inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
            raise TypeError(f"kernel: {fn!r} is not a plain function; a core runs it to its end in one call")
        p.resolve_local(fn, frame)
        return Kernel(fn, core, cost_ns, name, offload)

    if fn is not None:
        return make(fn, sys._getframe(1))
    return lambda fn: make(fn, sys._getframe(1))
