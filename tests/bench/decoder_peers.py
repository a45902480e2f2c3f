"""Measures how fast models that write texts read prompts and write tokens on the CPU, beside transformers on PyTorch: in f32,
and in int8 by dynamic quantisation. The model has the shape of Qwen2-VL-2B and seeded random weights.

    decoder_peers.py REPRISE WORDS [--layers 28] [--runs 3] [--threads 2] [--write]

WORDS is a folder with the small models of make_words.py, whose tokenizer is used. `make bench-decoders` runs all of it. Each
engine runs in a process of its own, on the same weights and as many tokens. PyTorch gets patches of random values, so that
its time holds no preprocessing; reprise's holds it. The table goes to stdout, and with --write to BENCHMARKS.md.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parent.parent / "BENCHMARKS.md"
MARKS = ("<!-- decoders: made by `make bench-decoders` -->", "<!-- decoders: end -->")
SIDE, FRAMES, PATCH, MERGE, TEMPORAL = 336, 8, 14, 2, 2
# A first run that takes longer needs no warm-up: it counts, alone.
LONG_SECONDS = 10
VOCABULARY, NEW = 151_936, 32
TEXT = dict(
    vocab_size=VOCABULARY, hidden_size=1536, intermediate_size=8960, num_attention_heads=12, num_key_value_heads=2,
    max_position_embeddings=32768, sliding_window=32768, rope_theta=1_000_000.0,
    rope_scaling=dict(type="mrope", mrope_section=[16, 24, 24]),
)
TOWER = dict(
    depth=32, embed_dim=1280, mlp_ratio=4, num_heads=16, in_chans=3, hidden_size=1536, patch_size=PATCH,
    spatial_merge_size=MERGE, spatial_patch_size=PATCH, temporal_patch_size=TEMPORAL,
)
NAMES = {
    "ours8": "**reprise int8**", "ours": "**reprise f32**",
    "torch8": "PyTorch int8, dynamic", "torch": "PyTorch f32",
}


def write_model(words, folder, layers):
    """The folder of a model of this shape. Returns the values that writing one token reads."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    source = pathlib.Path(words) / "fixtures" / "qwen2-vl"
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.json"]:
        if (source / name).exists():
            shutil.copy(source / name, folder / name)
    for name in ["preprocessor_config.json", "video_preprocessor_config.json"]:
        config = json.loads((source / name).read_text())
        pixels = dict(min_pixels=56 * 56, max_pixels=1280 * 28 * 28)
        size = dict(shortest_edge=pixels["min_pixels"], longest_edge=pixels["max_pixels"])
        config.update(patch_size=PATCH, merge_size=MERGE, temporal_patch_size=TEMPORAL, size=size)
        config.update({key: value for key, value in pixels.items() if key in config})
        (folder / name).write_text(json.dumps(config))
    config = json.loads((source / "config.json").read_text())
    config.update(TEXT, num_hidden_layers=layers, max_window_layers=layers, vision_config=TOWER, torch_dtype="bfloat16")
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    model = Qwen2VLForConditionalGeneration(Qwen2VLConfig(**config))
    model.save_pretrained(folder, max_shard_size="2GB")
    # transformers writes a layout of its own for the configuration.
    (folder / "config.json").write_text(json.dumps(config))
    decoder = sum(it.weight.numel() for it in model.model.language_model.modules() if isinstance(it, torch.nn.Linear))
    return decoder + VOCABULARY * TEXT["hidden_size"]


class Times:
    """Notes when each token was written."""

    def __init__(self):
        self.wall, self.cpu = [], []

    def __call__(self, ids, scores, **_):
        import torch

        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        return torch.zeros(ids.shape[0], dtype=torch.bool)


def run_torch(folder, engine, prompts, runs, threads):
    """Prints the same report as `reprise bench generate --json`, for prompts of as many tokens."""
    import torch
    from transformers import Qwen2VLForConditionalGeneration, StoppingCriteriaList

    torch.set_num_threads(threads)
    began = time.perf_counter()
    model = Qwen2VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    if engine == "torch8":
        torch.backends.quantized.engine = "x86"
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    loaded = time.perf_counter() - began
    config = json.loads((pathlib.Path(folder) / "config.json").read_text())

    def inputs(prompt):
        ids = torch.randint(20, 300, (1, prompt["tokens"]))
        if prompt["what"] == "text":
            return dict(input_ids=ids)
        steps = 1 if prompt["what"] == "picture" else FRAMES // TEMPORAL
        side = SIDE // PATCH
        count = steps * side * side // MERGE**2
        kind = "image" if prompt["what"] == "picture" else "video"
        ids[0, 4], ids[0, 5 : 5 + count], ids[0, 5 + count] = (
            config["vision_start_token_id"], config[f"{kind}_token_id"], config["vision_end_token_id"])
        pixels = torch.randn(steps * side * side, 3 * TEMPORAL * PATCH * PATCH)
        names = ("pixel_values", "image_grid_thw") if kind == "image" else ("pixel_values_videos", "video_grid_thw")
        types = torch.zeros_like(ids)
        types[0, 5 : 5 + count] = 1 if kind == "image" else 2
        return {"input_ids": ids, names[0]: pixels, names[1]: torch.tensor([[steps, side, side]]), "mm_token_type_ids": types}

    def once(prompt):
        given, times = inputs(prompt), Times()
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        began, cpu = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            model.generate(
                **given, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, temperature=None, top_p=None, top_k=None,
                stopping_criteria=StoppingCriteriaList([times]))
        rate = (len(times.wall) - 1) / (times.wall[-1] - times.wall[0])
        return times.wall[0] - began, times.cpu[0] - cpu, rate

    measured, rate = [], 0
    for prompt in prompts:
        first = once(prompt)
        rounds = [first] if first[0] > LONG_SECONDS else [once(prompt) for _ in range(runs)]
        seconds, cpu, rate = (statistics.median(it) for it in zip(*rounds))
        measured.append(dict(prompt, seconds=seconds, cpu_seconds=cpu))
    print(json.dumps(dict(load_seconds=loaded, prompts=measured, writing=dict(tokens_per_second=rate))))


