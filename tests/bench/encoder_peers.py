"""Measures reprise's encoders on the CPU beside PyTorch (eager, f32), ONNX Runtime (f32, and int8: dynamic, weights by
channel) and OpenVINO (f32, bf16, and int8: by NNCF after training), each on one thread, on seeded CLIP models of the
published shapes, and compares their vectors.

    encoder_peers.py REPRISE [--models b32,b16,l14,text] [--batch 1,8,32] [--rounds 5] [--write]

`make bench-encoders` runs all of it. The engines take turns within every round, so that a change of the machine's mood
meets all of them; ratios are taken within a round, and medians over the rounds count. Where others disturb the machine, the
least time of each engine says more: it has a table of its own. The tables go to stdout, and to BENCHMARKS.md where everything is
measured or --write is given.
"""

import argparse
import json
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parent.parent / "BENCHMARKS.md"
MARKS = ("<!-- encoders: made by `make bench-encoders` -->", "<!-- encoders: end -->")
TOKENS = [16, 77, 248]
# Shortest time of one measurement: reprise measures CPU time to 10 ms.
RUN_SECONDS = 0.5
# Pictures at a time, and pairs of runs, of which the speedup of all threads is measured.
SHARED_BATCH, PAIRS = 8, 9

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
warnings.filterwarnings("ignore")
# Quantisation suggests preparing steps; it is measured without them.
logging.disable(logging.WARNING)

import nncf  # noqa: E402
import numpy  # noqa: E402
import onnxruntime  # noqa: E402
import openvino  # noqa: E402
import torch  # noqa: E402
from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: E402
from seeded_clip import SHAPES, Text, Vision, ids_of, lowest_cosine, pictures, write_model  # noqa: E402


def sessions(module, examples, path, free_batch):
    """By name: ONNX Runtime (f32, int8) and OpenVINO (f32, bf16, int8), on one thread."""
    axes = {"x": {0: "batch"}, "y": {0: "batch"}} if free_batch else None
    torch.onnx.export(module, (torch.from_numpy(examples[:1]),), str(path), input_names=["x"], output_names=["y"],
                      dynamic_axes=axes, opset_version=17, dynamo=False)
    small = path.with_suffix(".int8.onnx")
    quantize_dynamic(path, small, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    open_one = lambda it: onnxruntime.InferenceSession(str(it), options, providers=["CPUExecutionProvider"])
    runs = {name: lambda x, it=open_one(file): it.run(None, {"x": x})[0] for name, file in (("ort", path), ("ort8", small))}
    graph = openvino.Core().read_model(path)
    for name, precision in (("vino", "f32"), ("vino16", "bf16")):
        runs[name] = compiled(graph, {"INFERENCE_PRECISION_HINT": precision})
    # What is not in bytes there has the precision that OpenVINO itself chooses.
    runs["vino8"] = compiled(quantised(graph, examples), {})
    return runs


def quantised(graph, examples):
    """The graph in int8, with the ranges that the examples have."""
    dataset = nncf.Dataset([it[None] for it in examples])
    return nncf.quantize(graph.clone(), dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(examples))


def compiled(graph, options):
    """A graph by OpenVINO, on one thread."""
    models = {}

    def run(inputs):
        # For this batch alone: a model of any batch would be slower.
        if inputs.shape not in models:
            model = graph.clone()
            model.reshape(inputs.shape)
            models[inputs.shape] = openvino.Core().compile_model(
                model, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, **options})
        return models[inputs.shape](inputs)[0]

    return run


class Peer:
    """An engine in this process."""

    def __init__(self, run, inputs):
        self.run, self.inputs, self.slow = run, inputs, False

    def measure(self):
        """CPU and wall seconds of one input."""
        if not self.slow:
            self.run(self.inputs)
        cpu, wall, passes = time.process_time(), time.perf_counter(), 0
        while passes == 0 or time.perf_counter() - wall < RUN_SECONDS:
            self.run(self.inputs)
            passes += 1
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        # Where one pass is long, the first round warms up for the following ones.
        self.slow = wall / passes > 1
        return cpu / passes / len(self.inputs), wall / passes / len(self.inputs)


