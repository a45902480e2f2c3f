"""Measures `reprise index bench` beside hnswlib, faiss HNSW, usearch, SymphonyQG and SVS on the same files in the same
run.

    index_peers.py REPRISE FOLDER [--sets clips,texts] [--engines ...] [--rounds 5] [--write]

FOLDER holds what index_data.py writes. Every engine has M 16 (32 links at the bottom) and efConstruction 200. SymphonyQG
is rabitqlib's, by its metric l2, which orders unit vectors as the product does; by "ip" it finds little. SVS is a
Vamana graph over floats: its compressed codes run on the processors of one maker only, and end the process elsewhere. The
engines are built one after the other, with one thread and with two; the ones that were built with one thread are then searched by
one thread, in rounds: in each of them every engine takes its turn through all widths (ef), all 1,000 queries at least
until 0.2 s have gone by. Peers get all queries in one call, so that no time of Python's counts against them; reprise
answers one by one. "reprise hnsw_rs" is the crate hnsw_rs, the service's second engine, which one thread links
whatever is asked. An engine is compared at its fastest width whose recall@10 is at least 0.99. That is the lowest one for
most engines; reprise repeats a walk whose few candidates its codes could not order. Ratios are taken within a round, and
medians over the rounds count.

The tables go to stdout and, where everything is measured or --write is given, to BENCHMARKS.md, the plot beside it to
docs/index_peers.png.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# Set before the import of the libraries that read them.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import faiss  # noqa: E402
import hnswlib  # noqa: E402
import matplotlib  # noqa: E402
import numpy  # noqa: E402
import rabitqlib  # noqa: E402
import svs  # noqa: E402
import usearch  # noqa: E402
from usearch.index import Index as Usearch  # noqa: E402

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REPORT, PLOT = ROOT / "BENCHMARKS.md", ROOT / "docs" / "index_peers.png"
MARKS = ("<!-- index: made by `make bench-index` -->", "<!-- index: end -->")
TITLES = {"clips": "40,804 x 768, clustered", "texts": "100,000 x 512, grown from real text vectors"}
LINKS, EF_CONSTRUCTION, K = 16, 200, 10
WIDTHS = [10, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512]
# Recalls at which engines are compared, and at which a sweep ends.
RECALL, RECALL_ENOUGH = 0.99, 0.9995
RUN_SECONDS = 0.2
CODES = ["f32", "f16", "int8", "int4"]
DEFAULT = "int4"
THREADS = [1, 2]


class Hnswlib:
    def __init__(self, dim, rows):
        self.index = hnswlib.Index("ip", dim)
        self.index.init_index(rows, ef_construction=EF_CONSTRUCTION, M=LINKS)

    def add(self, base, threads):
        self.index.add_items(base, num_threads=threads)

    def search(self, queries, ef):
        self.index.set_ef(ef)
        return self.index.knn_query(queries, K, num_threads=1)[0]

    def save(self, path):
        self.index.save_index(path)


class Faiss:
    def __init__(self, dim, _):
        self.index = faiss.IndexHNSWFlat(dim, LINKS, faiss.METRIC_INNER_PRODUCT)
        self.index.hnsw.efConstruction = EF_CONSTRUCTION

    def add(self, base, threads):
        faiss.omp_set_num_threads(threads)
        self.index.add(base)
        faiss.omp_set_num_threads(1)

    def search(self, queries, ef):
        self.index.hnsw.efSearch = ef
        return self.index.search(queries, K)[1]

    def save(self, path):
        faiss.write_index(self.index, path)


class UsearchOf:
    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, dim, _):
        made = UsearchOf(self.dtype)
        # Quantised vectors are compared by cosine: their norms are no longer 1.
        metric = "cos" if self.dtype == "i8" else "ip"
        made.index = Usearch(ndim=dim, metric=metric, dtype=self.dtype, connectivity=LINKS,
                             expansion_add=EF_CONSTRUCTION)
        return made

    def add(self, base, threads):
        self.index.add(numpy.arange(len(base)), base, threads=threads)

    def search(self, queries, ef):
        self.index.expansion_search = ef
        return self.index.search(queries, K, threads=1).keys

    def save(self, path):
        self.index.save(path)


class SymphonyQg:
    """It has no step that adds rows to an empty index: a new one is built each time."""

    def __init__(self, dim, _):
        self.dim = dim

    def add(self, base, threads):
        self.index = rabitqlib.SymqgIndex(self.dim, 2 * LINKS, "l2")
        self.index.build(base, EF_CONSTRUCTION, threads)

    def search(self, queries, ef):
        # Keys and distances, in this order or the other one in some versions.
        found = self.index.search_batch(queries, K, ef, 1)
        return next(it for it in found if it.dtype.kind in "iu")

    def save(self, path):
        self.index.save(path)


class Svs:
    def __init__(self, *_):
        pass

    def add(self, base, threads):
        links = svs.VamanaBuildParameters(graph_max_degree=2 * LINKS, window_size=EF_CONSTRUCTION, alpha=0.95)
        self.index = svs.Vamana.build(links, base, svs.DistanceType.MIP, threads)
        self.index.num_threads = 1

    def search(self, queries, ef):
        self.index.search_window_size = ef
        return self.index.search(queries, K)[0]

    def save(self, path):
        os.mkdir(path)
        self.index.save(*(os.path.join(path, part) for part in ("config", "graph", "data")))


PEERS = {
    "hnswlib": Hnswlib,
    "faiss": Faiss,
    "usearch f32": UsearchOf("f32"),
    "usearch f16": UsearchOf("f16"),
    "usearch i8": UsearchOf("i8"),
    "SymphonyQG": SymphonyQg,
    "SVS": Svs,
}
OURS = [f"reprise {codes}" for codes in CODES] + ["reprise hnsw_rs"]


def recall(found, truth):
    return sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), truth[:, :K].tolist())) / truth[:, :K].size


def saved_bytes(engine):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "index")
        engine.save(path)
        # A file, or a folder of files.
        files = [path, *pathlib.Path(path).rglob("*")]
        return sum(os.path.getsize(file) for file in files if os.path.isfile(file))


class Peer:
    """An engine in this process."""

    def __init__(self, make, files):
        self.queries, self.truth = numpy.load(files["queries"]), numpy.load(files["truth"])
        base = numpy.load(files["base"])
        self.builds = {}
        # Searches use the index that one thread built.
        for threads in reversed(THREADS):
            self.engine = make(base.shape[1], len(base))
            cpu, wall = time.process_time(), time.perf_counter()
            self.engine.add(base, threads)
            self.builds[threads] = (time.perf_counter() - wall, time.process_time() - cpu)
        self.bytes = saved_bytes(self.engine) / len(base)

    def sweep(self):
        """Recall, wall and CPU seconds of a query, by width."""
        points = {}
        for ef in WIDTHS:
            cpu, wall, passes = time.process_time(), time.perf_counter(), 0
            while passes == 0 or time.perf_counter() - wall < RUN_SECONDS:
                found = self.engine.search(self.queries, ef)
                passes += 1
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            asked = passes * len(self.queries)
            points[ef] = (recall(found, self.truth), wall / asked, cpu / asked)
            if points[ef][0] > RECALL_ENOUGH:
                break
        return points

    def close(self):
        pass


class Ours:
    """`reprise index bench` in a process of its own, which measures one round per input line."""

    def __init__(self, binary, codes, files):
        self.codes = codes
        engine = ["--engine", codes] if codes == "hnsw_rs" else ["--codes", codes]
        command = [binary, "index", "bench", "--json", *engine, "--threads", "1"]
        for part, path in files.items():
            command += [f"--{part}", str(path)]
        self.builds = {}
        # As with the peers: searches use the index that one thread built.
        for threads in reversed(THREADS):
            more = ["--build-threads", str(threads), "--rounds-from-stdin"]
            self.process = subprocess.Popen([*command, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            report = self.round()
            self.builds[threads] = (report["build_s"], report["build_cpu_s"])
            if threads != THREADS[0]:
                self.close()
        self.bytes = report["bytes"] / report["vectors"]

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"index_peers: reprise index bench ended with {self.process.wait()}")
        return json.loads(line)

    def sweep(self):
        points = self.round()["points"]
        return {it["ef"]: (it["recall_at_10"], 1 / it["qps"], 1e-6 * it["cpu_us"]) for it in points}

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("index_peers: reprise index bench failed")


class Measured:
    """One set of vectors: the build cost of every engine, and its points in every round."""

    def __init__(self, arguments, name):
        self.name, self.rounds = name, []
        files = {part: arguments.folder / f"{name}.{part}.npy" for part in ("base", "queries", "truth")}
        self.engines = {}
        for engine in arguments.engines:
            if engine in OURS:
                self.engines[engine] = Ours(arguments.reprise, engine.split()[1], files)
            else:
                self.engines[engine] = Peer(PEERS[engine], files)
            costs = [f"{threads}: {wall:.1f} s" for threads, (wall, _) in self.engines[engine].builds.items()]
            print(f"{name}, {engine}: built, by threads {', '.join(costs)}", file=sys.stderr, flush=True)
        for number in range(arguments.rounds):
            self.rounds.append({engine: it.sweep() for engine, it in self.engines.items()})
            best = [f"{engine} {self.speed(number, engine) or 0:.0f}" for engine in self.engines]
            print(f"{name}, round {number + 1}: {', '.join(best)}", file=sys.stderr, flush=True)
        for it in self.engines.values():
            it.close()
        self.filtered = filtered(arguments.reprise, files)

    def width(self, engine):
        """The fastest width of enough recall, at which an engine is compared; None if there is none."""
        seconds = {ef: wall for ef, (found, wall, _) in self.medians(engine).items() if found >= RECALL}
        return min(seconds, key=seconds.get, default=None)

    def speed(self, number, engine):
        """Queries per second of a round where the engine is compared."""
        ef = self.width(engine)
        point = self.rounds[number][engine].get(ef)
        return 1 / point[1] if point else None

    def medians(self, engine):
        """Recall, wall and CPU seconds of a query, by width."""
        sweeps = [it[engine] for it in self.rounds]
        widths = [ef for ef in WIDTHS if all(ef in sweep for sweep in sweeps)]
        return {ef: [statistics.median(it) for it in zip(*(sweep[ef] for sweep in sweeps))] for ef in widths}

    def ratio(self, engine, of):
        """Queries per second relative to the best of `of`, as medians over the rounds."""
        ratios = []
        for number in range(len(self.rounds)):
            own = self.speed(number, engine)
            theirs = [self.speed(number, it) for it in of if it in self.engines]
            theirs = [it for it in theirs if it]
            if not own or not theirs:
                return None
            ratios.append(own / max(theirs))
        return statistics.median(ratios)

    def line(self, engine):
        points, ef, it = self.medians(engine), self.width(engine), self.engines[engine]
        usearch = [it for it in PEERS if it.startswith("usearch")]
        cells = [f"**{engine}**" if engine in OURS else engine]
        if ef is None:
            cells += ["not reached", "", "", "", "", ""]
        else:
            found, wall, cpu = points[ef]
            cells += [f"{found:.4f} ({ef})", f"{1 / wall:,.0f}", f"{1e6 * cpu:.0f}",
                      shown(self.ratio(engine, ["hnswlib"])), shown(self.ratio(engine, usearch)),
                      shown(self.ratio(engine, ["SymphonyQG"]))]
        cells.append(f"{max(point[0] for point in points.values()):.4f}")
        for threads in THREADS:
            wall, cpu = it.builds[threads]
            peer = self.engines.get("hnswlib")
            cells += [f"{wall:.1f} / {cpu:.1f}", shown(peer and peer.builds[threads][0] / wall)]
        return f"| {' | '.join([*cells, f'{it.bytes:,.0f}'])} |"

    def table(self):
        head = ["index", f"recall@10 (ef), fastest of at least {RECALL}", "queries per second", "CPU µs a query",
                "of hnswlib", "of usearch's best", "of SymphonyQG", "best recall@10"]
        for threads in THREADS:
            thread = f"{threads} thread{'s' if threads > 1 else ''}"
            head += [f"build, {thread}, s / CPU s", "of hnswlib"]
        head.append("bytes a vector")
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        return "\n".join([
            f"{TITLES[self.name]}:", "", *lines, *map(self.line, self.engines), "",
            f"The same vectors by reprise {DEFAULT}, with the candidates that the service chooses, where a filter allows a "
            "random share of the keys:", "", self.filtered])


def filtered(binary, files):
    """Searches by the default codes where a filter allows a share of the keys, as Markdown."""
    command = [binary, "index", "bench", "--json", "--codes", DEFAULT, "--threads", "1", "--filters"]
    for part, path in files.items():
        command += [f"--{part}", str(path)]
    points = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["filtered"]
    head = ["keys allowed", "recall@10", "CPU µs a query", "of all keys' cost"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for it in points:
        cells = [f"{it['share']:.0%}", f"{it['recall_at_10']:.4f}", f"{it['cpu_us']:.0f}",
                 shown(it["cpu_us"] / points[0]["cpu_us"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(ratio):
    return f"{ratio:.2f}" if ratio else ""


def plot(sets):
    """Queries per second over recall, on a logarithmic scale of 1 - recall."""
    figure, panels = pyplot.subplots(1, len(sets), figsize=(5.2 * len(sets), 4.2), squeeze=False)
    for panel, measured in zip(panels[0], sets):
        for number, engine in enumerate(measured.engines):
            points = [it for it in measured.medians(engine).values() if it[0] > 0.8]
            missed = [-math.log10(max(1 - it[0], 1e-4)) for it in points]
            style = "-" if engine in OURS else "--"
            panel.plot(missed, [1 / it[1] for it in points], style, marker="o", markersize=3, label=engine,
                       color=f"C{number}")
        ticks = [0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999]
        panel.set_xticks([-math.log10(1 - it) for it in ticks], [str(it) for it in ticks], fontsize=7)
        panel.set_yscale("log")
        panel.set(title=TITLES[measured.name], xlabel="recall@10", ylabel="queries per second, one thread")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PLOT, dpi=100, metadata={"Software": None})


def machine():
    """The machine in neutral words: cores, instructions and load."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    vectors = next((it for it in ("avx512_vnni", "avx512f", "avx2") if it in flags), "no AVX2")
    cores = os.cpu_count()
    busy = os.getloadavg()[0] > 1.5 * cores
    return f"{cores} cores, {vectors}" + (", shared with other work" if busy else "")


