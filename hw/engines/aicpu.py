"""The AI-CPU engine: AI-CPU kernels run beside the AI cores, on cores of their own.

It is not the AI cores' spare: a full AI-core pool never delays an AI-CPU kernel, nor the other way round, and its
failures have their own status.
"""

from __future__ import annotations

from hw.chips import ChipSpec, Core, Status
from hw.engines import core

__all__ = ["EXCEPTION", "TIMEOUT", "pools"]

EXCEPTION = {**core.EXCEPTION, Core.AICPU: Status.AICPU_EXCEPTION}
"""How an exception of a kernel on any core is reported (acl_semantics 11.3)."""

TIMEOUT = {**core.TIMEOUT, Core.AICPU: Status.AICPU_TIMEOUT}
"""How a kernel that ran over the execute time-out is reported."""


def pools(spec: ChipSpec) -> dict[int, core.CorePool]:
    """One pool for each Core, the AI-CPU included."""
    return {**core.pools(spec), Core.AICPU: core.CorePool("aicpu", max(1, spec.aicpu_cores))}
