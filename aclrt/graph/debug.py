"""The debug calls of a model: log lines, JSON file, dot file. Checks and writes; the texts are `views`'."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.graph.listing import list_model
from aclrt.model.model import check_handle, require_same
from aclrt.views import dot, dump

if TYPE_CHECKING:
    from aclrt.base.errors import AclError
    from aclrt.model.model import Model
    from aclrt.stream.context import Context

VERBOSE = 1


def debug_print(ctx: Context | None, model: Model) -> None:
    """aclmdlRIDebugPrint: lines to the logger "aclrt.debug". Errors: 107017, 107002, 107004. acl_semantics 12.1."""
    _check(ctx, model, "aclmdlRIDebugPrint")
    dump.debug_print(list_model(model))


def json_print(ctx: Context | None, model: Model, path: str, flags: int = 0) -> None:
    """aclmdlRIDebugJsonPrint: a chrome-trace file; flag 1 adds kernel arguments. acl_semantics 12.2.

    Errors: 107017, 107002, 107004, 107000 (the file cannot be opened).
    """
    asked = "aclmdlRIDebugJsonPrint"
    _check(ctx, model, asked)
    _check_path(asked, path)
    try:
        dump.json_print(list_model(model), path, verbose=bool(flags & VERBOSE))
    except OSError as error:
        raise _unwritable(asked, path, error.strerror or str(error)) from error


def dot_print(ctx: Context | None, model: Model, path: str) -> None:
    """aclmdlRIDebugDotPrint (seed acl-graph): dot text to a file. Errors: as `json_print`."""
    asked = "aclmdlRIDebugDotPrint"
    _check(ctx, model, asked)
    _check_path(asked, path)
    try:
        Path(path).write_text(dot.dot_text(list_model(model)), encoding="utf-8")
    except OSError as error:
        raise _unwritable(asked, path, error.strerror or str(error)) from error


def _check(ctx: Context | None, model: Model, asked: str) -> None:
    check_handle(model, asked)
    require_same(ctx, model, asked)


def _check_path(asked: str, path: str) -> None:
    """A text that no file system takes is a file that cannot be opened."""
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise _unwritable(asked, repr(path), "no file can have that name")


def _unwritable(asked: str, path: str, why: str) -> AclError:
    return fail(Code.RT_PARAM_INVALID, asked, f"cannot open {path}: {why}", "give a path that can be written")
