"""Renders films whose transitions are known to the frame, for transition_peers.py.

A film has transitions of one kind: hard cuts, dissolves, fades or wipes. Its shots are moving synthetic pictures, and footage
from the folder REPRISE_TEST_DATA if that is set; even seeds take one half of its files, odd seeds the other. Two shots of five
hold a distractor, which is no transition: a flash, a whip pan, a passing object, a change of exposure, a zoom. In plain films, which
only transition_fit.py uses, every shot holds one, which may last longer, and there is neither grain nor motion blur.
"""

import dataclasses
import json
import os
import pathlib
import subprocess

import cv2
import numpy as np

WIDTH, HEIGHT, RATE = 320, 180, 25
SHOT = (50, 110)
DISTRACTED = 0.4
PLAIN_LONGEST = 51
FOOTAGE = (
    "intel_asl_book.mkv intel_bottle-detection.mp4 intel_car-detection.mp4 mdn_crystal.webm mdn_elf.webm mdn_frog.mp4 "
    "mdn_monster.webm mdn_pig.webm mdn_rabbit.webm sam2_01_dog.mp4 sam2_03_blocks.mp4 sam2_04_coffee.mp4 "
    "sam2_05_default_juggle.mp4 skv_bigbuckbunny.mp4"
).split()
DISTRACTORS = ("flash", "whip pan", "passing object", "exposure", "zoom")
# Films and transitions a film of each kind.
KINDS = {"cut": (5, 30), "dissolve": (5, 30), "fade": (4, 30), "wipe": (4, 30)}


def smooth(part):
    """Eases from 0 to 1."""
    part = min(max(part, 0.0), 1.0)
    return part * part * (3 - 2 * part)


