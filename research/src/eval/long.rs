//! `reprise eval long`: searches with one decisive sentence at any position of a long text, and with clip-by-clip
//! descriptions of full videos.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use reprise_encoders::text::Overflow;
use reprise_encoders::{DEFAULT_MODEL, Embedder, Input, ModelName};
use reprise_index::{Aggregation, QueryVectors, UnitVector, late_interaction};
use serde_json::{Map, Value, json};

use super::benchmark::Benchmark;
use super::methods::unit;
use crate::compute::ComputeArgs;
use crate::encode;
use crate::synth::wording::NEUTRAL;
use crate::terminal::{bar, say};
use reprise_encoders::text::MAX_WINDOWS;

/// Positions of the decisive sentence in a long text.
const PLACES: usize = 10;
/// A sentence is decisive if, alone, it ranks a relevant clip among the first `TELLS`.
const TELLS: usize = 5;
/// Clips of one full video.
const CLIPS_PER_VIDEO: usize = 20;

/// Arguments of `reprise eval long`.
#[derive(Debug, Args)]
pub struct LongArgs {
    /// A folder that `reprise synth` wrote
    #[arg(long)]
    data: PathBuf,
    /// The model: a built-in one, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Number of decisive sentences
    #[arg(long, default_value_t = 50)]
    queries: usize,
    /// Tokens of the text around the sentence
    #[arg(long, default_value_t = 1500)]
    tokens: usize,
    /// Seed of the drawn sentences and clips
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a long text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    /// One window per sentence; the aggregation combines the windows' scores.
    Sentences(Aggregation),
    /// Windows filled up to the model's limit; the best one counts.
    Filled,
    /// The first window alone.
    Truncated,
}

const READINGS: [(Reading, &str); 5] = [
    (Reading::Sentences(Aggregation::Coverage), "coverage"),
    (Reading::Sentences(Aggregation::Max), "max"),
    (Reading::Sentences(Aggregation::Mean), "mean"),
    (Reading::Filled, "filled windows, max"),
    (Reading::Truncated, "truncate"),
];

/// Prints both tables, or JSON.
pub(super) fn run(args: &LongArgs) -> anyhow::Result<()> {
    let benchmark = Benchmark::read(&args.data)?;
    let mut model = args.compute.load(&args.model).with_context(|| args.model.to_string())?;
    let progress = bar(args.json, benchmark.clips.len(), "clips")?;
    let vectors =
        encode::clips(std::slice::from_mut(&mut model), &benchmark.clips, &|clips| progress.inc(clips))?;
    progress.finish_and_clear();
    let raw = vectors.into_iter().next().context("no vectors")?;
    let gallery: Vec<UnitVector> = raw.iter().map(|raw| unit(raw)).collect::<Result<_, _>>()?;
    let mut reader = Reader { model, known: HashMap::new(), random: ChaCha8Rng::seed_from_u64(args.seed) };
    let worse = telling_sentences(&mut reader, &benchmark, &gallery, args)?;
    let videos = full_videos(&mut reader, &benchmark, &raw, &gallery)?;
    if args.json {
        return Ok(say(json!({"clips": gallery.len(), "ranks_lost": worse, "full_videos": videos}))?);
    }
    say(format!(
        "{} clips; how many ranks a telling sentence loses at each of {PLACES} places (median)",
        gallery.len()
    ))?;
    for (_, name) in READINGS {
        say(format!("{name:<22} {}", worse[name]))?;
    }
    say("full videos by a text that describes each clip in turn")?;
    for (name, figures) in &videos {
        say(format!("{name:<22} {figures}"))?;
    }
    Ok(())
}

/// A model with a cache of encoded texts.
struct Reader {
    model: Embedder,
    known: HashMap<Vec<u32>, UnitVector>,
    random: ChaCha8Rng,
}

