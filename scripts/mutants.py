"""Tries a sample of cargo-mutants' mutants with one build, in a tree that it may change:

    mutants.py [--first FILTERS] [--then FOLDER=FILTERS]... PACKAGE N SEED FILES...

First with the package's unit tests; with `--first` those that match a filter run before all of them. With `--then` the mutants
that survive are built into the server too, and the integration tests that match a filter of their folder run against it. Several
filters are separated by commas. The last line counts; a mutant is caught if any test fails.

A build for each mutant would take hours. So each mutated function gets all its bodies: `if is_mutant(7) { mutated } else
{ body }`. The variable MUTANT chooses one when the tests run. Functions with `impl` in their result and `const` ones are left
out, because all their bodies would need one type, or no variable.
"""

import argparse
import collections
import json
import multiprocessing.pool
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time

HELPER = """#![allow(warnings, arithmetic_overflow, unconditional_panic, unsafe_code)]
#[doc(hidden)]
pub fn is_mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("MUTANT").ok()?.parse().ok()) == Some(number)
}
"""
# An input that noticed one mutant is not kept for the next one.
SETTINGS = {"PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true"}
# A mutant may fill the memory.
MOST_MEMORY = 8 << 30
# Mutants that are tried at once.
AT_ONCE = 4


def listed(package, files):
    """All mutants, by name."""
    chosen = [f"--file={file}" for file in files]
    command = ["cargo", "mutants", "--list", "--json", f"--package={package}", *chosen]
    mutants = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {mutant["name"]: mutant for mutant in mutants}


def place(lines, at):
    """The offset of a line and a column, which count from 1."""
    return sum(map(len, lines[: at["line"] - 1])) + at["column"] - 1


def body_of(function):
    """Where a function's body begins; `None` if it can't have several."""
    name = re.search(r"\bfn\s+\w+", function)
    at, depth = name.end(), 0
    while function[at] != "{" or depth > 0:
        depth += (function[at] in "([") - (function[at] in ")]")
        at += 1
    result = function[name.end() : at].partition("->")[2]
    is_const = re.search(r"\bconst\s+(unsafe\s+)?fn\b", function[: name.end()])
    return None if is_const or "impl " in result else at


def mutate(path, mutants):
    """Writes the mutants (number, mutant) of a file; returns their numbers."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    functions = collections.defaultdict(list)
    for number, mutant in mutants:
        if mutant["function"]:
            span = mutant["function"]["span"]
            functions[place(lines, span["start"]), place(lines, span["end"])].append((number, mutant))
    written = []
    for (start, end), of_function in sorted(functions.items(), reverse=True):
        begin = body_of(text[start:end])
        if begin is None:
            continue
        body, bodies = text[start + begin : end], "{ "
        for number, mutant in of_function:
            span = [place(lines, mutant["span"][side]) - start - begin for side in ("start", "end")]
            if span[0] < 0:
                continue
            mutated = body[: span[0]] + mutant["replacement"] + body[span[1] :]
            if mutant["genre"] == "FnValue":
                mutated = "{ " + mutant["replacement"] + " }"
            bodies += f"/*from {number}*/ if crate::is_mutant({number}) {mutated} /*to {number}*/ else "
            written.append(number)
        text = text[: start + begin] + bodies + body + " }" + text[end:]
    path.write_text(text)
    return written


def add_helper(library):
    """Adds the helper after the library's own documentation and attributes."""
    lines = library.read_text().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.strip() and not line.startswith(("//!", "#![")))
    library.write_text("".join([*lines[:first], HELPER, *lines[first:]]))


def refused(messages):
    """The numbers of the mutants that the compiler refuses."""
    numbers = set()
    for message in messages:
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        for span in message["message"]["spans"]:
            while span["expansion"]:
                span = span["expansion"]["span"]
            path = pathlib.Path(span["file_name"])
            content = path.read_bytes() if path.exists() else b""
            for found in re.finditer(rb"/\*from (\d+)\*/.*?/\*to \1\*/", content, re.DOTALL):
                if found.start() <= span["byte_start"] <= found.end():
                    numbers.add(int(found[1]))
    return numbers


def build(package, mutants, commands):
    """Builds `commands` with all mutants (number, mutant) that compile. Returns the binaries and the mutants' numbers."""
    left = dict(mutants)
    while True:
        subprocess.run(["git", "checkout", "--quiet", "--", "."], check=True)
        files = collections.defaultdict(list)
        for number, mutant in left.items():
            files[mutant["file"]].append((number, mutant))
        written = [number for file, of_file in files.items() for number in mutate(pathlib.Path(file), of_file)]
        add_helper(pathlib.Path(package.removeprefix("reprise-"), "src/lib.rs"))
        binaries = []
        for command in commands:
            built = subprocess.run([*command, "--message-format=json"], stdout=subprocess.PIPE, text=True, check=False)
            messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
            if built.returncode != 0:
                break
            is_test = "test" in command
            made = [it for it in messages if it.get("executable") and it["profile"]["test"] == is_test]
            binaries.append(made[-1]["executable"])
        else:
            return binaries, written
        gone = refused(messages) & left.keys()
        if not gone:
            sys.exit("mutants: the build fails, and not because of a mutant")
        left = {number: mutant for number, mutant in left.items() if number not in gone}


