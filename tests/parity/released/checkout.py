"""What the scripts of this folder share: importing modules from a checkout of a released repository, reading the
small models of tests/parity/data, and comparing what a released module makes of them with what is stored there.

Nothing is fetched, and nothing of a checkout is copied.
"""

import importlib
import importlib.machinery
import json
import pathlib
import sys
import types
from unittest import mock

import numpy as np
import torch
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data"
# In front: of two scripts with one name that of the folder above is imported.
sys.path.insert(0, str(HERE.parent))

import two_towers  # noqa: E402

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


def folders(count):
    """The folders of checkouts on the command line, and whether to write fixtures."""
    write = "--write" in sys.argv
    given = [pathlib.Path(it) for it in sys.argv[1:] if it != "--write"]
    if len(given) != count:
        sys.exit(sys.modules["__main__"].__doc__)
    return *given, write


def packages(**folders):
    """Makes packages of these folders without running their `__init__.py`; `__` in a name stands for a dot."""
    for name, folder in folders.items():
        name = name.replace("__", ".")
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module


def stubs(*names):
    """Modules that are imported there and that no vector needs."""
    for name in names:
        module = mock.MagicMock()
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []
        sys.modules[name] = module


def take(name):
    return importlib.import_module(name)


def tensors(path):
    """The tensors of a fixture in f32."""
    if path.suffix == ".safetensors":
        found = load_file(path)
    else:
        found = torch.load(path, map_location="cpu")
        found = found.get("state_dict", found.get("model", found))
    return {name: it.float() if it.is_floating_point() else it for name, it in found.items()}


def under(state, prefix):
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): it for name, it in state.items() if name.startswith(prefix)}


def fill(model, state, may_lack=()):
    """Loads all of `state`; the model may have more only where a name has one of `may_lack` in it."""
    lacking, unknown = model.load_state_dict(state, strict=False)
    lacking = [name for name in lacking if not any(part in name for part in may_lack)]
    assert not lacking and not unknown, f"not in the fixture: {lacking}; not in the released module: {unknown}"
    return model.eval()


def middles(blocks, inner):
    """Gives MLPs the fixture's middle; the released code's is always 4 widths."""
    for block in blocks:
        width = block.mlp.c_fc.in_features
        block.mlp.c_fc, block.mlp.c_proj = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)


def expected(*path):
    return json.loads(DATA.joinpath(*path).read_text())


def store(value, *path):
    DATA.joinpath(*path).write_text(json.dumps(value))


def pixels(kind, side, mean=CLIP_MEAN, std=CLIP_STD):
    """(3, side, side) of the tests' picture of this kind."""
    picture = torch.tensor(two_towers.picture(side, side, kind)).permute(2, 0, 1) / 255
    return (picture - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)


def padded(rows, length=None, pad=0):
    """(rows, tokens) ids and mask."""
    length = length or max(map(len, rows))
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    return ids, mask


def off(got, stored):
    """The largest difference."""
    got, stored = (np.asarray(it, dtype=np.float64) for it in (got, stored))
    assert got.shape == stored.shape, (got.shape, stored.shape)
    return float(np.abs(got - stored).max())


def tell(what, difference):
    print(f"{what}: {difference:.1e}")
    assert difference < 1e-4, "farther than the tests allow"


def two_tower_fixture(name, text, image, mean=CLIP_MEAN, std=CLIP_STD):
    """Compares a model of tests/parity/two_towers.py: `text` gets rows of ids, `image` (pictures, 3, side, side)."""
    stored = expected(name, "expected.json")
    side = stored["exact_side"]
    with torch.no_grad():
        texts = text([it["ids"] for it in stored["texts"]])
        exact = image(torch.stack([pixels(kind, side, mean, std) for kind in range(two_towers.FRAMES)]))
        raw = np.frombuffer((DATA / name / "pixels.bin").read_bytes(), dtype=np.uint8)
        resized = torch.tensor(raw.copy()).view(len(stored["sizes"]), 3, -1) / 255
        crop = round(resized.shape[2] ** 0.5)
        resized = resized.view(-1, 3, crop, crop)
        shift, scale = (torch.tensor(it).view(3, 1, 1) for it in (mean, std))
        resized = image((resized - shift) / scale)
    tell(f"{name}, texts", max(off(texts, it) for it in stored["text_vectors"].values()))
    tell(f"{name}, pictures", off(exact, stored["image_vectors"]))
    tell(f"{name}, resized pictures", off(resized, stored["resized_vectors"]))
