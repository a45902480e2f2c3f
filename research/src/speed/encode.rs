//! `reprise bench encode`: the encoding speed of a model on this machine.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use reprise_encoders::large_product::{LargeProduct, SIDE};
use reprise_encoders::{
    DEFAULT_MODEL, DeviceChoice, Embedder, Encoder, Input, ModelName, OneCore, Precision,
};
use serde::Serialize;

use super::meter::{Cost, Meter};
use super::workload::{self, Batch, What};
use crate::compute::ComputeArgs;
use crate::terminal::say;

/// Arguments of `reprise bench encode`.
#[derive(Debug, Args)]
pub(super) struct EncodeArgs {
    /// builtin:sports, builtin:tiny, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Pictures per batch, e.g. 1,8,32. With some of --batch, --clips and --tokens, only those are measured; with none,
    /// 1,8,32 pictures, one clip, and texts of 16, 77 and 248 tokens, within the model's limits
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = count)]
    batch: Vec<usize>,
    /// Clips per batch, each of the frames that the model samples from 4 s of video
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = count)]
    clips: Vec<usize>,
    /// Lengths of texts in tokens, one text at a time
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = count)]
    tokens: Vec<usize>,
    /// Number of runs, each half a second or one batch long; the median counts
    #[arg(long, value_name = "N", default_value = "5", value_parser = count)]
    runs: usize,
    /// On a CPU: also encode each batch on one thread, in turns with all threads, and print how many times as fast all
    /// threads are
    #[arg(long)]
    speedup: bool,
    /// Print the raw vectors too, to compare them with other programs': the squares of frame N have the highest bytes
    /// of SplitMix64's outputs from seed 0, 16 pixels wide, in the order frame, row, column, channel; a text repeats
    /// the word "a"
    #[arg(long, requires = "json")]
    vectors: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=4096) => Ok(count),
        _ => Err("give numbers from 1 to 4096".to_owned()),
    }
}

/// The measured figures.
#[derive(Debug, Serialize)]
struct Report {
    space: String,
    family: String,
    /// The model's device: `cpu` or `cuda:N`.
    device: String,
    /// Threads of one encoder on the CPU.
    threads: usize,
    /// The precision in use, which may differ from the requested one.
    precision: Precision,
    peak: Peak,
    measures: Vec<Measure>,
}

/// One large matrix product in the same precision, with the same kernels and threads.
#[derive(Debug, Clone, Copy, Serialize)]
struct Peak {
    /// Rows and columns of both matrices.
    side: usize,
    /// The library or kernels of the product.
    kernels: &'static str,
    gflop_per_second: f64,
    gflop_per_cpu_second: Option<f64>,
}

/// The speed of one batch.
#[derive(Debug, Serialize)]
struct Measure {
    /// `pictures`, `clips` or `texts`.
    what: What,
    /// Inputs per batch.
    batch: usize,
    /// Frames of a clip, or tokens of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
    per_second: f64,
    /// `None` if the system reports no CPU time.
    per_cpu_second: Option<f64>,
    /// GFLOP of one input, from the model's shape; `None` if its family does not state it.
    gflop: Option<f64>,
    gflop_per_second: Option<f64>,
    gflop_per_cpu_second: Option<f64>,
    /// Speed relative to the large product (1 = equal): in CPU time on a CPU, otherwise in wall time.
    share_of_peak: Option<f64>,
    /// Seconds that a query waits for such a batch at most: the longest stretch between two of its pauses.
    query_wait: f64,
    /// How many times as fast all threads are as one, in wall time; with `--speedup` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<Vec<Vec<f32>>>,
}

/// Runs the benchmark and prints the figures. Blocks.
pub(super) fn run(args: &EncodeArgs) -> anyhow::Result<()> {
    let report = measure(args)?;
    match args.json {
        true => say(serde_json::to_string(&report)?)?,
        false => say(report)?,
    }
    Ok(())
}

fn measure(args: &EncodeArgs) -> anyhow::Result<Report> {
    let mut loaded = args.compute.load(&args.model)?;
    let batches = batches(&loaded, args)?;
    let device = loaded.devices.first().cloned().context("the model runs nowhere")?;
    if args.speedup && device != "cpu" {
        bail!("--speedup compares threads of the CPU, but the model runs on {device}: add --device cpu");
    }
    let peak = peak(&device, loaded.space.precision, args.runs)?;
    let encoder = loaded.encoders.first_mut().context("the model has no encoder")?;
    let measures = batches.into_iter().map(|batch| measured(encoder.as_mut(), batch, &device, &peak, args));
    Ok(Report {
        measures: measures.collect::<anyhow::Result<_>>()?,
        space: loaded.space.name,
        family: loaded.space.family,
        device,
        threads: reprise_encoders::threads(),
        precision: loaded.space.precision,
        peak,
    })
}

/// The requested batches, or the default ones that the model accepts.
fn batches(loaded: &Embedder, args: &EncodeArgs) -> anyhow::Result<Vec<Batch>> {
    if args.batch.is_empty() && args.clips.is_empty() && args.tokens.is_empty() {
        return workload::usual(loaded);
    }
    let pictures = args.batch.iter().map(|batch| workload::pictures(&loaded.space, *batch));
    let clips = args.clips.iter().map(|batch| workload::clips(&loaded.space, *batch));
    let texts = args.tokens.iter().map(|tokens| workload::text(loaded, *tokens));
    pictures.chain(clips).chain(texts).collect()
}