class Ours:
    """The binary, started again for every measurement."""

    def __init__(self, binary, folder, precision, what):
        self.command = [binary, "bench", "encode", "--model", str(folder), "--precision", precision, "--json", *what]
        self.peaks, self.shares = [], []

    def report(self, *more, runs=1, threads=1):
        command = [*self.command, "--runs", str(runs), *more]
        variables = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        return json.loads(subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE).stdout)

    def measure(self):
        report = self.report()
        [measure] = report["measures"]
        self.peaks.append(report["peak"]["gflop_per_cpu_second"])
        self.shares.append(measure["share_of_peak"])
        return 1 / measure["per_cpu_second"], 1 / measure["per_second"]

    def speedup(self):
        """How many times as fast a thread on every core is as one thread, in wall time."""
        return self.report("--speedup", runs=PAIRS, threads=os.cpu_count())["measures"][0]["speedup"]

    def vectors(self):
        return numpy.float32(self.report("--vectors")["measures"][0]["vectors"])


def torch_run(module):
    def run(inputs):
        with torch.inference_mode():
            return module(torch.from_numpy(inputs)).numpy()

    return run


class Costs:
    """CPU and wall seconds of one input by engine, one pair for each round."""

    def __init__(self, engines):
        self.rounds = {engine: [] for engine in engines}

    def add(self, engine, cost):
        self.rounds[engine].append(cost)

    def last(self):
        return ", ".join(f"{engine} {1e3 * costs[-1][0]:.1f}" for engine, costs in self.rounds.items())

    def cell(self, engine):
        """The medians, in milliseconds."""
        return "{:.1f} / {:.1f}".format(*(1e3 * statistics.median(it) for it in zip(*self.rounds[engine])))

    def ratio(self, engine, peer):
        """The median of the rounds' ratios: how many times as fast the engine is as its peer."""
        return statistics.median(b[0] / a[0] for a, b in zip(self.rounds[engine], self.rounds[peer]))

    def least(self, engine):
        """The CPU milliseconds of the round that others disturbed least."""
        return 1e3 * min(cpu for cpu, _ in self.rounds[engine])

    def beside(self, engine, peers):
        """Cells: the least of the best peer, the engine's, and their ratio."""
        best, own = min(map(self.least, peers)), self.least(engine)
        return f"{best:.1f} | {own:.1f} | **{best / own:.2f}**"


def take_turns(engines, rounds, name):
    """The costs of all engines, which take turns within every round."""
    costs = Costs(engines)
    for number in range(rounds):
        for engine, it in engines.items():
            costs.add(engine, it.measure())
        print(f"{name}, round {number + 1}: CPU ms {costs.last()}", file=sys.stderr, flush=True)
    return costs


def between(vectors):
    """Mean cosine of different rows."""
    cosines = unit(vectors) @ unit(vectors).T
    return float((cosines.sum() - len(vectors)) / (len(vectors) * (len(vectors) - 1)))


def unit(vectors):
    """The rows, each of length 1."""
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


