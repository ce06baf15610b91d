"""A Hypothesis machine over the life of normal models, against a reference written here from the rules alone.

The reference knows which code each call gives, what every execution adds to each stream's counter, and which runs would
never end; it shares nothing with the runtime.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import aclrt
from aclrt import acl
from hw.driver import IdKind

HEAD, DEFAULT = 0, 0x7FFFFFFF
STREAMS, MODELS = 4, 3  # stream 3 is not persistent


@aclrt.kernel
def one(x: aclrt.InOut[np.int64]) -> None:
    x += 1


@dataclass(eq=False)
class RefStream:
    """`tasks`: "add", or the model whose end it marks. `sent`: the part of it that is on the device."""

    persistent: bool
    alive: bool = True
    model: RefModel | None = None
    tasks: list[Any] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    counter: int = 0


@dataclass(eq=False)
class RefModel:
    alive: bool = True
    streams: list[RefStream] = field(default_factory=list)
    heads: list[RefStream] = field(default_factory=list)
    ended: bool = False
    loaded: bool = False

    def send(self) -> None:
        for stream in self.streams:
            stream.sent = list(stream.tasks)

    def leave(self, stream: RefStream) -> None:
        self.streams.remove(stream)
        if stream in self.heads:
            self.heads.remove(stream)
        stream.model, stream.sent = None, []

    def run(self) -> bool:
        """One execution; False when nothing would ever end it."""
        for stream in self.heads:
            stream.counter += stream.sent.count("add")
        return any(self in stream.sent for stream in self.heads)


class Lives(RuleBasedStateMachine):
    """Every call is made on the runtime and on the reference, and their answers compared."""

    chip = "v100"

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.device = aclrt.open_device(chip=self.chip, clock="virtual")
        self.dev: aclrt.Device = self.runner.run(self.device.__aenter__())

    @initialize()
    def begin(self) -> None:
        self.runner.run(self._begin())

    async def _begin(self) -> None:
        self.refs = [RefStream(at != STREAMS - 1) for at in range(STREAMS)]
        self.streams = [acl.aclrtCreateStreamWithConfig(0, 4 if ref.persistent else 0) for ref in self.refs]
        self.cells = [self.dev.array(np.zeros(1, "i8")) for _ in self.refs]
        self.exe = acl.aclrtCreateStream()
        self.ref_models = [RefModel() for _ in range(MODELS)]
        self.models = [acl.aclmdlRIBuildBegin(0) for _ in range(MODELS)]

    def teardown(self) -> None:
        self.runner.run(self.device.__aexit__(None, None, None))
        self.runner.close()

    def same(self, expected: int, call: Any) -> None:
        async def made() -> int:
            try:
                result = call()
                if asyncio.iscoroutine(result):
                    await result
            except aclrt.AclError as error:
                return error.code
            return 0

        assert self.runner.run(made()) == expected

    def dead(self, m: int, s: int | None = None) -> bool:
        return not self.ref_models[m].alive or (s is not None and not self.refs[s].alive)

    models_ = st.integers(0, MODELS - 1)
    streams_ = st.integers(0, STREAMS - 1)

    @rule(m=models_, s=streams_, flag=st.sampled_from([HEAD, DEFAULT, 5]))
    def bind(self, m: int, s: int, flag: int) -> None:
        model, stream = self.ref_models[m], self.refs[s]
        if flag == 5:
            code = 107000
        elif self.dead(m, s):
            code = 107017
        elif not stream.persistent:
            code = 107000
        elif stream.model is not None:
            code = 107005
        else:
            code = 0
            stream.model = model
            model.streams.insert(0, stream)
            stream.tasks = [task for task in stream.tasks if task in ("add", model)]
            if flag == HEAD:
                model.heads.append(stream)
        self.same(code, lambda: acl.aclmdlRIBindStream(self.models[m], self.streams[s], flag))

    @rule(m=models_, s=streams_)
    def unbind(self, m: int, s: int) -> None:
        model, stream = self.ref_models[m], self.refs[s]
        code = 107017 if self.dead(m, s) else 0 if stream.model is model else 107005
        if code == 0:
            model.leave(stream)
        self.same(code, lambda: acl.aclmdlRIUnbindStream(self.models[m], self.streams[s]))

    @rule(s=streams_, times=st.integers(1, 3))
    def launch(self, s: int, times: int) -> None:
        stream = self.refs[s]
        for _ in range(times):
            if not stream.alive:
                code = 107017
            elif self.chip == "v200" and stream.model is not None and stream.model.loaded:
                code = 107000
            else:
                code = 0
                keeps = stream.model is not None or (self.chip == "v200" and stream.persistent)
                if keeps:
                    stream.tasks.append("add")
                else:
                    stream.counter += 1
            self.same(code, lambda: self.streams[s].launch(one, self.cells[s]))

    @rule(m=models_, s=streams_)
    def end_task(self, m: int, s: int) -> None:
        model, stream = self.ref_models[m], self.refs[s]
        if self.dead(m, s):
            code = 107017
        elif stream.model is not model:
            code = 507000
        elif self.chip == "v200" and model.loaded:
            code = 107000
        else:
            code = 0
            model.ended = True
            stream.tasks.append(model)
        self.same(code, lambda: acl.aclmdlRIEndTask(self.models[m], self.streams[s]))

    @rule(m=models_)
    def build_end(self, m: int) -> None:
        model = self.ref_models[m]
        if not model.alive:
            code = 107017
        elif not model.streams:
            code = 107005
        elif not model.ended:
            code = 507011
        else:
            code = 0
            model.send()
            model.loaded = True
        self.same(code, lambda: acl.aclmdlRIBuildEnd(self.models[m]))

    def _refusal(self, m: int, loaded: bool) -> int:
        model = self.ref_models[m]
        if not model.alive:
            return 107017
        if not model.ended or not loaded:
            return 507011
        return 0 if model.heads else 507000

    @rule(m=models_)
    def execute(self, m: int) -> None:
        model = self.ref_models[m]
        code = self._refusal(m, loaded=True)
        if model.alive and model.ended and not model.loaded:
            model.send()
        if code == 0 and not model.run():
            code = 507046
        self.same(code, lambda: acl.aclmdlRIExecute(self.models[m], 50))

    @rule(m=models_, runs=st.integers(1, 3))
    def execute_async(self, m: int, runs: int) -> None:
        model = self.ref_models[m]
        code = self._refusal(m, loaded=model.loaded)
        if code == 0:
            for _ in range(runs):
                if not model.run():
                    code = 507023
                    break
            else:
                self.same(0, lambda: self._runs(m, runs))
                return
            self.same(code, lambda: self._aborted(m))
            return
        self.same(code, lambda: acl.aclmdlRIExecuteAsync(self.models[m], self.exe))

    async def _runs(self, m: int, runs: int) -> None:
        for _ in range(runs):
            last = acl.aclmdlRIExecuteAsync(self.models[m], self.exe)
        await last
        await acl.aclrtSynchronizeStream(self.exe)

    async def _aborted(self, m: int) -> None:
        """A run that would never end: it is given time for its tasks, then aborted."""
        run = acl.aclmdlRIExecuteAsync(self.models[m], self.exe)
        while self.dev.npu.driver.waits() == [] or self.dev.npu.driver._m.queue.ready:  # noqa: ASYNC110
            await asyncio.sleep(0)
        while any(wait.root >= 0 for wait in self.dev.npu.driver.waits()):  # noqa: ASYNC110
            await asyncio.sleep(0)
        await acl.aclmdlRIAbort(self.models[m])
        with pytest.raises(aclrt.AclError):
            await acl.aclrtSynchronizeStream(self.exe)
        await run

    @rule(m=models_)
    def abort(self, m: int) -> None:
        self.same(0 if self.ref_models[m].alive else 107017, lambda: acl.aclmdlRIAbort(self.models[m]))

    @rule(m=models_, again=st.booleans())
    def destroy(self, m: int, again: bool) -> None:
        model = self.ref_models[m]
        self.same(0 if model.alive else 107017, lambda: acl.aclmdlRIDestroy(self.models[m]))
        if model.alive:
            for stream in list(model.streams):
                model.leave(stream)
                stream.tasks = []
            model.alive = False
        if again:

            async def begin() -> Any:
                return acl.aclmdlRIBuildBegin(0)

            self.ref_models[m] = RefModel()
            self.models[m] = self.runner.run(begin())

    @rule(s=streams_)
    def destroy_stream(self, s: int) -> None:
        stream = self.refs[s]
        code = 107017 if not stream.alive else 107005 if stream.model is not None else 0
        if code == 0:
            stream.alive = False
        self.same(code, lambda: acl.aclrtDestroyStream(self.streams[s]))

    @rule()
    def rebuild(self) -> None:
        """A device reset and the rebuild of every model change nothing that can be seen from here."""
        self.same(0, self.dev.rebuild)

    @invariant()
    def counters(self) -> None:
        if not hasattr(self, "cells"):
            return

        async def seen() -> list[int]:
            while not self.dev.npu.driver.idle():  # noqa: ASYNC110
                await asyncio.sleep(0)
            return [int(cell.numpy()[0]) for cell in self.cells]

        assert self.runner.run(seen()) == [ref.counter for ref in self.refs]
        driver = self.dev.npu.driver
        alive = [model for model in self.ref_models if model.alive]
        assert driver.held(IdKind.MODEL) == len(alive)
        assert driver.held(IdKind.NOTIFY) == sum(model.ended for model in alive)
        for model, ref in zip(self.models, self.ref_models, strict=True):
            if ref.alive:
                listed = [self.refs[self.streams.index(stream)] for stream in model.streams]
                assert [id(stream) for stream in listed] == [id(stream) for stream in ref.streams]
                assert [len(stream.queue.tasks) for stream in model.streams] == [len(s.tasks) for s in ref.streams]


class LivesOnV200(Lives):
    chip = "v200"


@pytest.mark.parametrize("machine", [Lives, LivesOnV200])
def test_lives_of_models(machine: type[Lives]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
