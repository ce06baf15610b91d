import asyncio

import numpy as np

import aclrt


@aclrt.kernel
def axpy(x: aclrt.In[np.float32], y: aclrt.InOut[np.float32], a: float) -> None:
    y += a * x  # numpy views of device memory


async def main() -> None:
    async with aclrt.open_device() as dev:
        stream, x, y = dev.stream(), dev.array(np.ones(8, "f4")), dev.array(np.zeros(8, "f4"))
        async with aclrt.capture(stream) as graph:
            stream.launch(axpy, x, y, 2.0)  # recorded, not run
        for _ in range(3):
            await graph.replay(stream)
        print(y.numpy())


asyncio.run(main())
