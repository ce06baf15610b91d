"""What a task costs over a plain Python loop of the same numpy calls. It is not a model of a chip's time.

One command, `python -m benchmarks`, measures and prints everything in one process; `--gate` fails if a bound is broken.
"""

import os

# Before numpy is imported: a second BLAS thread on a small machine would disturb what is timed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
