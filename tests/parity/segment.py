"""Writes the cuts that PySceneDetect finds: the goldens of tests/it/segment.rs.

    python -m venv venv && venv/bin/pip install scenedetect==0.7.2 opencv-python-headless
    REPRISE_TEST_DATA=/folder/of/videos venv/bin/python segment.py

Videos of the data folder are named by their path in it; the generated ones are made by ffmpeg from the recipes in
data/segment/recipes.json, which this script writes too, and stored losslessly, so that every ffmpeg makes the same
pictures. Nothing else than names and numbers is written.

For each video and detector: the frames of the cuts, and the frames whose score is within 0.5 of the threshold, where
another scaler may decide otherwise.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from scenedetect import (
    AdaptiveDetector,
    ContentDetector,
    SceneManager,
    StatsManager,
    ThresholdDetector,
    open_video,
)

HERE = pathlib.Path(__file__).parent
OUT = HERE / "data" / "segment"
NEAR = 0.5
SUFFIXES = {".mp4", ".mkv", ".webm", ".mov", ".avi", ".gif", ".ts", ".h264"}

SOURCES = [
    "testsrc2",
    "testsrc",
    "smptebars",
    "rgbtestsrc",
    "mandelbrot",
    "life=seed=3:mold=10:ratio=0.1:death_color=#202060:life_color=#E0E040",
    "cellauto=rule=30:seed=3",
    "gradients=seed=7:c0=#203040:c1=#E0A030:x0=0:y0=0:x1=320:y1=180",
    "color=c=#C04020",
    "color=c=#103060",
    "color=c=#F0F0F0",
    "color=c=#40A050",
]


def sized(source, seconds):
    separator = ":" if "=" in source else "="
    duration = f":d={seconds}" if source.startswith(("color", "testsrc", "smptebars", "rgbtestsrc", "gradients")) else ""
    return f"{source}{separator}s=320x180:r=25{duration}"


def cuts(draw):
    """Hard cuts between sources, some of them far too short."""
    shots = []
    for _ in range(draw.randint(3, 7)):
        frames = draw.choice([4, 9, 14, 15, 16, 25, 40, 70])
        hue = draw.choice(["", f",hue=h={draw.randrange(0, 360, 30)}", ",negate"])
        shots.append((draw.choice(SOURCES), hue, frames))
    return shots, ""


def fades(draw):
    """Shots that fade out to black and in again."""
    shots = []
    for _ in range(draw.randint(2, 4)):
        frames = draw.choice([50, 75])
        length = draw.choice([5, 12, 20])
        fade = f",fade=in:0:{length},fade=out:{frames - length}:{length}"
        shots.append((draw.choice(SOURCES[:6]), fade, frames))
    return shots, ""


def flashes(draw):
    """White frames inside a shot."""
    frames = 120
    at = sorted(draw.sample(range(5, frames - 5), draw.randint(1, 6)))
    white = "+".join(f"eq(n\\,{frame})" for frame in at)
    flash = f",drawbox=c=white:t=fill:enable='{white}'"
    return [(draw.choice(SOURCES[:6]), flash, frames)], ""


def gradients(draw):
    """Slow changes of all colours, and one cut."""
    speed = draw.choice([60, 180, 720])
    brightness = draw.choice([0.5, 2.0])
    drift = f",hue=H=2*PI*t*{speed}/360:b={brightness}*sin(2*PI*t/3)"
    return [(SOURCES[7], drift, 60), (draw.choice(SOURCES), drift, 60)], ""


def noise(draw):
    """Grain over shots."""
    strength = draw.choice([10, 30, 60, 100])
    shots, _ = cuts(draw)
    return shots, f",noise=alls={strength}:allf=t:all_seed={draw.randrange(1000)}"


def slides(draw):
    """A page on which boxes appear, as lines of text do."""
    frames = 150
    boxes = ""
    for line in range(draw.randint(2, 6)):
        at = draw.randrange(15, frames - 15)
        width = draw.randint(60, 260)
        color = draw.choice(["black", "#303080", "#A02020"])
        boxes += f",drawbox=x=20:y={20 + 24 * line}:w={width}:h=12:c={color}:t=fill:enable='gte(n\\,{at})'"
    return [("color=c=#F8F8F0", boxes, frames)], ""


KINDS = [cuts, cuts, fades, flashes, gradients, noise, slides]


def recipes():
    """50 filter graphs for ffmpeg, by name."""
    made = {}
    for number in range(50):
        kind = KINDS[number % len(KINDS)]
        shots, after = kind(random.Random(number))
        chains, labels = [], ""
        for index, (source, effects, frames) in enumerate(shots):
            chains.append(
                f"{sized(source, 10)}{effects},trim=end_frame={frames},format=yuv420p,setsar=1[s{index}]"
            )
            labels += f"[s{index}]"
        graph = ";".join(chains) + f";{labels}concat=n={len(shots)}:v=1{after},format=yuv420p[v]"
        made[f"{number:02}-{kind.__name__}"] = graph
    return made


def generate(graph, path):
    """Also in tests/it/segment.rs."""
    subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin", "-y", "-filter_complex", graph, "-map", "[v]", "-c:v", "ffv1",
         "-flags", "+bitexact", "-sws_flags", "bitexact", str(path)],
        check=True,
    )


def detect(path, detector, metric, threshold):
    """Frames of the cuts, and frames whose score is near the threshold."""
    stats = StatsManager()
    manager = SceneManager(stats)
    manager.add_detector(detector)
    manager.detect_scenes(open_video(str(path)))
    scores = {timecode.frame_num: values.get(metric) for timecode, values in stats._frame_metrics.items()}
    near = [
        [frame, round(float(score), 3)]
        for frame, score in sorted(scores.items())
        if score is not None and abs(score - threshold) <= NEAR
    ]
    found = [cut.frame_num for cut in manager._get_cutting_list()]
    return {"cuts": found, "near": near}


def judge(path):
    content = detect(path, ContentDetector(), "content_val", 27.0)
    adaptive = detect(path, AdaptiveDetector(), "content_val", 15.0)
    threshold = detect(path, ThresholdDetector(add_final_scene=True), "average_rgb", 12.0)
    return {"content": content, "adaptive": adaptive, "threshold": threshold}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    made = recipes()
    (OUT / "recipes.json").write_text(json.dumps(made, indent=1) + "\n")
    goldens = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in made.items():
            path = pathlib.Path(folder) / f"{name}.mkv"
            generate(graph, path)
            goldens[f"generated/{name}"] = judge(path)
            print(name, goldens[f"generated/{name}"]["content"], file=sys.stderr)
    data = pathlib.Path(os.environ["REPRISE_TEST_DATA"]) / "video"
    for path in sorted(data.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        name = str(path.relative_to(data.parent))
        try:
            goldens[name] = judge(path)
        except Exception as error:
            goldens[name] = {"unreadable": type(error).__name__}
        print(name, goldens[name].get("content", goldens[name]), file=sys.stderr)
    rows = [f"{json.dumps(name)}: {json.dumps(golden)}" for name, golden in goldens.items()]
    (OUT / "goldens.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
