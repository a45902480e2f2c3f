"""Stand-ins for NVIDIA's CUDA libraries, for a binary that is to start without them (see build-cuda.sh).

    cuda-stand-ins.py DECLARATIONS FOLDER

DECLARATIONS is the `src` folder of the crate cudarc, which declares the libraries' functions. Static libraries that
define all of them are written to FOLDER. Each function looks for the real one when it is first called, opening its
library, and from then on is a jump to it. Where there is no such library or function, it returns the error that the
library has for that, so that whoever called it goes on without a GPU.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Library:
    module: str
    """Where cudarc declares its functions."""
    name: str
    """As the linker is asked for it."""
    file: str
    """As it is opened."""
    before: str
    """What has to be opened before, because it is looked for by name; or nothing."""
    error: int
    """What its functions return where it is missing."""


LIBRARIES = [
    Library("driver", "cuda", "libcuda.so.1", "", 100),  # CUDA_ERROR_NO_DEVICE
    Library("cublas", "cublas", "libcublas.so.13", "libcublasLt.so.13", 1),  # CUBLAS_STATUS_NOT_INITIALIZED
    Library("cublaslt", "cublasLt", "libcublasLt.so.13", "", 1),
    Library("curand", "curand", "libcurand.so.10", "", 203),  # CURAND_STATUS_INITIALIZATION_FAILED
    Library("nvrtc", "nvrtc", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0", 11),  # NVRTC_ERROR_INTERNAL_ERROR
]

DECLARATION = re.compile(r'extern "C" \{\s*fn (\w+)\([^;]*?\)(?:\s*->\s*([^;]+?))?;', re.DOTALL)


def functions(declarations: Path) -> list[tuple[str, int, str]]:
    """Name, place of the library, and what returns where it is missing, of every function."""
    found = []
    for place, library in enumerate(LIBRARIES):
        text = (declarations / library.module / "sys/mod.rs").read_text()
        for name, result in sorted(set(DECLARATION.findall(text))):
            if name in ("cuGetErrorName", "cuGetErrorString"):
                kind = "describe_missing"
            elif "c_char" in result:
                kind = "missing_text"
            elif result in ("", "usize"):
                kind = "missing_size"
            else:
                kind = f"missing_{library.name}"
            found.append((name, place, kind))
    assert found, "no function is declared: the declarations look otherwise"
    return found


def resolver(found: list[tuple[str, int, str]]) -> str:
    """C that finds the real functions."""
    errors = "".join(f"static int missing_{it.name}(void) {{ return {it.error}; }}\n" for it in LIBRARIES)
    libraries = ",\n  ".join(
        f'{{"{it.file}", "{it.before}", {int(it.name != "cuda")}, PTHREAD_ONCE_INIT, 0}}' for it in LIBRARIES
    )
    entries = ",\n  ".join(f'{{"{name}", {place}, (void *){kind}}}' for name, place, kind in found)
    opens = "\n".join(f"static void open_{at}(void) {{ open_library(&libraries[{at}]); }}" for at in range(len(LIBRARIES)))
    openers = ", ".join(f"open_{at}" for at in range(len(LIBRARIES)))
    return f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

{errors}
static const char *missing_text(void) {{ return "a CUDA library is missing"; }}
static unsigned long missing_size(void) {{ return 0; }}
static int describe_missing(int error, const char **text) {{
  (void)error;
  *text = "there is no NVIDIA driver (libcuda.so.1)";
  return 0;
}}

/* One that lacks the driver says so by its error; one that has it and lacks a library is told which. */
struct library {{ const char *file, *before; int tell; pthread_once_t once; void *handle; }};
static struct library libraries[] = {{
  {libraries}
}};
static const struct {{ const char *name; int library; void *missing; }} entries[] = {{
  {entries}
}};

static void *open_in(const char *folders, const char *file) {{
  char path[4096];
  while (*folders) {{
    int length = (int)strcspn(folders, ":");
    void *handle = 0;
    if (length && snprintf(path, sizeof path, "%.*s/%s", length, folders, file) < (int)sizeof path)
      handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    folders += length;
    folders += *folders == ':';
  }}
  return 0;
}}

static void *open_file(const char *file) {{
  const char *named = getenv("REPRISE_CUDA_LIBRARIES");
  void *handle = named ? open_in(named, file) : 0;
  if (!handle) handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  return handle ? handle : open_in("/usr/local/cuda/lib64", file);
}}

static void open_library(struct library *it) {{
  if (*it->before) open_file(it->before);
  it->handle = open_file(it->file);
  if (!it->handle && it->tell)
    fprintf(stderr, "%s is not found; REPRISE_CUDA_LIBRARIES may name its folder\\n", it->file);
}}
{opens}
static void (*const openers[])(void) = {{ {openers} }};

extern void *reprise_cuda_slots[];
void *reprise_cuda_find(unsigned long at) __attribute__((visibility("hidden")));
void *reprise_cuda_find(unsigned long at) {{
  struct library *library = &libraries[entries[at].library];
  pthread_once(&library->once, openers[entries[at].library]);
  void *real = library->handle ? dlsym(library->handle, entries[at].name) : 0;
  if (!real) real = entries[at].missing;
  __atomic_store_n(&reprise_cuda_slots[at], real, __ATOMIC_RELEASE);
  return real;
}}
"""


