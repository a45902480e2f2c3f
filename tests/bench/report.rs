//! The result tables, printed and written to BENCHMARKS.md or RELIABILITY.md, each between two marks.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::cpu::Cost;
use super::engines::Row;
use super::lectures::Found;
use super::overload::Trial;
use super::questions::Score;

/// Marks around the tables of one command.
const SERVICE: [&str; 2] = ["<!-- service: made by `make bench` -->", "<!-- service: end -->"];
const LONG: [&str; 2] = ["<!-- long: made by `make bench-long` -->", "<!-- long: end -->"];
const LECTURES: [&str; 2] = ["<!-- lectures: made by `make bench-lectures` -->", "<!-- lectures: end -->"];
const ENGINES: [&str; 2] = ["<!-- engines: made by `scripts/bench.sh engines` -->", "<!-- engines: end -->"];
const OVERLOAD: [&str; 2] =
    ["<!-- overload: made by `scripts/bench.sh overload` -->", "<!-- overload: end -->"];
const SOAK: [&str; 2] = ["<!-- soak: made by `scripts/bench.sh soak` -->", "<!-- soak: end -->"];
const ANSWERS: [&str; 2] = ["<!-- answers: made by `scripts/bench.sh answers` -->", "<!-- answers: end -->"];
const EXPORTS: [&str; 2] = ["<!-- exports: made by `scripts/bench.sh exports` -->", "<!-- exports: end -->"];
const SCREEN_TEXT: [&str; 2] =
    ["<!-- screen-text: made by `scripts/bench.sh screen-text` -->", "<!-- screen-text: end -->"];
const QUESTIONS: [&str; 2] =
    ["<!-- questions: made by `scripts/bench.sh questions` -->", "<!-- questions: end -->"];
const BENCHMARKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../BENCHMARKS.md");
const RELIABILITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../RELIABILITY.md");

/// Rows of the tables so far.
#[derive(Default)]
pub(crate) struct Report {
    ingest: String,
    search: String,
    answers: String,
    segment: String,
    exports: String,
    screen_text: String,
    reading: String,
    board: String,
    screen_note: String,
    meter: String,
    long: String,
    lectures: String,
    questions: String,
    question_grid: String,
    question_note: String,
    engines: String,
    overload: String,
    soak: String,
    notes: String,
}

impl Report {
    /// Adds the cost per minute of video, beside the cost of decoding and encoding alone.
    pub(crate) fn ingest(&mut self, footage: &str, what: &str, cost: Cost, floor: Cost) {
        let row = format!(
            "| {footage} | {what} | {:.2} | {:.2} | {:.2} |",
            cost.cpu,
            cost.wall,
            cost.cpu / floor.cpu
        );
        println!("{row}");
        writeln!(self.ingest, "{row}").unwrap();
    }

    /// Adds the milliseconds of one search.
    pub(crate) fn search(&mut self, kind: &str, way: &str, p50: f64, p95: f64, cpu: f64) {
        let row = format!("| {kind} | {way} | {p50:.2} | {p95:.2} | {cpu:.2} |");
        println!("{row}");
        writeln!(self.search, "{row}").unwrap();
    }

    /// Adds the p50, the p95, the p95 as a multiple of the first variant's, and the CPU time of one search, times in
    /// milliseconds.
    pub(crate) fn answer(&mut self, what: &str, [p50, p95, of_least, cpu]: [f64; 4]) {
        let row = format!("| {what} | {p50:.2} | {p95:.2} | {of_least:.2} | {cpu:.2} |");
        println!("{row}");
        writeln!(self.answers, "{row}").unwrap();
    }

    /// Adds the microseconds of a query's background over vectors of `dim` values.
    pub(crate) fn background(&mut self, dim: usize, micros: f64) {
        self.note(&format!(
            "The background behind `z`, over 1,000 spans of {dim} values: {micros:.0} µs a query."
        ));
    }

    pub(crate) fn publish_answers(&self) {
        let (rows, notes) = (&self.answers, &self.notes);
        let table = format!(
            "Measured {}, {}.\n\n\
             | clips | query | search | p50 ms | p95 ms | p95, of the first | server CPU ms |\n\
             |---|---|---|---|---|---|---|\n{rows}{notes}",
            today(),
            machine()
        );
        put(BENCHMARKS, ANSWERS, &table);
    }

    pub(crate) fn publish_exports(&self) {
        let table = format!(
            "Measured {}, {}.\n\n\
             | a minute of film of six ranges, 1280x720 | CPU s | wall s | wall, of ffmpeg alone |\n|---|---|---|---|\n{}",
            today(),
            machine(),
            self.exports
        );
        put(BENCHMARKS, EXPORTS, &table);
    }