class Tests:
    """Tests that run with a mutant."""

    def __init__(self, binary, folder, more, filters):
        self.binary, self.folder = binary, folder
        self.environment = {**os.environ, **SETTINGS, **more}
        # What the tests of a mutated file match; nothing for all tests.
        self.filters = filters
        self.most_seconds = 3600

    def limit(self):
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (self.most_seconds, self.most_seconds))

    def run(self, number, filters):
        """Returns the first test that fails with a mutant, or `None`, and the seconds of CPU time."""
        tests = subprocess.Popen(
            [self.binary, *filters], cwd=self.folder, env={**self.environment, "MUTANT": str(number)}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, errors="replace", preexec_fn=self.limit,
        )  # fmt: skip
        # A server may wait for ever.
        late = threading.Timer(self.most_seconds, os.killpg, (tests.pid, signal.SIGKILL))
        late.start()
        failed = "the end of the process"
        for line in tests.stdout:
            if line.startswith("test ") and line.rstrip().endswith("FAILED"):
                failed = line.split()[1]
                os.killpg(tests.pid, signal.SIGKILL)
                break
            if line.startswith("test result: ok"):
                failed = None
        _, _, used = os.wait4(tests.pid, 0)
        tests.returncode = 0
        late.cancel()
        return failed, used.ru_utime + used.ru_stime

    def survivors(self, numbers, mutants):
        """The mutants that no test notices. Tries some at once, because tests also wait."""
        began = time.monotonic()
        failed, seconds = self.run(0, sorted({it for of_folder in self.filters.values() for it in of_folder}))
        if failed:
            sys.exit(f"mutants: {failed} fails without any mutant")
        self.most_seconds = int(10 * max(seconds, time.monotonic() - began)) + 5
        left = []

        def try_one(number):
            file = mutants[number]["file"]
            failed, _ = self.run(number, next((it for folder, it in self.filters.items() if file.startswith(folder)), []))
            print(f"{'caught by ' + failed if failed else 'not caught'}: {mutants[number]['name']}", flush=True)
            if failed is None:
                left.append(number)

        with multiprocessing.pool.ThreadPool(AT_ONCE) as pool:
            pool.map(try_one, numbers, chunksize=1)
        return sorted(left)


def unit_tests(package, mutants):
    """The unit tests, and the mutants that compile."""
    command = ["cargo", "test", f"--package={package}", "--lib", "--no-run"]
    [binary], viable = build(package, mutants.items(), [command])
    return Tests(binary, package.removeprefix("reprise-"), {}, {}), viable


def integration_tests(package, mutants, filters):
    """The integration tests, and a server with the mutants."""
    # With the features that the tests expect: those of the whole workspace.
    server = ["cargo", "build", "--workspace", "--bin=reprise"]
    tests = ["cargo", "test", "--workspace", "--test=it", "--no-run"]
    [server, tests], _ = build(package, mutants.items(), [server, tests])
    return Tests(tests, "tests", {"REPRISE_BIN": server}, filters)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--then", action="append", default=[], metavar="FOLDER=FILTERS")
    parser.add_argument("--first", metavar="FILTERS")
    parser.add_argument("package")
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    known = listed(args.package, args.files)
    names = random.Random(args.seed).sample(sorted(known), min(args.count, len(known)))
    mutants = {number: known[name] for number, name in enumerate(names, 1)}
    tests, viable = unit_tests(args.package, mutants)
    left = viable
    if args.first:
        left = Tests(tests.binary, tests.folder, {}, {"": args.first.split(",")}).survivors(left, mutants)
    left = tests.survivors(left, mutants)
    if args.then and left:
        print(f"{len(viable)} viable mutants, of which unit tests catch {len(viable) - len(left)}", flush=True)
        filters = {folder: filters.split(",") for folder, _, filters in (it.partition("=") for it in args.then)}
        tests = integration_tests(args.package, {number: mutants[number] for number in left}, filters)
        left = tests.survivors(left, mutants)
    for number in left:
        print(f"SURVIVED: {mutants[number]['name']}")
    print(f"{len(names)} of {len(known)} mutants tried, {len(viable)} viable, {len(viable) - len(left)} caught")


if __name__ == "__main__":
    main()