# Whatever may hold an argument.
WORDS = ["rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10"]
FRAME = 8 * len(WORDS) + 16 * 8


def jumps(found: list[tuple[str, int, str]]) -> str:
    """Assembly: one jump a function, at first to code that finds the real function and keeps all arguments as they are."""
    lines = [".text"]
    for at, (name, _, _) in enumerate(found):
        lines += [
            *(f".globl {name}", f".type {name}, @function", ".p2align 4", f"{name}:", "endbr64"),
            f"jmp *reprise_cuda_slots+{8 * at}(%rip)",
            *(f".Lfirst{at}:", "endbr64", f"pushq ${at}", "jmp .Lfind", f".size {name}, .-{name}"),
        ]
    words = [(f"%{word}", 8 * at) for at, word in enumerate(WORDS)]
    floats = [(f"%xmm{at}", 8 * len(WORDS) + 16 * at) for at in range(8)]
    # On the stack: the arguments, and over them the number that was pushed, which the address takes the place of.
    lines += [".Lfind:", f"subq ${FRAME}, %rsp"]
    lines += [f"movq {register}, {offset}(%rsp)" for register, offset in words]
    lines += [f"movups {register}, {offset}(%rsp)" for register, offset in floats]
    lines += [f"movq {FRAME}(%rsp), %rdi", "call reprise_cuda_find", f"movq %rax, {FRAME}(%rsp)"]
    lines += [f"movq {offset}(%rsp), {register}" for register, offset in words]
    lines += [f"movups {offset}(%rsp), {register}" for register, offset in floats]
    lines += [f"addq ${FRAME}, %rsp", "popq %r11", "jmp *%r11"]
    lines += ['.section .data.rel.local, "aw", @progbits', ".p2align 3"]
    lines += [".globl reprise_cuda_slots", ".hidden reprise_cuda_slots", "reprise_cuda_slots:"]
    lines += [f".quad .Lfirst{at}" for at in range(len(found))]
    lines += ['.section .note.GNU-stack, "", @progbits']
    return "\n".join(lines) + "\n"


def main() -> None:
    declarations, folder = Path(sys.argv[1]), Path(sys.argv[2])
    found = functions(declarations)
    parts = {"cuda-find.c": resolver(found), "cuda-jumps.S": jumps(found)}
    objects = []
    for name, text in parts.items():
        source = folder / name
        source.write_text(text)
        objects.append(source.with_suffix(".o"))
        subprocess.run(["cc", "-O1", "-fPIC", "-c", "-o", objects[-1], source], check=True)
    # All are in the first; the linker finds the others empty.
    for library in LIBRARIES:
        archive = folder / f"lib{library.name}.a"
        subprocess.run(["ar", "rcs", archive, *(objects if library is LIBRARIES[0] else [])], check=True)


main()