impl Reader {
    fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count.max(1) as u64) as usize
    }

    fn query(&mut self, sentences: &[&str], reading: Reading) -> anyhow::Result<QueryVectors> {
        let (texts, overflow) = match reading {
            Reading::Filled => (self.filled(sentences)?, Overflow::Truncate),
            Reading::Truncated => (vec![sentences.join(" ")], Overflow::Truncate),
            Reading::Sentences(_) => (vec![sentences.join(" ")], Overflow::Window),
        };
        let mut windows = Vec::new();
        for text in texts {
            windows.extend(self.windows(&text, overflow)?);
        }
        let aggregation = match reading {
            Reading::Sentences(aggregation) => aggregation,
            _ => Aggregation::Max,
        };
        QueryVectors::new(windows, aggregation).context("a text without windows")
    }

    fn windows(&mut self, text: &str, overflow: Overflow) -> anyhow::Result<Vec<UnitVector>> {
        let tokenizer = self.model.tokenizer.clone().context("the model takes no text")?;
        let windows = tokenizer.windows(text, overflow, MAX_WINDOWS)?.windows;
        let mut vectors = Vec::with_capacity(windows.len());
        for window in windows {
            if !self.known.contains_key(&window.tokens.ids) {
                let raw = encode::inputs(&mut self.model, &[Input::Text(window.tokens.clone())])?;
                self.known.insert(window.tokens.ids.clone(), unit(raw.first().context("no vector")?)?);
            }
            vectors.push(self.known[&window.tokens.ids].clone());
        }
        Ok(vectors)
    }

    /// Sentences merged up to the model's limit.
    fn filled(&self, sentences: &[&str]) -> anyhow::Result<Vec<String>> {
        let tokenizer = self.model.tokenizer.clone().context("the model takes no text")?;
        let mut texts: Vec<String> = Vec::new();
        for sentence in sentences {
            let longer = texts.last().map(|last| format!("{last} {sentence}"));
            match longer {
                Some(longer) if tokenizer.ids(&longer)?.len() <= tokenizer.max_tokens() => {
                    texts.pop();
                    texts.push(longer);
                }
                _ => texts.push((*sentence).to_owned()),
            }
        }
        Ok(texts)
    }
}

/// Median loss of ranks against the sentence alone, for each reading and position.
fn telling_sentences(
    reader: &mut Reader,
    benchmark: &Benchmark,
    gallery: &[UnitVector],
    args: &LongArgs,
) -> anyhow::Result<Map<String, Value>> {
    let mut lost: HashMap<Reading, Vec<Vec<i64>>> = HashMap::new();
    let (mut queries, mut at) = (0, reader.below(benchmark.texts.len()));
    for _ in 0..benchmark.texts.len() {
        let query = &benchmark.texts[at % benchmark.texts.len()];
        at += 7;
        let sentence = format!("{}.", query.text.trim_end_matches('.'));
        let alone = reader.query(&[&sentence], Reading::Truncated)?;
        let rank_alone = rank(&alone, gallery, &query.valid);
        if rank_alone > TELLS || queries == args.queries {
            continue;
        }
        queries += 1;
        let filler = filler(reader, args.tokens)?;
        for (reading, _) in READINGS {
            for place in 0..PLACES {
                let mut sentences = filler.clone();
                sentences.insert(place * filler.len() / (PLACES - 1), &sentence);
                let found = reader.query(&sentences, reading)?;
                let ranks = lost.entry(reading).or_insert_with(|| vec![Vec::new(); PLACES]);
                ranks[place].push(rank(&found, gallery, &query.valid) as i64 - rank_alone as i64);
            }
        }
    }
    ensure!(
        queries > 0,
        "no description finds its clip among the first {TELLS}: there is nothing to compare"
    );
    let medians = |places: &[Vec<i64>]| places.iter().map(|ranks| median(ranks)).collect::<Vec<i64>>();
    Ok(READINGS.iter().map(|(reading, name)| ((*name).to_owned(), json!(medians(&lost[reading])))).collect())
}

fn filler(reader: &mut Reader, tokens: usize) -> anyhow::Result<Vec<&'static str>> {
    let tokenizer = reader.model.tokenizer.clone().context("the model takes no text")?;
    let (mut sentences, mut count) = (Vec::new(), 0);
    while count < tokens {
        let sentence = NEUTRAL[reader.below(NEUTRAL.len())];
        count += tokenizer.ids(sentence)?.len() - tokenizer.ids("")?.len();
        sentences.push(sentence);
    }
    Ok(sentences)
}