def run(command, threads):
    """The report that a program prints, with its peak memory in bytes."""
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        out.seek(0)
        text = out.read()
    if status != 0:
        print(f"bench-decoders: {command[0]} failed", file=sys.stderr)
        return None
    return dict(json.loads(text.splitlines()[-1]), memory=used.ru_maxrss * 1024)


def query_wait(reprise, folder, precision, threads):
    """What `reprise bench encode` measures of one clip, with the model taken for an embedder; `query_wait` is the seconds that a
    query waits at most meanwhile. None if it fails."""
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"embedding": {"kind": "qwen3"}}))
    command = [reprise, "bench", "encode", "--model", str(folder), "--precision", precision, "--clips", "1", "--runs", "1", "--json"]
    report = run(command, threads)
    return report and report["measures"][0]


def row(engine, report, read_values):
    if report is None:
        return f"| {NAMES[engine]} | did not run |" + " |" * 7
    prompt = lambda what, at=0: [it for it in report["prompts"] if it["what"] == what][at]
    seconds = lambda it: f"{it['seconds']:.2f} / {it['cpu_seconds']:.2f}"
    short, long = prompt("text", 0), prompt("text", 1)
    rate = report["writing"]["tokens_per_second"]
    size = 1 if engine.endswith("8") else 4
    share = 100 * rate * size * read_values / report["writing"]["memory_bytes_per_second"]
    return (
        f"| {NAMES[engine]} | {report['memory'] / 1e9:.1f} | {seconds(short)} | {seconds(long)} | "
        f"{long['tokens'] / long['seconds']:.0f} | {seconds(prompt('picture'))} | {seconds(prompt('clip'))} | "
        f"{rate:.1f} | {share:.0f} % |")


def machine():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    best = next((it for it in ["amx_int8", "avx512_vnni", "avx512f", "avx2"] if it in flags), "no AVX2")
    return f"{os.cpu_count()} cores, {best}"


def table(reports, waits, read_values, arguments):
    ours = next(it for it in (reports["ours8"], reports["ours"]) if it)
    tokens = {it["what"] + str(at): it["tokens"] for at, it in enumerate(ours["prompts"])}
    lines = [
        f"Measured {time.strftime('%Y-%m-%d', time.gmtime())}, {machine()}, {arguments.threads} threads; medians of "
        f"{arguments.runs} runs, or one run where it took over {LONG_SECONDS} s; prompts of {', '.join(f'{count} tokens ({what[:-1]})' for what, count in tokens.items())}. "
        f"Memory was read at {ours['writing']['memory_bytes_per_second'] / 1e9:.1f} GB/s behind the int8 run, and is measured again behind each "
        f"of reprise's; PyTorch's share is of the last. Seconds are wall / CPU until the first token.",
        "",
        "| | peak memory, GB | short text, s | long text, s | long text, tokens/s | picture, s | clip of 8 frames, s | "
        "written tokens/s | of what reading the weights allows |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    last = reports["ours"] or ours
    for engine, report in reports.items():
        if report:
            report["writing"].setdefault("memory_bytes_per_second", last["writing"]["memory_bytes_per_second"])
        lines.append(row(engine, report, read_values))
    if not waits:
        return "\n".join(lines)
    frames = next(iter(waits.values()))["length"]
    longest = ", ".join(f"{it['query_wait']:.2f} s in {name} (of {1 / it['per_second']:.1f} s)" for name, it in waits.items())
    return "\n".join([*lines, "", f"While a clip of {frames} frames is encoded as bulk work, a query waits at most {longest}."])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reprise")
    parser.add_argument("words")
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    parser.add_argument("--prompts", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.engine:
        prompts = json.loads(arguments.prompts)
        return run_torch(arguments.words, arguments.engine, prompts, arguments.runs, arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        read_values = write_model(arguments.words, folder, arguments.layers)
        reports = {}
        for engine, precision in [("ours8", "int8"), ("ours", "f32")]:
            command = [arguments.reprise, "bench", "generate", "--model", str(folder), "--precision", precision, "--json",
                       "--side", str(SIDE), "--frames", str(FRAMES), "--tokens", str(NEW), "--runs", str(arguments.runs)]
            reports[engine] = run(command, arguments.threads)
        prompts = json.dumps([{key: it[key] for key in ("what", "tokens")} for it in reports["ours"]["prompts"]])
        for engine in ["torch8", "torch"]:
            command = [sys.executable, __file__, arguments.reprise, str(folder), "--engine", engine, "--prompts", prompts,
                       "--runs", str(arguments.runs), "--threads", str(arguments.threads)]
            reports[engine] = run(command, arguments.threads)
        waits = {precision: query_wait(arguments.reprise, folder, precision, arguments.threads) for precision in ("int8", "f32")}
    waits = {precision: measure for precision, measure in waits.items() if measure}
    text = table(reports, waits, read_values, arguments)
    print(text)
    if arguments.write:
        before, rest = REPORT.read_text().split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        REPORT.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