    pub(crate) fn publish_screen_text(&self) {
        let table = format!(
            "Measured {}, {}.\n\n\
             | film of slides | font | ground | character error rate, % | words found, % | regions read |\n\
             |---|---|---|---|---|---|\n{}\n\
             | an hour of 100 slides at 1280x720 | CPU s | CPU, % of two cores | wall s | CPU s, of decoding alone | \
             regions read | runs of Tesseract |\n|---|---|---|---|---|---|---|\n{}\n\
             | lines of a score board, 720x720 | found within a second | CPU s an hour | CPU, % of two cores | wall s an \
             hour | regions read | runs of Tesseract |\n|---|---|---|---|---|---|---|\n{}\n{}\n",
            today(),
            machine(),
            self.screen_text,
            self.reading,
            self.board,
            self.screen_note
        );
        put(BENCHMARKS, SCREEN_TEXT, &table);
    }

    /// Adds how much of a film of slides was read.
    pub(crate) fn screen_text(&mut self, row: &str) {
        println!("{row}");
        writeln!(self.screen_text, "{row}").unwrap();
    }

    /// Adds the cost of reading an hour.
    pub(crate) fn reading(&mut self, row: &str) {
        println!("{row}");
        writeln!(self.reading, "{row}").unwrap();
    }

    /// Adds how soon the changes of a score board are found, and what it costs.
    pub(crate) fn board(&mut self, row: &str) {
        println!("{row}");
        writeln!(self.board, "{row}").unwrap();
    }

    /// Says how many slides were found by their words.
    pub(crate) fn screen_note(&mut self, note: &str) {
        println!("{note}");
        note.clone_into(&mut self.screen_note);
    }

    /// Adds the cost of a whole file, beside the cost of decoding it alone.
    pub(crate) fn segment(&mut self, footage: &str, what: &str, cost: Cost, decode: Cost) {
        let row = format!("| {footage} | {what} | {:.2} | {:.2} |", cost.cpu, cost.cpu / decode.cpu);
        println!("{row}");
        writeln!(self.segment, "{row}").unwrap();
    }

    /// Adds the cost of a minute of exported film, beside that of ffmpeg alone.
    pub(crate) fn export(&mut self, what: &str, cost: Cost, floor: Cost) {
        let row = format!("| {what} | {:.2} | {:.2} | {:.2} |", cost.cpu, cost.wall, cost.wall / floor.wall);
        println!("{row}");
        writeln!(self.exports, "{row}").unwrap();
    }

    /// Adds the microseconds of a detector per frame in memory.
    pub(crate) fn meter(&mut self, what: &str, micros: f64) {
        let row = format!("| {what} | {micros:.0} |");
        println!("{row}");
        writeln!(self.meter, "{row}").unwrap();
    }

    /// Adds the share of queries with a correct answer.
    pub(crate) fn lectures(&mut self, what: &str, found: Found) {
        let row = format!("| {} {what} | {} | {} |", found.queries, found.first, found.in_five);
        println!("{row}");
        writeln!(self.lectures, "{row}").unwrap();
    }

    /// Adds the cost of an hour of video, beside the CPU seconds of decoding and encoding alone.
    pub(crate) fn long(&mut self, what: &str, cost: Cost, floor: f64) {
        let row = format!("| {what} | {:.0} | {:.0} | {:.2} |", cost.cpu, cost.wall, cost.cpu / floor);
        println!("{row}");
        writeln!(self.long, "{row}").unwrap();
    }

    pub(crate) fn publish_long(&self) {
        let (rows, notes) = (&self.long, &self.notes);
        let table = format!(
            "Measured {}, {}.\n\n\
             | an hour of video | CPU s | wall s | CPU, of decode alone + encode alone |\n|---|---|---|---|\n{rows}{notes}",
            today(),
            machine()
        );
        put(BENCHMARKS, LONG, &table);
    }

    /// Adds a sentence below the table.
    pub(crate) fn note(&mut self, sentence: &str) {
        println!("{sentence}");
        writeln!(self.notes, "\n{sentence}").unwrap();
    }

    pub(crate) fn publish_lectures(&self) {
        let (rows, notes) = (&self.lectures, &self.notes);
        let table = format!(
            "| queries | right at the first place | among the first five |\n|---|---|---|\n{rows}{notes}"
        );
        put(BENCHMARKS, LECTURES, &table);
    }

    /// Adds weights of what is shown, said and written, judged on the development part and on the part held out.
    pub(crate) fn questions(&mut self, what: &str, weights: [f64; 3], parts: [Score; 2]) {
        let [shown, said, written] = weights;
        let cell = |it: Score| format!("{} / {} of {}, {:.3}", it.first, it.in_five, it.questions, it.mean());
        let [development, held_out] = parts.map(cell);
        let row = format!("| {what} | {shown}, {said}, {written} | {development} | {held_out} |");
        println!("{row}");
        writeln!(self.questions, "{row}").unwrap();
    }

    /// Adds weights that were tried on the development part.
    pub(crate) fn question_grid(&mut self, how: &str, [shown, said, written]: [f64; 3], score: Score) {
        let row = format!(
            "| {how} | {shown}, {said}, {written} | {} | {} | {:.3} |",
            score.first,
            score.in_five,
            score.mean()
        );
        println!("{row}");
        writeln!(self.question_grid, "{row}").unwrap();
    }