def texture(random, width, height):
    """A colour picture of noise in several octaves and of plain shapes."""
    picture = np.zeros((height, width, 3), np.float32)
    weight = 1.0
    for cells in (2, 4, 8, 16, 32, 64):
        grid = random.uniform(-1, 1, (max(2, cells * height // width + 1), cells + 1, 3)).astype(np.float32)
        grid = 0.5 * grid + 0.5 * grid.mean(axis=2, keepdims=True)
        picture += weight * cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC)
        weight *= random.uniform(0.4, 0.9)
    picture = (picture - picture.mean()) / picture.std()
    tint = random.uniform(-25, 25, 3)
    picture = picture * random.uniform(18, 55) + random.uniform(45, 190) + tint.astype(np.float32)
    for _ in range(random.integers(0, 25)):
        colour = [float(it) for it in random.uniform(0, 255, 3)]
        centre = (int(random.integers(width)), int(random.integers(height)))
        if random.random() < 0.5:
            sides = (int(random.integers(2, width // 6)), int(random.integers(2, height // 4)))
            cv2.ellipse(picture, centre, sides, float(random.uniform(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
        else:
            corners = np.array(centre) + random.integers(-height // 4, height // 4, (4, 2))
            cv2.fillConvexPoly(picture, cv2.convexHull(corners.astype(np.int32)), colour, cv2.LINE_AA)
    return np.clip(picture, 0, 255).astype(np.uint8)


class Rendered:
    """A large picture under a moving camera, with moving objects in front of it."""

    def __init__(self, random):
        self.canvas = texture(random, 3 * WIDTH, 3 * HEIGHT)
        self.speed = random.uniform(-3, 3, 2) * (random.random() < 0.5)
        self.growth = random.uniform(-0.004, 0.004) * (random.random() < 0.4)
        self.shake = random.uniform(0, 1.5) * (random.random() < 0.4)
        self.phase = random.uniform(0, 6, 2)
        self.turn = random.uniform(-0.15, 0.15) * (random.random() < 0.2)
        self.objects = [thing(random, random.uniform(15, 60)) for _ in range(random.integers(0, 4))]

    def frame(self, at, view):
        wave = self.shake * np.sin(at * np.array([0.9, 0.6]) + self.phase)
        x, y = np.array([1.5 * WIDTH, 1.5 * HEIGHT]) + self.speed * (at - 40) + wave + [view.x, view.y]
        zoom = view.zoom * (1 + self.growth * at)
        camera = cv2.getRotationMatrix2D((float(x), float(y)), self.turn * at, zoom)
        camera[:, 2] += [WIDTH / 2 - x, HEIGHT / 2 - y]
        picture = cv2.warpAffine(self.canvas, camera, (WIDTH, HEIGHT), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        for it in self.objects:
            it.draw(picture, at, view)
        return picture


@dataclasses.dataclass
class Thing:
    """An object that moves in a straight line."""

    picture: np.ndarray
    mask: np.ndarray
    start: np.ndarray
    speed: np.ndarray

    def draw(self, onto, at, view):
        x, y = (self.start + self.speed * at - [view.x, view.y]).round().astype(int)
        height, width = self.mask.shape[:2]
        left, top, right, bottom = max(x, 0), max(y, 0), min(x + width, WIDTH), min(y + height, HEIGHT)
        if left >= right or top >= bottom:
            return
        part = (slice(top - y, bottom - y), slice(left - x, right - x))
        under = onto[top:bottom, left:right]
        np.copyto(under, self.picture[part], where=self.mask[part])


def thing(random, size):
    size = int(size)
    picture, mask = texture(random, 2 * size, 2 * size), np.zeros((2 * size, 2 * size), np.uint8)
    cv2.ellipse(mask, (size, size), (size - 1, int(size * random.uniform(0.4, 0.98))), float(random.uniform(0, 180)), 0, 360, 1, -1)
    start = random.uniform([-size, -size], [WIDTH, HEIGHT])
    return Thing(picture, mask[:, :, None] > 0, start, random.uniform(-3, 3, 2))


class Filmed:
    """A part of real footage, mirrored, cropped and graded at random; played to and fro if it is short."""

    def __init__(self, random, frames):
        self.frames = frames
        self.first = int(random.integers(len(frames)))
        self.mirrored = random.random() < 0.5
        self.zoom = random.uniform(1, 1.5)
        self.gain, self.lift = random.uniform(0.75, 1.2), random.uniform(-15, 15)

    def frame(self, at, view):
        turn = (self.first + at) % max(1, 2 * len(self.frames) - 2)
        picture = self.frames[min(turn, 2 * len(self.frames) - 2 - turn)]
        if self.mirrored:
            picture = picture[:, ::-1]
        zoom = self.zoom * view.zoom
        camera = np.array([[zoom, 0, WIDTH / 2 * (1 - zoom) - view.x], [0, zoom, HEIGHT / 2 * (1 - zoom) - view.y]])
        picture = cv2.warpAffine(np.ascontiguousarray(picture), camera, (WIDTH, HEIGHT), borderMode=cv2.BORDER_REFLECT)
        return cv2.convertScaleAbs(np.clip(picture * self.gain + self.lift, 0, 255))


@dataclasses.dataclass
class View:
    """Where a camera looks beside its own way."""

    x: float = 0.0
    y: float = 0.0
    zoom: float = 1.0


class Shot:
    """A scene with its grain and, within its body, at most one distractor."""

    def __init__(self, random, scene, body, lead, plain):
        self.random, self.scene, self.plain = random, scene, plain
        self.grain = random.uniform(0, 6) * (not plain)
        self.distractor, self.lead = None, lead
        if random.random() < DISTRACTED or plain:
            kind = str(random.choice(DISTRACTORS))
            least, most = {"flash": (1, 5), "whip pan": (5, 13), "passing object": (12, 41), "exposure": (8, 26), "zoom": (10, 26)}[kind]
            most = max(most, PLAIN_LONGEST) if plain and kind != "flash" else most
            length = min(int(random.integers(least, most)), body - 20)
            begin = lead + 10 + int(random.integers(max(1, body - 20 - length)))
            self.distractor = (kind, begin, begin + length)
            self.size, angle = random.uniform(0.5, 1.0), random.uniform(0, 2 * np.pi)
            self.way = np.array([np.cos(angle), np.sin(angle)]) * random.uniform(0.8, 1.5) * WIDTH
            self.object = thing(random, random.uniform(0.35, 0.6) * HEIGHT)

    def frame(self, at):
        part, kind, view = 0.0, None, View()
        if self.distractor:
            kind, begin, end = self.distractor
            part = (at - begin + 1) / (end - begin)
        if kind == "whip pan" and part > 0:
            # A shutter that is open for half of the frame's time.
            step = 0.5 / (self.distractor[2] - self.distractor[1])
            parts = np.linspace(part - step, part, 6) if part < 1 + step and not self.plain else [min(part, 1.0)]
            views = [View(*(self.way * smooth(it))) for it in parts]
            picture = np.mean([self.scene.frame(at, it) for it in views], axis=0, dtype=np.float32)
        else:
            if kind == "zoom":
                view.zoom = 1 + 0.8 * self.size * smooth(part)
            picture = self.scene.frame(at, view).astype(np.float32)
        if kind == "flash" and 0 < part <= 1:
            picture += (255 - picture) * self.size
        if kind == "exposure":
            picture *= 1 + (self.size - 0.8) * 1.6 * smooth(part)
        if kind == "passing object" and 0 < part <= 1:
            size = self.object.mask.shape[0]
            x = -size + (WIDTH + size) * part if self.size < 0.75 else WIDTH - (WIDTH + size) * part
            self.object.start, self.object.speed = np.array([x, (HEIGHT - size) / 2]), np.zeros(2)
            self.object.draw(picture, 0, View())
        picture += self.random.standard_normal(picture.shape, dtype=np.float32) * self.grain
        return np.clip(picture, 0, 255)


def decoded(file):
    """The frames of a file, at most 20 s."""
    fit = f"fps={RATE},scale={WIDTH}:{HEIGHT}:force_original_aspect_ratio=increase,crop={WIDTH}:{HEIGHT}"
    command = ["ffmpeg", "-v", "error", "-i", file, "-t", "20", "-vf", fit, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def footage(seed):
    """The frames of each real file for a seed; empty without REPRISE_TEST_DATA."""
    data = os.environ.get("REPRISE_TEST_DATA")
    files = [pathlib.Path(data) / "video" / "clips" / it for it in FOOTAGE[seed % 2 :: 2]] if data else []
    return [decoded(it) for it in files if it.exists()]


def mixed(random, kind, length):
    """How a transition joins two pictures: a function of the frame's number in it and of both pictures."""
    eased = random.random() < 0.3
    share = lambda at: (smooth if eased else float)((at + 1) / (length + 1))
    if kind == "dissolve":
        return lambda at, a, b: a + (b - a) * share(at)
    if kind == "fade":
        ground = 255.0 if random.random() < 0.15 else 0.0
        hold = int(random.integers(0, min(15, length // 3)))
        out = (length - hold) * random.uniform(0.35, 0.65)
        def fade(at, a, b):
            if at < out:
                return a + (ground - a) * min(1.0, (at + 1) / (out + 0.01))
            back = max(0.0, (at + 1 - out - hold) / (length + 1 - out - hold))
            return ground + (b - ground) * back
        return fade
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    shape = random.integers(4)
    if shape < 3:
        way = x / WIDTH if shape == 0 else y / HEIGHT if shape == 1 else (x / WIDTH + y / HEIGHT) / 2
    else:
        way = np.hypot(x - WIDTH / 2, y - HEIGHT / 2) / np.hypot(WIDTH / 2, HEIGHT / 2)
    way = 1 - way if random.random() < 0.5 else way
    edge = random.choice([0.004, 0.05, 0.15])
    def wipe(at, a, b):
        mask = np.clip((share(at) * (1 + edge) - way) / edge, 0, 1)[:, :, None]
        return a + (b - a) * mask
    return wipe


def scene(random, films, last):
    """A scene, and the number of its real film."""
    if films and random.random() < 0.5:
        which = int(random.choice([it for it in range(len(films)) if it != last]))
        return Filmed(random, films[which]), which
    return Rendered(random), None


def render(file, seed, kind, number, films, plain):
    """Writes a film; returns its truth: transitions as [kind, first frame, first frame behind it], and distractors alike."""
    random = np.random.default_rng([seed, sorted(KINDS).index(kind), number])
    count = KINDS[kind][1]
    encode = f"-c:v libx264 -preset veryfast -crf {random.choice([20, 25, 30])} -pix_fmt yuv420p".split()
    source = f"-f rawvideo -pix_fmt rgb24 -s {WIDTH}x{HEIGHT} -r {RATE} -i -".split()
    command = ["ffmpeg", "-v", "error", "-y", *source, *encode, str(file)]
    encoder = subprocess.Popen(command, stdin=subprocess.PIPE)
    write = lambda picture: encoder.stdin.write(picture.astype(np.uint8).tobytes())
    truth, passed, lead, before, last = {"transitions": [], "distractors": []}, 0, 0, None, None
    for at in range(count + 1):
        body = int(random.integers(*SHOT))
        made, last = scene(random, films, last)
        shot = Shot(random, made, body, lead, plain)
        if before:
            length = lead
            join = mixed(random, kind, length)
            truth["transitions"].append([kind, passed, passed + length])
            for it in range(length):
                write(join(it, before.frame(before.lead + before.body + it), shot.frame(it)))
            passed += length
        if shot.distractor:
            which, begin, end = shot.distractor
            truth["distractors"].append([which, passed + begin - lead, passed + end - lead])
        for it in range(body):
            write(shot.frame(lead + it))
        passed += body
        shot.body = body
        before = shot
        lead = {"cut": 0, "dissolve": int(random.integers(6, 41)), "fade": int(random.integers(12, 61)), "wipe": int(random.integers(8, 41))}[kind]
    encoder.stdin.close()
    assert encoder.wait() == 0
    return truth


def films(folder, seed, plain=False):
    """Renders all films of a seed into a folder, unless they are there; yields each with its truth."""
    folder.mkdir(parents=True, exist_ok=True)
    real = None
    for kind, (count, _) in KINDS.items():
        for number in range(count):
            file = folder / f"{kind}{number}.mp4"
            notes = file.with_suffix(".json")
            if not notes.exists():
                real = footage(seed) if real is None else real
                notes.write_text(json.dumps(render(file, seed, kind, number, real, plain)))
            yield file, json.loads(notes.read_text())
