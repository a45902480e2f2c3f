"""Tries a sample of cargo-mutants' mutants with one build: mutants.py PACKAGE N SEED FILES..., in a tree that it may change.

A build for each mutant would take hours. So each mutated function gets all its bodies: `if is_mutant(7) { mutated } else
{ body }`. The variable MUTANT chooses one when the tests run. Functions with `impl` in their result and `const` ones are left
out, because all their bodies would need one type, or no variable.
"""

import collections
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys

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


def build(package, mutants):
    """Builds the tests with all mutants (number, mutant) that compile. Returns the binary and the mutants' numbers."""
    left = dict(mutants)
    while True:
        subprocess.run(["git", "checkout", "--quiet", "--", "."], check=True)
        files = collections.defaultdict(list)
        for number, mutant in left.items():
            files[mutant["file"]].append((number, mutant))
        written = [number for file, of_file in files.items() for number in mutate(pathlib.Path(file), of_file)]
        add_helper(pathlib.Path(package.removeprefix("reprise-"), "src/lib.rs"))
        command = ["cargo", "test", f"--package={package}", "--lib", "--no-run", "--message-format=json"]
        built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
        if built.returncode == 0:
            return [it["executable"] for it in messages if it.get("executable")][-1], written
        gone = refused(messages) & left.keys()
        if not gone:
            sys.exit("mutants: the build fails, and not because of a mutant")
        left = {number: mutant for number, mutant in left.items() if number not in gone}


def run(binary, folder, number, seconds):
    """Runs the tests with a mutant; returns the first test that fails, or `None`, and the seconds of CPU time."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    tests = subprocess.Popen(
        [binary], cwd=folder, env={**os.environ, **SETTINGS, "MUTANT": str(number)}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, errors="replace", preexec_fn=limit,
    )
    failed = "the end of the process"
    for line in tests.stdout:
        if line.startswith("test ") and line.rstrip().endswith("FAILED"):
            failed = line.split()[1]
            tests.kill()
            break
        if line.startswith("test result: ok"):
            failed = None
    tests.wait()
    return failed, used() - before


def main():
    package, count, seed, *files = sys.argv[1:]
    known = listed(package, files)
    names = random.Random(int(seed)).sample(sorted(known), min(int(count), len(known)))
    mutants = {number: known[name] for number, name in enumerate(names, 1)}
    binary, viable = build(package, mutants)
    folder = package.removeprefix("reprise-")
    failed, seconds = run(binary, folder, 0, 3600)
    if failed:
        sys.exit(f"mutants: {failed} fails without any mutant")
    caught = 0
    for number in sorted(viable):
        failed, _ = run(binary, folder, number, int(10 * seconds) + 5)
        caught += failed is not None
        print(f"{'caught by ' + failed if failed else 'SURVIVED'}: {mutants[number]['name']}", flush=True)
    print(f"{len(names)} of {len(known)} mutants tried, {len(viable)} viable, {caught} caught")


main()