    /// Says what was not measured.
    pub(crate) fn question_note(&mut self, note: &str) {
        note.clone_into(&mut self.question_note);
    }

    pub(crate) fn publish_questions(&self) {
        let table = format!(
            "| sources | weights: shown, said, written | development: first / among five, MRR | held out: the same |\n\
             |---|---|---|---|\n{}\n\
             What was tried on the development part:\n\n\
             | search | weights: shown, said, written | first | among five | MRR |\n|---|---|---|---|---|\n{}\n{}\n",
            self.questions, self.question_grid, self.question_note
        );
        put(BENCHMARKS, QUESTIONS, &table);
    }

    /// Adds a vector engine.
    pub(crate) fn engine(&mut self, row: &Row) {
        let (here, outside) = (row.query.cpu * 1000.0, row.query_outside * 1000.0);
        let line = format!(
            "| {} | {:.0} | {:.0} + {:.0} | {:.4} | {:.2} | {:.2} + {:.2} | {:.0} | {:.0} |",
            row.engine,
            row.build.wall,
            row.build.cpu,
            row.build_outside,
            row.recall,
            row.query.wall * 1000.0,
            here,
            outside,
            1000.0 / (here + outside),
            row.bytes_per_vector
        );
        println!("{line}");
        writeln!(self.engines, "{line}").unwrap();
    }

    pub(crate) fn publish_engines(&self) {
        let table = format!(
            "Measured {}, {}.\n\n\
             | engine | build, wall s | build, CPU s (server + engine) | recall@10 | query, p50 ms | query, CPU ms (server + \
             engine) | queries per CPU s | bytes a vector |\n|---|---|---|---|---|---|---|---|\n{}",
            today(),
            machine(),
            self.engines
        );
        put(BENCHMARKS, ENGINES, &table);
    }

    /// Adds a trial of many clients.
    pub(crate) fn overload(&mut self, what: &str, trial: &Trial) {
        let row = format!(
            "| {what} | {} | {:.1} | {:.0} | {:.0} | {} | {:.1} | {} | {:.0} | {:.0} |",
            trial.clients,
            trial.goodput,
            trial.p50,
            trial.p95,
            trial.refused,
            trial.refused_p99,
            trial.uploads,
            trial.memory,
            trial.memory_peak
        );
        println!("{row}");
        writeln!(self.overload, "{row}").unwrap();
    }

    pub(crate) fn publish_overload(&self) {
        let (rows, notes) = (&self.overload, &self.notes);
        let table = format!(
            "Measured {}, {}.\n\n\
             | load | clients | searches a second | p50 ms | p95 ms | refused | p99 of a 429, ms | films ingested | memory at the end, \
             MiB | highest, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n{rows}{notes}",
            today(),
            machine()
        );
        put(RELIABILITY, OVERLOAD, &table);
    }

    /// Adds a count of the soak.
    pub(crate) fn soak(&mut self, what: &str, count: &str) {
        let row = format!("| {what} | {count} |");
        println!("{row}");
        writeln!(self.soak, "{row}").unwrap();
    }

    pub(crate) fn publish_soak(&self) {
        let table = format!("Measured {}, {}.\n\n| | |\n|---|---|\n{}", today(), machine(), self.soak);
        put(RELIABILITY, SOAK, &table);
    }

    pub(crate) fn publish(&self) {
        let table = format!(
            "Measured {}, {}.\n\n\
             | footage | per minute of video | CPU s | wall s | CPU, of decode alone + encode alone |\n\
             |---|---|---|---|---|\n{}\n\
             | query | search | p50 ms | p95 ms | server CPU ms |\n|---|---|---|---|---|\n{}\n\
             | footage | cutting a video | CPU s | CPU, of decode alone |\n|---|---|---|---|\n{}\n\
             | a frame of 256x144 in memory | microseconds |\n|---|---|\n{}",
            today(),
            machine(),
            self.ingest,
            self.search,
            self.segment,
            self.meter
        );
        put(BENCHMARKS, SERVICE, &table);
    }
}

/// Prints a table and writes it between its marks in a file.
fn put(file: &str, [begin, end]: [&str; 2], table: &str) {
    let table = format!("{begin}\n\n{}\n\n{end}", table.trim_end());
    println!("\n{table}");
    let path = Path::new(file);
    let old = fs::read_to_string(path).unwrap_or_default();
    let new = match (old.find(begin), old.find(end)) {
        (Some(from), Some(to)) if from < to => format!("{}{table}{}", &old[..from], &old[to + end.len()..]),
        _ => format!("{old}\n{table}\n"),
    };
    fs::write(path, new).unwrap();
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().unwrap();
    String::from_utf8_lossy(&date.stdout).trim().to_owned()
}

/// Cores, vector instructions and load of this machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vectors = ["avx512f", "avx2"].into_iter().find(|flag| flags.contains(flag)).unwrap_or("no AVX");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default();
    let shared = if load > 1.5 * cores as f64 {
        ", shared with other work (wall times are not to be trusted)"
    } else {
        ""
    };
    format!("{cores} cores, {vectors}, no GPU{shared}")
}
