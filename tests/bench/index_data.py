"""Writes the vectors that the index is measured on: SET.base.npy, SET.queries.npy and SET.truth.npy into a folder.

    index_data.py FOLDER SET...

`clips` needs nothing else; `texts` and `million` grow the vectors/*.npy of REPRISE_TEST_DATA. A set whose files are
there already is left as it is. Rows are f32 of norm 1; truth is the rows of the 100 highest products of each of 1,000
queries, i8, best first. Needs numpy alone.

clips: 40,804 x 768, LoVR's number of clips, clustered like real embeddings (seed 0). A vector is the direction of

    sqrt(0.68) common + sqrt(0.12) video + sqrt(0.12) scene + sqrt(0.08) s noise

with one common unit vector for all (embeddings lie in a narrow cone: any two have a mean cosine of about 0.67), the
centre of one of 467 videos, LoVR's number (video r is drawn with a weight of 1 / (r + 10): few are large, many small), of
one of its 12 scenes (scene r by 1 / (r + 2)), noise of its own, and s, a scene's spread, log-normal of deviation 0.3.
Centres and noise are Gaussian, of mean squared norm 1, with variances that fall along the axes of one random rotation, as
1 / (i + 8) of the centres and as its power of 1.5 of the noise: the spread has about as many directions (1 / sum of the
squared shares of variance: 95) as that of the real vectors below (105). Queries are drawn with the rows and held out.

texts: 100,000 x 512, row i being row (i mod rows) of the real vectors plus Gaussian noise of norm 0.3, renormalised
(seed 1). Queries are 1,000 of the real vectors with other noise (seed 2).

million: 1,000,000 x 512, made as texts.
"""

import argparse
import os
import pathlib
import sys

import numpy

QUERIES, TRUTH = 1_000, 100
# Rows drawn or multiplied at a time.
BLOCK = 20_000
GROWN = {"texts": 100_000, "million": 1_000_000}
SETS = ["clips", *GROWN]


def unit(rows):
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def spectrum(random, count, dim, power):
    """Gaussian rows of mean squared norm 1 whose variances fall as (1 / (i + 8)) ** power."""
    variances = (1 / (numpy.arange(dim, dtype=numpy.float32) + 8)) ** power
    return random.standard_normal((count, dim), dtype=numpy.float32) * numpy.sqrt(variances / variances.sum())


def drawn(random, count, of, offset):
    """Random numbers below `of`; number r has the weight 1 / (r + offset)."""
    weights = 1 / (numpy.arange(of) + offset)
    return random.choice(of, count, p=weights / weights.sum())


def clips(rows=40_804, dim=768, videos=467, scenes=12):
    random, count = numpy.random.default_rng(0), rows + QUERIES
    rotation = numpy.linalg.qr(random.standard_normal((dim, dim)))[0].astype(numpy.float32)
    common = unit(random.standard_normal((1, dim), dtype=numpy.float32))
    of_video = spectrum(random, videos, dim, 1)
    of_scene = spectrum(random, videos * scenes, dim, 1)
    spread = random.lognormal(0, 0.3, (videos * scenes, 1)).astype(numpy.float32)
    video = drawn(random, count, videos, 10)
    scene = video * scenes + drawn(random, count, scenes, 2)
    share = numpy.sqrt(numpy.float32([0.68, 0.12, 0.12, 0.08]))
    noise = spectrum(random, count, dim, 1.5) * spread[scene]
    own = (share[1] * of_video[video] + share[2] * of_scene[scene] + share[3] * noise) @ rotation
    vectors = unit(share[0] * common + own)
    return vectors[:rows], vectors[rows:]


def real_vectors():
    data = os.environ.get("REPRISE_TEST_DATA")
    if not data:
        sys.exit("index_data: texts and million need REPRISE_TEST_DATA")
    files = sorted(pathlib.Path(data, "vectors").glob("*.npy"))
    if not files:
        sys.exit(f"index_data: {data}/vectors has no .npy files")
    return unit(numpy.concatenate([numpy.load(file).astype(numpy.float32) for file in files]))


def with_noise(random, rows, norm=0.3):
    return unit(rows + numpy.float32(norm) * unit(random.standard_normal(rows.shape, dtype=numpy.float32)))


def grown(count):
    real = real_vectors()
    random = numpy.random.default_rng(1)
    base = numpy.empty((count, real.shape[1]), dtype=numpy.float32)
    for first in range(0, count, BLOCK):
        rows = numpy.arange(first, min(first + BLOCK, count)) % len(real)
        base[first : first + BLOCK] = with_noise(random, real[rows])
    random = numpy.random.default_rng(2)
    return base, with_noise(random, real[random.integers(len(real), size=QUERIES)])


def truth(base, queries):
    """The rows of the highest products, best first; equal ones by row."""
    best, scores = [], []
    for first in range(0, len(base), BLOCK):
        product = queries @ base[first : first + BLOCK].T
        top = numpy.argpartition(-product, TRUTH, axis=1)[:, :TRUTH]
        best.append(top + first)
        scores.append(numpy.take_along_axis(product, top, axis=1))
    best, scores = numpy.concatenate(best, axis=1), numpy.concatenate(scores, axis=1)
    order = numpy.lexsort((best, -scores), axis=1)[:, :TRUTH]
    return numpy.take_along_axis(best, order, axis=1).astype(numpy.int64)


def write(folder, name):
    files = {part: folder / f"{name}.{part}.npy" for part in ("base", "queries", "truth")}
    if all(file.exists() for file in files.values()):
        return
    base, queries = clips() if name == "clips" else grown(GROWN[name])
    # The ground truth comes last: it marks the other files as complete.
    for part, rows in [("base", base), ("queries", queries), ("truth", truth(base, queries))]:
        partial = files[part].with_suffix(".partial")
        with partial.open("wb") as file:
            numpy.save(file, rows)
        partial.rename(files[part])
    sample = base[numpy.random.default_rng(3).permutation(len(base))[:2_000]]
    mean = ((sample @ sample.T).sum() - len(sample)) / (len(sample) * (len(sample) - 1))
    print(f"{name}: {len(base)} x {base.shape[1]}, mean cosine {mean:.3f}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("sets", nargs="+", choices=SETS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        write(arguments.folder, name)


if __name__ == "__main__":
    main()
