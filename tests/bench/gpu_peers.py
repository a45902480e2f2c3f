"""Measures reprise's encoders on an NVIDIA GPU beside PyTorch, eager and compiled, on seeded models of the published
shapes, and compares their vectors.

    gpu_peers.py REPRISE [--models b32,l14,aim] [--batch 1,32,256] [--precisions f32,bf16] [--rounds 3] [--write]

Needs PyTorch with CUDA, transformers, safetensors and Pillow, and a binary of scripts/build-cuda.sh. PyTorch is
measured with pixels that are on the card already; reprise from the frames' bytes to vectors in memory, as a server
encodes. The engines take turns within every round; medians count. The table goes to stdout, and to BENCHMARKS.md with
--write.
"""

import argparse
import copy
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parent.parent / "BENCHMARKS.md"
MARKS = ("<!-- gpu: made by `tests/bench/gpu_peers.py` -->", "<!-- gpu: end -->")
PARITY = HERE.parent / "parity"
RUN_SECONDS = 0.5
AIM = dict(width=768, heads=12, layers=12, inner=3072, frames=8, patch=16, grid=14)
NAMES = {"b32": "ViT-B/32", "b16": "ViT-B/16", "l14": "ViT-L/14", "aim": "AIM, ViT-B/16, 8 frames"}

sys.path.append(str(PARITY))
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import numpy  # noqa: E402
import torch  # noqa: E402
from seeded_clip import SHAPES, Vision, lowest_cosine, pictures, write_model  # noqa: E402


def write_aim(folder):
    """TF-CoVR's video tower in its published shape, seeded, with the small text tower of the parity fixtures."""
    import covr

    tower = covr.seed(covr.Aim(**AIM), 1)
    with torch.no_grad():
        # Smaller than those of the small models, whose sums have fewer terms.
        for name, weight in tower.named_parameters():
            if weight.dim() > 1:
                weight.mul_(0.2)
    width = AIM["width"]
    shutil.copytree(PARITY / "data" / "covr" / "bert" / "text", folder / "text")
    head = {f"combiner.{name}": it for name, it in covr.seed(covr.Combiner(width, 16, 24), 2).state_dict().items()}
    head |= {f"text_proj.{name}": it for name, it in covr.seed(torch.nn.Linear(12, width), 3).state_dict().items()}
    covr.save(head, folder / "combiner.safetensors")
    covr.save(tower.state_dict(), folder / "model.safetensors")
    video = {"num_attention_heads": AIM["heads"], "num_frames": AIM["frames"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "aim", "video": video, "text": {"max_tokens": 12}}))
    return tower


def made(key, folder):
    """A model's folder, its module, and a function from a batch to its pixels."""
    folder.mkdir()
    if key == "aim":
        shape = (-1, AIM["frames"], 3, 224, 224)
        return write_aim(folder), lambda count: pictures(count * AIM["frames"]).reshape(shape)
    return Vision(write_model(folder, SHAPES[key])), pictures


def on_card(module, precision):
    """A copy of the module with weights in `precision`, and its type of numbers."""
    kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[precision]
    return copy.deepcopy(module).to("cuda").to(kind), kind


def seconds_per_input(run, inputs):
    """Wall seconds, after a warm-up."""
    for _ in range(3):
        run(inputs)
    torch.cuda.synchronize()
    began, passes = time.perf_counter(), 0
    while passes == 0 or time.perf_counter() - began < RUN_SECONDS:
        run(inputs)
        torch.cuda.synchronize()
        passes += 1
    return (time.perf_counter() - began) / passes / len(inputs)


def ours(arguments, folder, key, precision, batches, *more):
    """The report of `reprise bench encode` for all batches: one start, because loading takes seconds."""
    kind = "--clips" if key == "aim" else "--batch"
    command = [arguments.reprise, "bench", "encode", "--model", str(folder), "--device", "cuda", "--precision", precision,
               kind, ",".join(map(str, batches)), "--json", *more]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


