"""The recorded operations on captures, models and their tasks, one method each.

Not a runtime: a method looks its names up, makes the one public call and notes what came back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aclrt
from aclrt import acl

from .names import NBYTES, Args, Names, Out

if TYPE_CHECKING:
    from collections.abc import Awaitable

NO_SUCH_TASK = -1


class GraphCalls(Names):
    """What a recording does with captures and models."""

    # capture

    def capture_begin(self, a: Args, out: Out) -> None:
        acl.aclmdlRICaptureBegin(self.streams.get(a["s"]), a["mode"])

    def capture_end(self, a: Args, out: Out) -> None:
        self.known(acl.aclmdlRICaptureEnd(self.streams.get(a["s"])), out, a.get("out"))

    def capture_to_model_begin(self, a: Args, out: Out) -> None:
        acl.aclmdlRICaptureToModelRIBegin(self.streams.get(a["s"]), self.models.get(a["m"]), a["mode"])

    def get_info(self, a: Args, out: Out) -> None:
        info = acl.aclmdlRICaptureGetInfo(self.streams.get(a["s"]))
        out["status"] = int(info.status)
        self.known(info.modelRI, out, a.get("out"))

    def exchange_mode(self, a: Args, out: Out) -> None:
        out["old"] = int(acl.aclmdlRICaptureThreadExchangeMode(None if a.get("null") else a["mode"]))

    def add_to_model(self, a: Args, out: Out) -> None:
        acl.rtStreamAddToModel(self.streams.get(a["s"]), self.models.get(a["m"]))

    def task_grp_begin(self, a: Args, out: Out) -> None:
        acl.aclmdlRICaptureTaskGrpBegin(self.streams.get(a["s"]))

    def task_grp_end(self, a: Args, out: Out) -> None:
        group = acl.aclmdlRICaptureTaskGrpEnd(self.streams.get(a["s"]))
        out["group"] = "set" if group is not None else "null"
        self.groups[a["out"]] = group

    def task_update_begin(self, a: Args, out: Out) -> None:
        acl.aclmdlRICaptureTaskUpdateBegin(self.streams.get(a["s"]), self.groups.get(a["g"]))

    def task_update_end(self, a: Args, out: Out) -> None:
        acl.aclmdlRICaptureTaskUpdateEnd(self.streams.get(a["s"]))

    def cond_handle_create(self, a: Args, out: Out) -> None:
        model = self.models.get(a["m"])
        self.conditions[a["out"]] = acl.aclmdlRICondHandleCreate(model, a.get("default", 0), a.get("flag", 0))

    def cond_get_ptr(self, a: Args, out: Out) -> None:
        out["ptr"] = bool(acl.aclmdlRICondHandleGetCondPtr(self.conditions.get(a["h"])))

    def add_cond_task(self, a: Args, out: Out) -> None:
        out["models"] = 0
        params = acl.aclmdlRICondTaskParams(handle=self.conditions.get(a["h"]), type=a["type"], size=a["size"])
        models = acl.aclmdlRIAddCondTask(params, self.streams.get(a["s"]), a["flags"])
        out["models"] = len(models)
        self.models.update(zip(a["out"], models, strict=False))

    # models

    def build_begin(self, a: Args, out: Out) -> None:
        self.models[a["out"]] = acl.aclmdlRIBuildBegin(a.get("flag", 0))

    def bind(self, a: Args, out: Out) -> None:
        acl.aclmdlRIBindStream(self.models.get(a["m"]), self.streams.get(a["s"]), a.get("flag", 0))

    def unbind(self, a: Args, out: Out) -> None:
        acl.aclmdlRIUnbindStream(self.models.get(a["m"]), self.streams.get(a["s"]))

    def end_task(self, a: Args, out: Out) -> None:
        acl.aclmdlRIEndTask(self.models.get(a["m"]), self.streams.get(a["s"]))

    def build_end(self, a: Args, out: Out) -> None:
        acl.aclmdlRIBuildEnd(self.models.get(a["m"]), 1 if a.get("reserve") else None)

    def execute_async(self, a: Args, out: Out) -> None:
        acl.aclmdlRIExecuteAsync(self.models.get(a["m"]), self.streams.get(a["s"]))

    def execute(self, a: Args, out: Out) -> Awaitable[None]:
        return acl.aclmdlRIExecute(self.models.get(a["m"]), a["timeout"])

    def destroy_model(self, a: Args, out: Out) -> Awaitable[None]:
        return acl.aclmdlRIDestroy(self.models.get(a["m"]))

    def abort_model(self, a: Args, out: Out) -> Awaitable[None]:
        return acl.aclmdlRIAbort(self.models.get(a["m"]))

    def update_model(self, a: Args, out: Out) -> None:
        acl.aclmdlRIUpdate(self.models.get(a["m"]))

    def debug_print(self, a: Args, out: Out) -> None:
        acl.aclmdlRIDebugPrint(self.models.get(a["m"]))

    def json_print(self, a: Args, out: Out) -> None:
        path = a.get("path") or str(Path(tempfile.gettempdir(), "aclrt-recorded.json"))
        acl.aclmdlRIDebugJsonPrint(self.models.get(a["m"]), path, a.get("flags", 0))

    def set_name(self, a: Args, out: Out) -> None:
        acl.aclmdlRISetName(self.models.get(a["m"]), a.get("name", "name"))

    def get_name(self, a: Args, out: Out) -> None:
        out["name"] = acl.aclmdlRIGetName(self.models.get(a["m"]), a.get("max", NBYTES))

    # the lists of a model, and the tasks in them

    def get_streams(self, a: Args, out: Out) -> None:
        out["n"] = a.get("cap", 0)
        model = self.models.get(a["m"])
        streams = acl.aclmdlRIGetStreams(model, a["cap"]) if "cap" in a else acl.aclmdlRIGetStreams(model)
        out["n"] = len(streams)

    def get_tasks_of_stream(self, a: Args, out: Out) -> None:
        out["n"] = len(acl.aclmdlRIGetTasksByStream(self.streams.get(a["s"])))

    def _listing(self, a: Args) -> list[list[Any]]:
        streams = acl.aclmdlRIGetStreams(self.models.get(a["m"]))
        return [acl.aclmdlRIGetTasksByStream(stream) for stream in streams]

    def _task(self, a: Args, out: Out) -> Any:
        out["pre"] = True
        listing = self._listing(a)
        del out["pre"]
        stream, task = a.get("si", 0), a.get("ti", 0)
        return listing[stream][task] if stream < len(listing) and task < len(listing[stream]) else None

    def model_tasks(self, a: Args, out: Out) -> None:
        """Types of all tasks; a recording writes a task whose type was refused as the negative code."""
        listing = self._listing(a)
        out["streams"] = [[_type_of(task) for task in tasks] for tasks in listing]

    def task_seq_ids(self, a: Args, out: Out) -> int | None:
        """The recording's output variables are 0 before each call, and a refused call leaves them so."""
        refused: int | None = None
        out["pre"] = True
        listing = self._listing(a)
        del out["pre"]
        out["seq"] = [[0] * len(tasks) for tasks in listing]
        for ids, tasks in zip(out["seq"], listing, strict=True):
            for at, task in enumerate(tasks):
                try:
                    ids[at] = acl.aclmdlRITaskGetSeqId(task)
                except aclrt.AclError as error:
                    refused = error.code
        return refused

    def task_get_params(self, a: Args, out: Out) -> int | None:
        task = self._task(a, out)
        if task is None:
            return NO_SUCH_TASK
        params = acl.aclmdlRITaskGetParams(task)
        out["type"] = int(params.type)
        out["grp"] = params.taskGrp is not None
        return None

    def task_disable(self, a: Args, out: Out) -> int | None:
        task = self._task(a, out)
        if task is None:
            return NO_SUCH_TASK
        acl.aclmdlRITaskDisable(task)
        return None

    def task_set_value(self, a: Args, out: Out) -> int | None:
        task = self._task(a, out)
        if task is None:
            return NO_SUCH_TASK
        params = acl.aclmdlRITaskParams()
        if a.get("wait"):
            params.type = acl.ACL_MODEL_RI_TASK_VALUE_WAIT
            params.valueWaitTaskParams.devAddr = self.buffer("d0")
            params.valueWaitTaskParams.value = 0
            params.valueWaitTaskParams.flag = 0
        else:
            params.type = acl.ACL_MODEL_RI_TASK_VALUE_WRITE
            params.valueWriteTaskParams.devAddr = self.buffer("d0")
            params.valueWriteTaskParams.value = 1
        acl.aclmdlRITaskSetParams(task, params)
        return None

    def task_set_kernel(self, a: Args, out: Out) -> int | None:
        """Reads the task's parameters and writes them back with their type; empty ones where there are none to read."""
        task = self._task(a, out)
        if task is None:
            return NO_SUCH_TASK
        try:
            params = acl.aclmdlRITaskGetParams(task)
        except aclrt.AclError as error:
            out["get"] = error.code
            params = acl.aclmdlRITaskParams()
        acl.aclmdlRITaskSetParams(task, params)
        return None


def _type_of(task: Any) -> int:
    try:
        return int(acl.aclmdlRITaskGetType(task))
    except aclrt.AclError as error:
        return -error.code
