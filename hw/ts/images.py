"""The images of a device by id: SQE memory that model streams are filled into.

Not the decode cache (that is `program.Image`): the ids, and the checks that stand before a write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.ts.decoder import same_cell
from hw.ts.program import Image

if TYPE_CHECKING:
    from hw.ts.decoder import Decoder

__all__ = ["Images"]


@final
class Images:
    """Images by id, 1 .. ; an id is never used again, because the argument table may still name the slots of an image
    that is gone."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._images: dict[int, Image] = {}
        self._next = 1

    def __repr__(self) -> str:
        return f"<Images {len(self._images)}>"

    def find(self, image: int) -> Image | None:
        return self._images.get(image)

    def get(self, image: int) -> Image:
        """KeyError when there is none."""
        found = self._images.get(image)
        if found is None:
            raise KeyError(f"image {image}: no such image; alloc it first")
        return found

    def alloc(self, slots: int) -> int:
        """SQE memory of a model stream; its image id."""
        id, self._next = self._next, self._next + 1
        self._images[id] = Image(id, slots, self._decoder)
        return id

    def free(self, image: int) -> None:
        """End an image that no SQ is bound to (ValueError otherwise)."""
        sqs = self.get(image).sqs
        if sqs:
            raise ValueError(f"image {image}: bound to SQ {sqs[0].id}; unbind it first")
        del self._images[image]

    def write(self, image: int, slot: int, sqes: bytes) -> None:
        """Put whole slots at `slot`; only those are decoded. ValueError outside the image."""
        self.get(image).write(slot, sqes)

    def read(self, image: int, slot: int, n: int) -> bytes:
        """The bytes of `n` slots. ValueError outside the image."""
        return self.get(image).read(slot, n)

    def check(self, image: int) -> None:
        """For tests: every slot's cached decode is what its bytes decode to now (AssertionError otherwise)."""
        found = self.get(image)
        for slot in range(found.slots):
            cached, fresh = found.cell(slot), self._decoder.decode(found.buffer, slot)
            assert same_cell(cached, fresh), f"{found!r} slot {slot}: cached {cached}, the bytes say {fresh}"

    def args_changed(self, image: int, slot: int, handle: int) -> bool:
        """The args entry that a slot of an image used was replaced, poisoned or dropped. False: it uses it no more."""
        found = self._images.get(image)
        return found is not None and found.args_changed(slot, handle)