fn peak(device: &str, precision: Precision, runs: usize) -> anyhow::Result<Peak> {
    let choice = device.parse::<DeviceChoice>().map_err(anyhow::Error::msg)?;
    let product = LargeProduct::new(choice, precision)?;
    let cost = Meter::median(runs, || Ok(product.run()?))?;
    let gflop = product.operations() / 1e9;
    Ok(Peak {
        side: SIDE,
        kernels: product.kernels(),
        gflop_per_second: gflop / cost.wall,
        gflop_per_cpu_second: cost.cpu.map(|cpu| gflop / cpu),
    })
}

fn measured(
    encoder: &mut dyn Encoder,
    batch: Batch,
    device: &str,
    peak: &Peak,
    args: &EncodeArgs,
) -> anyhow::Result<Measure> {
    let Batch { what, length, inputs } = batch;
    let mut vectors = Vec::new();
    let stretches = Stretches::default();
    let cost = Meter::median(args.runs, || {
        stretches.begin();
        vectors = encoder.encode_pausing(&inputs, &|| stretches.end())?;
        stretches.end();
        Ok(())
    })?;
    let speedup = args.speedup.then(|| speedup(encoder, &inputs, args.runs)).transpose()?;
    let Cost { wall, cpu } = cost.per(inputs.len());
    let gflop = inputs.first().and_then(|input: &Input| encoder.operations(input)).map(|it| it / 1e9);
    let gflop_per_second = gflop.map(|gflop| gflop / wall);
    let gflop_per_cpu_second = gflop.zip(cpu).map(|(gflop, cpu)| gflop / cpu);
    let share = match gflop_per_cpu_second.zip(peak.gflop_per_cpu_second) {
        Some((ours, most)) if device == "cpu" => Some(ours / most),
        _ => gflop_per_second.map(|ours| ours / peak.gflop_per_second),
    };
    Ok(Measure {
        what,
        batch: inputs.len(),
        length,
        per_second: 1.0 / wall,
        per_cpu_second: cpu.map(|cpu| 1.0 / cpu),
        gflop,
        gflop_per_second,
        gflop_per_cpu_second,
        share_of_peak: share,
        query_wait: stretches.longest.get().as_secs_f64(),
        speedup,
        vectors: args.vectors.then_some(vectors),
    })
}

/// How many times as fast all threads encode as one.
fn speedup(encoder: &mut dyn Encoder, inputs: &[Input], runs: usize) -> anyhow::Result<f64> {
    let encoder = RefCell::new(encoder);
    let one = OneCore::new()?;
    let all = || encoder.borrow_mut().encode(inputs);
    let alone = || {
        let encoder = &mut **encoder.borrow_mut();
        one.run(|| encoder.encode(inputs))
    };
    Meter::speedup(runs, || Ok(_ = all()?), || Ok(_ = alone()?))
}

/// The stretches between the pauses of batches, in which no query is encoded.
#[derive(Default)]
struct Stretches {
    began: Cell<Option<Instant>>,
    longest: Cell<Duration>,
}

impl Stretches {
    fn begin(&self) {
        self.began.set(Some(Instant::now()));
    }

    /// Ends a stretch and begins the next one.
    fn end(&self) {
        let length = self.began.get().map_or(Duration::ZERO, |began| began.elapsed());
        self.longest.set(self.longest.get().max(length));
        self.begin();
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { space, family, device, threads, peak, .. } = self;
        let precision = self.precision.name();
        writeln!(f, "{space} ({family}) in {precision} on {device}, threads: {threads}")?;
        write!(f, "large product ({} kernels, side {})", peak.kernels, peak.side)?;
        write!(f, ": {:.1} GFLOP/s", peak.gflop_per_second)?;
        if let Some(gflop) = peak.gflop_per_cpu_second {
            write!(f, ", {gflop:.1} GFLOP per CPU-second")?;
        }
        self.measures.iter().try_for_each(|measure| write!(f, "\n{measure}"))
    }
}

impl Display for Measure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unit = if self.what == What::Clips { "frames" } else { "tokens" };
        let length = self.length.map(|length| format!(" of {length} {unit}")).unwrap_or_default();
        write!(f, "{}{length}, {} at a time: {:.1} per second", self.what, self.batch, self.per_second)?;
        if let Some(rate) = self.per_cpu_second {
            write!(f, ", {rate:.1} per CPU-second")?;
        }
        if let Some(gflop) = self.gflop_per_second {
            write!(f, ", {gflop:.1} GFLOP/s")?;
        }
        if let Some(share) = self.share_of_peak {
            write!(f, ", {:.0} % of the large product", share * 100.0)?;
        }
        write!(f, ", a query waits up to {:.3} s", self.query_wait)?;
        match self.speedup {
            Some(speedup) => write!(f, ", {speedup:.2} times as fast as one thread"),
            None => Ok(()),
        }
    }
}
