# Every target installs what it is missing first (scripts/setup.sh; quick when nothing is missing).

# Programs that setup.sh downloads where no package manager may be used.
export PATH := $(PATH):$(CURDIR)/.tools

.DEFAULT_GOAL := help
.PHONY: help setup demo build test test-full check bench bench-long bench-lectures bench-encoders bench-decoders bench-index

help:
	@echo 'make setup      install what is missing: C compiler, ffmpeg, Tesseract; for the tests PostgreSQL, Chromium, promtool, Node.js'
	@echo 'make demo       build, render or ingest a few videos, and serve the page'
	@echo 'make build      the binary for real work: target/release/reprise'
	@echo 'make test       all tests; the last line is "N passed, N failed, N skipped"'
	@echo 'make test-full  the same with the long ones: 20 crashes, a two-hour video'
	@echo 'make check      formatting, lints, documentation, licences, unused dependencies'
	@echo 'make bench      measure, and write the tables to BENCHMARKS.md'
	@echo 'make bench-long  an hour of 720p through a CLIP of real size'
	@echo 'make bench-lectures  what is found in the lectures of REPRISE_TEST_DATA; REPRISE_TEXT_MODEL adds meaning'
	@echo 'make bench-encoders  models of real shapes on the CPU beside PyTorch, ONNX Runtime and OpenVINO'
	@echo 'make bench-decoders  a model of two billion weights that writes, beside PyTorch on the CPU'
	@echo 'make bench-index  the index beside hnswlib, faiss, usearch, SymphonyQG and SVS; a gallery of 40,804; a million vectors'

setup:
	@scripts/setup.sh all

demo:
	@scripts/setup.sh demo
	@scripts/build.sh demo
	@"$$(scripts/target-dir.sh)/demo/reprise" demo

build:
	@scripts/setup.sh demo
	@scripts/build.sh release

test:
	@scripts/test.sh

test-full:
	@REPRISE_TEST_FULL=1 scripts/test.sh

check:
	@scripts/check.sh

bench:
	@scripts/bench.sh

bench-long:
	@scripts/bench.sh long

bench-lectures:
	@scripts/bench.sh lectures

bench-encoders:
	@scripts/bench-encoders.sh

bench-decoders:
	@scripts/bench-decoders.sh

bench-index:
	@scripts/bench-index.sh
