"""What a model is called, and who is told when it goes: name, id, destroy callbacks. Not its streams and tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.model.model import check_handle, require_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.model.model import Model
    from aclrt.stream.context import Context


def set_name(ctx: Context | None, model: Model, name: str) -> None:
    """aclmdlRISetName: the last name wins; no length is refused. Errors: TypeError, 107017, 107002, 107004.
    acl_semantics 1.2."""
    asked = "aclmdlRISetName"
    if not isinstance(name, str):
        raise TypeError(f"{asked}: name must be a str, not {type(name).__name__}")
    check_handle(model, asked)
    require_same(ctx, model, asked)
    model.name = name


def get_name(ctx: Context | None, model: Model, max_len: int) -> str:
    """aclmdlRIGetName: the empty string without a name. `max_len` is the room in bytes, end mark included.

    Errors: 107017, 107000 (no room at all), 107002, 107004, 507000 (too little room: the runtime does not truncate;
    recorded).
    """
    asked = "aclmdlRIGetName"
    check_handle(model, asked)
    if max_len <= 0:
        raise fail(Code.RT_PARAM_INVALID, asked, f"maxLen is {max_len}", "give room for the name and its end mark")
    require_same(ctx, model, asked)
    need = len(model.name.encode(errors="surrogatepass")) + 1
    if max_len < need:
        raise fail(Code.RT_INTERNAL_ERROR, asked, f"the name takes {need} bytes, maxLen is {max_len}", "give more room")
    return model.name


def get_id(model: Model) -> int:
    """aclmdlRIGetId: the device's number for the model. Errors: 107017."""
    check_handle(model, "aclmdlRIGetId")
    return model.id


def _callback_model(model: Model | None, fn: object, asked: str) -> Model:
    if model is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the model is NULL", "give a model")
    check_handle(model, asked)
    if fn is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the function is NULL", "give a function")
    model.check_root(asked)
    return model


def register_callback(model: Model | None, fn: Callable[[Any], object] | None, user_data: Any) -> None:
    """aclmdlRIDestroyRegisterCallback: `fn(user_data)` is called by the destroying task. One entry for each function.

    Errors: 107000 (NULL model or function, registered already), 107017, 207000 (branch). Source: acl_semantics 1.2.
    """
    asked = "aclmdlRIDestroyRegisterCallback"
    model = _callback_model(model, fn, asked)
    assert fn is not None
    if fn in model.callbacks:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{fn!r} is registered on {model.title()} already", "register a function once"
        )
    model.callbacks[fn] = user_data


def unregister_callback(model: Model | None, fn: Callable[[Any], object] | None) -> None:
    """aclmdlRIDestroyUnregisterCallback. Errors: 107000 (NULL, unknown function), 107017, 207000 (branch)."""
    asked = "aclmdlRIDestroyUnregisterCallback"
    model = _callback_model(model, fn, asked)
    if fn not in model.callbacks:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{fn!r} is not registered on {model.title()}", "register it first")
    assert fn is not None
    del model.callbacks[fn]


def run_callbacks(model: Model) -> list[BaseException]:
    """Call every function registered when the destroy began, in order of registration; returns what they raised.

    A callback may unregister itself or others, which are then not called, or register more, which this pass does not
    call.
    """
    raised: list[BaseException] = []
    for fn, user_data in list(model.callbacks.items()):
        if fn not in model.callbacks:
            continue
        try:
            fn(user_data)
        except Exception as error:  # the destroy goes on; the caller raises it afterwards
            raised.append(error)
    model.callbacks.clear()
    return raised
