"""Fits the judge of gradual transitions, encoders/src/video/segment/judge_weights.rs, to rendered films whose transitions are
known (transition_films.py), and prints how well it tells them in films that it has not seen.

    cargo build --release -p reprise-encoders --example transition_stretches
    $(scripts/peers.sh transition) tests/bench/transition_fit.py target/release/examples/transition_stretches [--keep FOLDER]

A stretch of frames is a transition if it shares most of its frames with a true one, and none if it shares no frame with any. The
films are of seeds 0, 2 and 4, and plain ones of 6 and 8, which take one half of the footage; transition_peers.py judges the
segmentation on seed 1, which takes the other.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import tempfile

import numpy as np
import torch

import transition_films

HOUSE = pathlib.Path(__file__).resolve().parents[2]
WEIGHTS = HOUSE / "encoders/src/video/segment/judge_weights.rs"
FITTED, PLAIN, HELD_OUT = (0, 2, 4), (6, 8), 1
UNITS, SIGNS = 16, 18
# As in judge.rs.
FARTHEST, LEAST = 4.0, -1.5
MILLISECONDS = 1000 / transition_films.RATE
# Of the frames of a stretch and of a transition together, what both have.
LEAST_SHARED = 0.65
EPOCHS, BATCH, LEARNING_RATE = 20, 1024, 6e-3


def labels(frames, transitions):
    """Of stretches, as rows of first frame, middle and end: 1 for a transition, 0 for none, -1 for what is neither."""
    found = np.zeros(len(frames), int)
    first, last = frames[:, 0], frames[:, 2]
    for kind, begin, end in transitions:
        if kind == "cut":
            found[(first <= begin) & (last >= begin)] = -1
            continue
        both = np.minimum(last, end) - np.maximum(first, begin)
        shared = both / (np.maximum(last, end) - np.minimum(first, begin))
        found = np.maximum(found, np.where(shared > LEAST_SHARED, 1, 0))
        found[(both > 0) & (found == 0)] = -1
    return found


def stretches(program, seed, folder):
    """The signs and labels of all stretches in the films of a seed."""
    films = list(transition_films.films(folder / str(seed), seed, plain=seed in PLAIN))
    run = lambda file: subprocess.run([program, str(file)], stdout=subprocess.PIPE, check=True).stdout
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = [np.frombuffer(raw, "<f4").reshape(-1, 3 + SIGNS) for raw in pool.map(run, [file for file, _ in films])]
    found = [labels(np.round(it[:, :3] / MILLISECONDS), truth["transitions"]) for it, (_, truth) in zip(rows, films)]
    signs, found = np.concatenate([it[:, 3:] for it in rows]), np.concatenate(found)
    return torch.tensor(signs[found >= 0]), torch.tensor(found[found >= 0], dtype=torch.float32)


def fitted(signs, found):
    """Means, reciprocal deviations, and the network that takes signs scaled by them."""
    centres, scales = signs.mean(0), 1 / signs.std(0)
    network = torch.nn.Sequential(torch.nn.Linear(SIGNS, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, 1))
    scaled = ((signs - centres) * scales).clamp(-FARTHEST, FARTHEST)
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=1e-3)
    steps = len(signs) // BATCH
    rates = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=EPOCHS * steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(signs))[: steps * BATCH].split(BATCH):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(scaled[batch])[:, 0], found[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rates.step()
    return centres, scales, network


def rust(centres, scales, network):
    """The weights as Rust."""
    numbers = lambda values: "[" + ", ".join(f"{float(it):.5}" for it in values) + "]"
    hidden, output = network[0], network[2]
    units = ", ".join(f"({numbers(weights)}, {float(bias):.5})" for weights, bias in zip(hidden.weight, hidden.bias))
    text = f"""//! The weights of the judge of gradual transitions: made by `tests/bench/transition_fit.py`.

use super::signs::SIGNS;

/// Units of the hidden layer.
const UNITS: usize = {UNITS};

/// Mean of each sign.
pub(super) const CENTRES: [f32; SIGNS] = {numbers(centres)};
/// Reciprocal standard deviation of each sign.
pub(super) const SCALES: [f32; SIGNS] = {numbers(scales)};
/// Weights and bias of each hidden unit.
pub(super) const HIDDEN: [([f32; SIGNS], f32); UNITS] = [{units}];
/// Weights of the hidden units, and the bias of their sum.
pub(super) const OUTPUT: [f32; UNITS] = {numbers(output.weight[0])};
pub(super) const OUTPUT_BIAS: f32 = {float(output.bias):.5};
"""
    command = ["rustfmt", "--edition", "2024", "--config-path", str(HOUSE)]
    return subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="the example transition_stretches")
    parser.add_argument("--keep", type=pathlib.Path, help="where the films are made, or are already")
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = options.keep or pathlib.Path(folder)
        parts = [stretches(options.program, seed, folder) for seed in (*FITTED, *PLAIN)]
        with torch.enable_grad():
            centres, scales, network = fitted(*(torch.cat(it) for it in zip(*parts)))
        WEIGHTS.write_bytes(rust(centres, scales, network))
        signs, found = stretches(options.program, HELD_OUT, folder)
        said = network(((signs - centres) * scales).clamp(-FARTHEST, FARTHEST))[:, 0] > LEAST
        right = (said & (found == 1)).sum()
        print(f"stretches of seed {HELD_OUT}: precision {right / said.sum():.3f}, recall {right / found.sum():.3f}")


if __name__ == "__main__":
    main()