/// The rank of the first relevant clip, from 1.
fn rank(query: &QueryVectors, gallery: &[UnitVector], valid: &std::collections::HashSet<usize>) -> usize {
    let scores: Vec<f32> = gallery.iter().map(|clip| query.score(clip)).collect();
    let best = valid.iter().map(|clip| scores[*clip]).fold(f32::MIN, f32::max);
    1 + scores.iter().filter(|score| **score > best).count()
}

fn median(ranks: &[i64]) -> i64 {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Recall of full videos: by one vector per text and video, and by late interaction.
fn full_videos(
    reader: &mut Reader,
    benchmark: &Benchmark,
    raw: &[Vec<f32>],
    gallery: &[UnitVector],
) -> anyhow::Result<Map<String, Value>> {
    let mut order: Vec<usize> = (0..gallery.len()).collect();
    for at in (1..order.len()).rev() {
        let other = reader.below(at + 1);
        order.swap(at, other);
    }
    let videos: Vec<Vec<usize>> = order.chunks_exact(CLIPS_PER_VIDEO).map(<[usize]>::to_vec).collect();
    ensure!(videos.len() > 1, "full videos are made of {CLIPS_PER_VIDEO} clips each: there are too few");
    let pooled =
        videos.iter().map(|clips| pooled(clips, raw)).collect::<anyhow::Result<Vec<UnitVector>>>()?;
    let mut ranks: [Vec<usize>; 3] = Default::default();
    for (number, clips) in videos.iter().enumerate() {
        let text = described(reader, benchmark, clips)?;
        let sentences: Vec<&str> = text.iter().map(String::as_str).collect();
        let query = reader.query(&sentences, Reading::Sentences(Aggregation::Coverage))?;
        let mean = query.mean().context("windows that cancel out")?;
        let first = reader.query(&sentences, Reading::Truncated)?;
        let scores = [
            pooled.iter().map(|video| first.score(video)).collect(),
            pooled.iter().map(|video| mean.dot(video)).collect(),
            late(&query, &videos, gallery),
        ];
        for (ranks, scores) in ranks.iter_mut().zip(scores) {
            let scores: Vec<f32> = scores;
            ranks.push(1 + scores.iter().filter(|score| **score > scores[number]).count());
        }
    }
    let names = ["pooled, truncate", "pooled, mean of windows", "late interaction"];
    let recall = |ranks: &[usize], at: usize| {
        100.0 * ranks.iter().filter(|rank| **rank <= at).count() as f64 / ranks.len() as f64
    };
    let figures =
        |ranks: &Vec<usize>| json!({"R@1": recall(ranks, 1), "R@5": recall(ranks, 5), "videos": ranks.len()});
    Ok(names.iter().zip(&ranks).map(|(name, ranks)| ((*name).to_owned(), figures(ranks))).collect())
}

fn pooled(clips: &[usize], raw: &[Vec<f32>]) -> anyhow::Result<UnitVector> {
    let mut sum = vec![0.0; raw[clips[0]].len()];
    for clip in clips {
        sum.iter_mut().zip(&raw[*clip]).for_each(|(sum, value)| *sum += value);
    }
    unit(&sum)
}

/// One fitting description for each clip that has any.
fn described(reader: &mut Reader, benchmark: &Benchmark, clips: &[usize]) -> anyhow::Result<Vec<String>> {
    let mut sentences = Vec::new();
    for clip in clips {
        let fitting: Vec<&str> = benchmark
            .texts
            .iter()
            .filter(|text| text.valid.contains(clip))
            .map(|text| text.text.trim_end_matches('.'))
            .collect();
        if !fitting.is_empty() {
            sentences.push(format!("{}.", fitting[reader.below(fitting.len())]));
        }
    }
    ensure!(!sentences.is_empty(), "no description fits the clips of a video");
    Ok(sentences)
}

fn late(query: &QueryVectors, videos: &[Vec<usize>], gallery: &[UnitVector]) -> Vec<f32> {
    let best = |clips: &Vec<usize>| -> Vec<f32> {
        let of_window =
            |window: &UnitVector| clips.iter().map(|clip| window.dot(&gallery[*clip])).fold(-1.0, f32::max);
        query.vectors().iter().map(of_window).collect()
    };
    let best: Vec<Vec<f32>> = videos.iter().map(best).collect();
    late_interaction(&best.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