def report(sets, rounds):
    return "\n\n".join([
        f"Measured {time.strftime('%Y-%m-%d', time.gmtime())}, {machine()}, one searching thread; medians of {rounds} "
        f"rounds. hnswlib {version('hnswlib')}, faiss {faiss.__version__}, usearch {usearch.__version__}, SymphonyQG of "
        f"rabitqlib {version('rabitqlib')}, SVS {version('scalable-vs')}. The peers give "
        "the order of their codes as it is: usearch i8 has no step that compares its last candidates exactly, as reprise's "
        "bytes and halves of bytes have.",
        *(it.table() for it in sets),
        "![Queries per second over recall](docs/index_peers.png)",
    ])


def version(package):
    import importlib.metadata

    return importlib.metadata.version(package)


def publish(text):
    begin, end = MARKS
    old = REPORT.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit(f"index_peers: {REPORT.name} lacks the marks of this table")
    before, after = old.split(begin)[0], old.split(end)[1]
    REPORT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    engines = [*OURS, *PEERS]
    split = lambda text: text.split(",")
    parser.add_argument("reprise", help="the binary")
    parser.add_argument("folder", type=pathlib.Path, help="what index_data.py wrote")
    parser.add_argument("--sets", type=split, default=list(TITLES), help=",".join(TITLES))
    parser.add_argument("--engines", type=split, default=engines, help=",".join(engines))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="into BENCHMARKS.md, although not all is measured")
    arguments = parser.parse_args()
    for given, known in [(arguments.sets, list(TITLES)), (arguments.engines, engines)]:
        if unknown := set(given) - set(known):
            parser.error(f"no {', '.join(sorted(unknown))}: give some of {','.join(known)}")
    sets = [Measured(arguments, name) for name in arguments.sets]
    text = report(sets, arguments.rounds)
    print(text)
    if arguments.write or (arguments.sets, arguments.engines) == (list(TITLES), engines):
        plot(sets)
        publish(text)


if __name__ == "__main__":
    main()