class Bench:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.rows, self.cosines, self.peaks = arguments, folder, [], [], []

    def model(self, key):
        folder = self.folder / key
        module, pixels_of = made(key, folder)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        few = torch.from_numpy(pixels_of(8)).to("cuda")
        with torch.inference_mode():
            exact = module.eval().to("cuda")(few).float().cpu().numpy()
        for precision in self.arguments.precisions:
            self.speed(key, folder, module, pixels_of, precision)
            self.parity(key, folder, module, few, exact, precision)

    def speed(self, key, folder, module, pixels_of, precision):
        module, kind = on_card(module, precision)
        # One graph for each batch size.
        engines = {"eager": module, "compiled": torch.compile(module, dynamic=False)}
        batches = [it for it in self.arguments.batch if key != "aim" or it <= 32]
        costs = {(engine, batch): [] for engine in [*engines, "ours"] for batch in batches}
        cpu_rates = {}
        with torch.inference_mode():
            for _ in range(self.arguments.rounds):
                report = ours(self.arguments, folder, key, precision, batches)
                self.peaks.append((precision, report["peak"]["gflop_per_second"] / 1e3))
                for batch, measure in zip(batches, report["measures"]):
                    costs["ours", batch].append(1 / measure["per_second"])
                    cpu_rates[batch] = measure.get("per_cpu_second")
                    inputs = torch.from_numpy(pixels_of(batch)).to("cuda").to(kind)
                    for engine, run in engines.items():
                        costs[engine, batch].append(seconds_per_input(run, inputs))
        for batch in batches:
            rate = {engine: 1 / statistics.median(costs[engine, batch]) for engine in [*engines, "ours"]}
            best = max(rate["eager"], rate["compiled"])
            cpu = f"{1e3 / cpu_rates[batch]:.2f}" if cpu_rates[batch] else ""
            self.rows.append(f"| {NAMES[key]} | {precision} | {batch} | {rate['eager']:.0f} | {rate['compiled']:.0f} | "
                             f"{rate['ours']:.0f} | **{rate['ours'] / best:.2f}** | {cpu} |")
            print(self.rows[-1], flush=True)

    def parity(self, key, folder, module, few, exact, precision):
        module, kind = on_card(module, precision)
        with torch.inference_mode():
            theirs = module(few.to(kind)).float().cpu().numpy()
        vectors = ours(self.arguments, folder, key, precision, [8], "--runs", "1", "--vectors")
        found = numpy.float32(vectors["measures"][0]["vectors"])
        unit = lambda it: it / numpy.linalg.norm(it, axis=1, keepdims=True)
        most = float(numpy.abs(unit(found) - unit(exact)).max())
        self.cosines.append(f"| {NAMES[key]} | {precision} | {lowest_cosine(found, exact):.7f} | {most:.1e} | "
                            f"{lowest_cosine(theirs, exact):.7f} |")
        print(self.cosines[-1], flush=True)

    def table(self):
        peaks = {kind: statistics.median(it for other, it in self.peaks if other == kind) for kind in self.arguments.precisions}
        return "\n".join([
            f"Measured {time.strftime('%Y-%m-%d', time.gmtime())} on one {torch.cuda.get_device_name(0)} with "
            f"{os.cpu_count()} CPU cores; medians of {self.arguments.rounds} rounds. PyTorch "
            f"{torch.__version__.split('+')[0]}. A large product by candle does "
            + ", ".join(f"{peaks[kind]:.0f} TFLOP/s ({kind})" for kind in peaks) + ".",
            "",
            "| model | precision | inputs at a time | PyTorch, a second | compiled, a second | reprise, a second | "
            "of the faster | reprise's CPU ms an input |",
            "|---|---|---|---|---|---|---|---|",
            *self.rows,
            "",
            "| vectors of | precision | reprise and PyTorch f32: least cosine | largest difference | "
            "PyTorch in this precision and f32 |",
            "|---|---|---|---|---|",
            *self.cosines,
        ])


def publish(table):
    begin, end = MARKS
    old = REPORT.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        sys.exit(f"gpu_peers: {REPORT.name} lacks the marks of this table")
    REPORT.write_text(f"{old.split(begin)[0]}{begin}\n\n{table}\n\n{end}{old.split(end)[1]}")


def main():
    listed = lambda text: text.split(",")
    parser = argparse.ArgumentParser(description="See the top of this file.")
    parser.add_argument("reprise", help="the binary")
    parser.add_argument("--models", type=listed, default=["b32", "l14", "aim"], help=",".join(NAMES))
    parser.add_argument("--batch", type=lambda text: [int(it) for it in listed(text)], default=[1, 32, 256])
    parser.add_argument("--precisions", type=listed, default=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into BENCHMARKS.md")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_peers: PyTorch finds no GPU")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        for key in arguments.models:
            bench.model(key)
    print(bench.table())
    if arguments.write:
        publish(bench.table())


if __name__ == "__main__":
    main()