class Bench:
    """All measurements so far."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.rows, self.halves, self.leasts, self.cosines, self.speedups = [], [], [], [], []
        self.peaks = {"f32": [], "bf16": [], "int8": []}

    def case(self, name, size, module, runs, model, inputs, what):
        ours = {kind: Ours(self.arguments.reprise, model, kind, what) for kind in self.peaks}
        runs = {"torch": torch_run(module), **runs}
        engines = {"ours": ours["f32"], "ours16": ours["bf16"], "ours8": ours["int8"],
                   **{engine: Peer(run, inputs) for engine, run in runs.items()}}
        costs = take_turns(engines, self.arguments.rounds, f"{name}, {size}")
        cell, ratio = costs.cell, costs.ratio
        for kind in ours:
            self.peaks[kind] += ours[kind].peaks
        share = {kind: statistics.median(ours[kind].shares) for kind in ours}
        self.rows.append(f"| {name} | {size} | {cell('torch')} | {cell('ort')} | {cell('ours')} | "
                         f"**{ratio('ours', 'ort'):.2f}** | {ratio('ours', 'torch'):.2f} | {share['f32']:.2f} | "
                         f"{cell('ort8')} | {cell('vino8')} | {cell('ours8')} | **{ratio('ours8', 'ort8'):.2f}** | "
                         f"**{ratio('ours8', 'vino8'):.2f}** | {share['int8']:.2f} |")
        self.halves.append(f"| {name} | {size} | {cell('vino')} | {cell('ours')} | **{ratio('ours', 'vino'):.2f}** | "
                           f"{cell('vino16')} | {cell('ours16')} | **{ratio('ours16', 'vino16'):.2f}** | "
                           f"{ratio('ours16', 'ours'):.2f} | {share['bf16']:.2f} |")
        self.leasts.append(f"| {name} | {size} | {costs.beside('ours', ['ort', 'vino'])} | "
                           f"{costs.beside('ours16', ['vino16'])} | {costs.beside('ours8', ['ort8', 'vino8'])} |")
        return ours, {engine: run(inputs) for engine, run in runs.items()}

    def compare(self, name, ours, theirs):
        """Cosines of the vectors of the last case."""
        f32, bf16, int8 = (ours[kind].vectors() for kind in ("f32", "bf16", "int8"))
        scale = f"{between(theirs['torch']):.3f}" if len(f32) > 1 else ""
        self.cosines.append(f"| {name} | {lowest_cosine(f32, theirs['torch']):.7f} | "
                            f"{numpy.abs(unit(f32) - unit(theirs['torch'])).max():.1e} | {lowest_cosine(bf16, f32):.6f} | "
                            f"{lowest_cosine(theirs['vino16'], theirs['vino']):.6f} | {lowest_cosine(int8, f32):.5f} | "
                            f"{lowest_cosine(theirs['ort8'], theirs['ort']):.5f} | "
                            f"{lowest_cosine(theirs['vino8'], theirs['vino']):.5f} | {scale} |")

    def model(self, key):
        shape = SHAPES[key]
        name, batches = shape[0], [it for it in shape[-1] if it in self.arguments.batch]
        if not batches:
            return
        model = self.folder / key
        module = Vision(write_model(model, shape))
        runs = sessions(module, pictures(8), self.folder / f"{key}.onnx", True)
        for batch in batches:
            ours, theirs = self.case(name, f"{batch} at a time", module, runs, model, pictures(batch),
                                     ["--batch", str(batch)])
            if batch == SHARED_BATCH:
                cells = " | ".join(f"{it.speedup():.2f}" for it in ours.values())
                self.speedups.append(f"| {name} | {cells} |")
        self.compare(f"{name}, {batches[-1]} pictures", ours, theirs)

    def text(self):
        model = self.folder / "text"
        module = Text(write_model(model, SHAPES["b32"]))
        for tokens in TOKENS:
            ids = ids_of(tokens)
            runs = sessions(module, ids, self.folder / f"text{tokens}.onnx", False)
            ours, theirs = self.case("text, width 512", f"{tokens} tokens", module, runs, model, ids,
                                     ["--tokens", str(tokens)])
            self.compare(f"text, {tokens} tokens", ours, theirs)

    def threads(self):
        """The table of speedups; none if no pictures were encoded so many at a time."""
        head = [f"{os.cpu_count()} threads beside one, {SHARED_BATCH} pictures at a time: how many times as fast, in wall time, "
                f"the median of {PAIRS} pairs of runs in turns:", "", "| tower | f32 | bf16 | int8 |", "|---|---|---|---|"]
        return [*head, *self.speedups, ""] if self.speedups else []

    def table(self):
        peaks = ", ".join(f"{statistics.median(self.peaks[kind]):.0f} GFLOP ({kind})" for kind in self.peaks)
        return "\n".join([
            f"Measured {time.strftime('%Y-%m-%d', time.gmtime())}, {machine()}; medians of {self.arguments.rounds} "
            f"rounds. PyTorch {torch.__version__.split('+')[0]}, ONNX Runtime {onnxruntime.__version__}, "
            f"OpenVINO {openvino.__version__.split('-')[0]}, NNCF {nncf.__version__}.",
            "",
            "| tower | input | PyTorch f32 | ONNX Runtime f32 | reprise f32 | of ONNX Runtime | of PyTorch | "
            "of large product | ONNX Runtime int8 | OpenVINO int8 | reprise int8 | of ONNX Runtime | of OpenVINO | "
            "of large product |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
            *self.rows,
            "",
            "| tower | input | OpenVINO f32 | reprise f32 | of OpenVINO | OpenVINO bf16 | reprise bf16 | of OpenVINO | "
            "of reprise f32 | of large product |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *self.halves,
            "",
            "The least CPU milliseconds of all rounds, of the faster peer (ONNX Runtime or OpenVINO) and of reprise:",
            "",
            "| tower | input | peer, f32 | reprise | | peer, bf16 | reprise | | peer, int8 | reprise | |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *self.leasts,
            "",
            *self.threads(),
            f"A product of 2048 x 2048 x 2048 by reprise's kernels does {peaks} per CPU-second; "
            f"PyTorch's f32 does {torch_peak():.0f}.",
            "",
            "| vectors of | reprise f32 and PyTorch | largest difference | reprise bf16 and its f32 | "
            "OpenVINO bf16 and its f32 | reprise int8 and its f32 | ONNX Runtime int8 and its f32 | "
            "OpenVINO int8 and its f32 | different pictures |",
            "|---|---|---|---|---|---|---|---|---|",
            *self.cosines,
        ])


def torch_peak():
    """GFLOP per CPU-second of the same product."""
    x = torch.randn(2048, 2048)
    product = Peer(lambda x: torch.mm(x, x), x)
    return 2 * 2048**3 / 1e9 / (statistics.median(product.measure()[0] for _ in range(3)) * len(x))


def machine():
    """The machine in neutral words: cores, instructions and load."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    vectors = next((it for it in ("avx512_vnni", "avx512f", "avx2") if it in flags), "no AVX2")
    vectors += "".join(f", {it}" for it in ("avx512_bf16", "amx_bf16") if it in flags)
    cores = os.cpu_count()
    busy = os.getloadavg()[0] > 1.5 * cores
    return f"one thread of {cores} cores, {vectors}" + (
        ", shared with other work (wall times are not to be trusted)" if busy else "")


def publish(table):
    begin, end = MARKS
    old = REPORT.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit(f"encoder_peers: {REPORT.name} lacks the marks of this table")
    before, after = old.split(begin)[0], old.split(end)[1]
    REPORT.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("reprise", help="the binary")
    names = [*SHAPES, "text"]
    parser.add_argument("--models", type=lambda text: text.split(","), default=names, help=",".join(names))
    parser.add_argument("--batch", type=lambda text: [int(it) for it in text.split(",")], default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="into BENCHMARKS.md, although not all is measured")
    arguments = parser.parse_args()
    if unknown := set(arguments.models) - set(names):
        parser.error(f"no model {', '.join(sorted(unknown))}: give some of {','.join(names)}")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        for name in arguments.models:
            bench.text() if name == "text" else bench.model(name)
        table = bench.table()
    print(table)
    if arguments.write or (arguments.models == names and arguments.batch == [1, 8, 32]):
        publish(table)


if __name__ == "__main__":
    main()
