"""Train the network that `digits_service.py` serves: 64 inputs, 32 hidden units, 10 classes, numpy alone.

It is not a lesson in accuracy: it is small, takes about a second, and writes the same bytes every time on one machine.

    python examples/train_digits.py [OUTPUT]        (default: digits_weights.npz beside this file)
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Weights = dict[str, Matrix]

HERE = Path(__file__).parent
SEED = 1797
HIDDEN = 32
TRAINED_ON = 1437  # the first four fifths; the rest is held out, and digits_service.py reports it apart
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 0.1
MOMENTUM = 0.9
DECAY = 1e-4


def load_digits() -> tuple[Matrix, NDArray[np.intp]]:
    """Images as rows of 64 values in 0..1, and their labels."""
    with np.load(HERE / "digits.npz") as data:
        images, labels = data["images"], data["labels"]
    return images.reshape(len(images), 64) / 16.0, labels.astype(np.intp)


def new_weights(rng: np.random.Generator) -> Weights:
    """He initialisation for the hidden layer, zero biases."""
    return {
        "w1": rng.normal(0.0, np.sqrt(2 / 64), (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0.0, np.sqrt(1 / HIDDEN), (HIDDEN, 10)),
        "b2": np.zeros(10),
    }


def gradient(weights: Weights, x: Matrix, labels: NDArray[np.intp]) -> Weights:
    """Gradient of the mean cross entropy of one batch."""
    hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0.0)
    logits = hidden @ weights["w2"] + weights["b2"]
    error = np.exp(logits - logits.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(x)), labels] -= 1.0
    error /= len(x)
    back = (error @ weights["w2"].T) * (hidden > 0.0)
    return {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ error, "b2": error.sum(axis=0)}


def train(x: Matrix, labels: NDArray[np.intp]) -> Weights:
    """Mini-batch descent with momentum and a falling step, in float64.

    One seed decides everything. float64 keeps what one machine rounds differently from another far below the
    float32 that is stored.
    """
    rng = np.random.default_rng(SEED)
    weights = new_weights(rng)
    speed = {name: np.zeros_like(value) for name, value in weights.items()}
    for epoch in range(EPOCHS):
        step = LEARNING_RATE * (1 - epoch / EPOCHS)
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            for name, slope in gradient(weights, x[rows], labels[rows]).items():
                speed[name] = MOMENTUM * speed[name] - step * (slope + DECAY * weights[name])
                weights[name] += speed[name]
    return weights


def accuracy(weights: Weights, x: Matrix, labels: NDArray[np.intp]) -> float:
    """Share of the images whose largest output is their label."""
    hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0.0)
    answers = (hidden @ weights["w2"] + weights["b2"]).argmax(axis=1)
    return float((answers == labels).mean())


def save(weights: Weights, path: Path) -> None:
    """Write the weights as float32. `np.savez` may put the time of day into the file; this never does."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in weights.items():
            raw = io.BytesIO()
            np.lib.format.write_array(raw, value.astype(np.float32))
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), raw.getvalue())


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "digits_weights.npz"
    x, labels = load_digits()
    weights = train(x[:TRAINED_ON], labels[:TRAINED_ON])
    save(weights, path)
    seen = accuracy(weights, x[:TRAINED_ON], labels[:TRAINED_ON])
    held_out = accuracy(weights, x[TRAINED_ON:], labels[TRAINED_ON:])
    print(f"64-{HIDDEN}-10 network, {EPOCHS} epochs on {TRAINED_ON:,} digits")
    print(f"accuracy: {seen:.2%} of those, {held_out:.2%} of the {len(x) - TRAINED_ON} held out")
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
