"""``decode(bytes) == cached`` for every kind and any sequence of writes, frees and argument changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import hw
from hw.chips import SqeKind
from hw.driver import Driver, IdKind

K = SqeKind
SLOTS = 12


class Device:
    """A driver with a few of everything that an SQE can name, some of it about to be freed."""

    def __init__(self, chip: str) -> None:
        self.driver: Driver = hw.open_chip(chip)
        d = self.driver
        self.memory = [d.malloc(64) for _ in range(3)]
        self.programs = [d.load(np.add), d.load(print)]
        self.args = [d.args_put((d.view(a, 8, "f4"), 1.0, d.view(a, 8, "f4")), (a,)) for a in self.memory]
        self.image = d.image_alloc(SLOTS)
        self.alive = set(self.memory)

    def field(self, kind: SqeKind, name: str, draw: Any) -> int:
        """A value for a field: sometimes one that names something, sometimes any that fits."""
        known = {
            "program": [*self.programs, 77],
            "args": [*self.args, 1, 77],  # dropped ones and unknown ones are named too
            "address": self.memory,
            "dst": self.memory,
            "src": self.memory,
            "core": [0, 1, 2],
            "flag": [0, 1, 2, 3],
            "width": [1, 8] if kind is not K.MEMCPY2D else [4, 8],
            "nbytes": [0, 8, 64, 65],
            "dpitch": [8, 16],
            "spitch": [8, 4],
            "height": [0, 2, 9],
            "value": [0, 255],
            "cond": [0, 5],
            "dtype": [0, 1],
            "ctype": [0, 1, 2],
            "head": [0, 1],
            "count": [0, 1],
            "clear": [0, 1],
        }
        return int(draw(st.sampled_from(known.get(name, [0, 1, 7, 300]))))

    def sqe(self, draw: Any) -> bytes:
        d = self.driver
        kind = draw(st.sampled_from(list(SqeKind)))
        names = [n for n in d.chip.layout(kind).names if n not in ("type", "flags", "slots", "stream_id", "task_id")]
        fields = {name: self.field(kind, name, draw) for name in names}
        flags = draw(st.sampled_from([0, 0, 0, 1, 2]))
        return d.chip.encode(kind, stream_id=1, task_id=draw(st.integers(0, 9)), flags=flags, slots=1, **fields)

    def step(self, draw: Any) -> None:
        d = self.driver
        steps = ["write", "write", "write", "many", "garbage", "set", "drop", "put", "free", "bind"]
        what = draw(st.sampled_from(steps))
        if what in ("write", "many"):
            code = b"".join(self.sqe(draw) for _ in range(1 if what == "write" else 4))
            d.image_write(self.image, draw(st.integers(0, SLOTS - 4)), code)
        elif what == "garbage":
            slot = draw(st.binary(min_size=64, max_size=64))
            d.image_write(self.image, draw(st.integers(0, SLOTS - 1)), slot)
        elif what == "bind":  # compile, so that later writes patch the compiled program
            sq = d.alloc(IdKind.SQ)
            d.sq_bind([(sq, 1, self.image, draw(st.integers(0, SLOTS)))])
            d._m.images.get(self.image).program(SLOTS)
            d.sq_unbind([sq])
            d.free(IdKind.SQ, sq)
        elif what == "free" and self.alive:
            base = draw(st.sampled_from(sorted(self.alive)))
            self.alive.remove(base)
            d.free(base)
        elif what == "put":
            self.args.append(d.args_put((draw(st.integers(0, 5)),), ()))
        elif what in ("set", "drop") and self.args:
            handle = draw(st.sampled_from(self.args))
            if what == "set":
                d.args_set(handle, (draw(st.integers(0, 5)),), ())
            else:
                d.args_drop(handle)
                self.args.remove(handle)


def segments_hold_the_cells(driver: Driver, image: int) -> None:
    """The compiled program is the cells, in order and without a gap."""
    from hw.ts.program import OP_CONTROL, entry_of

    im = driver._m.images.get(image)
    if im.steps is None:
        return
    for start, (op, step, pairs) in zip(im.starts, im.steps, strict=True):
        if op == OP_CONTROL:
            assert step is im.cell(start)
            continue
        for offset, pair in enumerate(pairs):
            entry = entry_of(im.cell(start + offset))
            assert entry is not None
            assert pair[0] is entry[0]
            assert pair[1] is entry[1] or pair[1] == entry[1]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), chip=st.sampled_from(["v100", "v200"]))
def test_the_cache_is_what_the_bytes_say(data: st.DataObject, chip: str) -> None:
    device = Device(chip)
    for _ in range(data.draw(st.integers(1, 15))):
        device.step(data.draw)
        device.driver.image_check(device.image)
        segments_hold_the_cells(device.driver, device.image)
    device.driver.close()
