# Adds up what `cargo test -- --show-output` printed, over all test binaries, to one last line:
# "N passed, N failed, N skipped". Before it, each failed test with its panic: the output is long, and the test may be far up.
# Set `status` to cargo's exit status; exits with 1 if anything failed.

# A test's own output: a block of its own under "successes:" or "failures:".
/^---- .* stdout ----$/ {
  block = $0
  left = 0
  if (!succeeded) failures = failures "\nfailed: " $2 "\n"
  next
}
/^(successes|failures):$/ { block = ""; left = 0; succeeded = ($1 == "successes:"); next }

# Once a test, and only if it ended well.
/^skipped: / && block != "" && succeeded && !(block in counted) { counted[block] = 1; said_skipped++ }

# A panic's message may have several lines. Its backtrace hides it.
block != "" && !succeeded && /panicked at |^Error: / { left = 20 }
/^(stack backtrace:|note: run with)/ { left = 0 }
left > 0 && NF > 0 {
  failures = failures "  " $0 "\n"
  left--
}

/^ +(Running|Doc-tests) / { end_of_binary(); open = 1 }

/^test result: / {
  for (i = 2; i <= NF; i++) {
    if ($i == "passed;") passed += $(i - 1)
    if ($i == "failed;") failed += $(i - 1)
    if ($i == "ignored;") ignored += $(i - 1)
  }
  open = 0
  block = ""
  left = 0
  split("", counted)
}

# A binary that said no result has crashed.
function end_of_binary() {
  if (open) failed++
  open = 0
}

END {
  end_of_binary()
  # It did not even build, or something failed that has no line of its own.
  if (status != 0 && failed == 0) failed = 1
  if (failures != "") print failures
  printf "%d passed, %d failed, %d skipped\n", passed - said_skipped, failed, said_skipped + ignored
  exit failed > 0
}
