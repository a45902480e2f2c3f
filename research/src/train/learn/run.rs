//! The training loop: parallel shards of a batch, one optimiser, checkpoints.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::Tensor;

use super::curve::Curve;
use super::optimizer::{clip, learning_rate};
use super::store::{State, Store};
use super::{Random, TrainError};

/// Settings of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of optimiser steps.
    pub steps: usize,
    /// Examples per step, over all shards.
    pub batch: usize,
    /// Peak of the learning rate.
    pub learning_rate: f64,
    /// Steps of warm-up.
    pub warmup: usize,
    /// AdamW's weight decay for matrices; vectors have none.
    pub weight_decay: f32,
    /// Largest norm of the gradient.
    pub clip: f32,
    /// Seed of all random draws.
    pub seed: u64,
    /// Parallel parts of a batch, one thread each on a CPU. A contrastive loss contrasts each shard separately,
    /// so another number changes the result.
    pub shards: usize,
    /// Steps from one checkpoint to the next.
    pub checkpoint_every: usize,
}

/// Progress of a training run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Steps taken.
    pub step: usize,
    /// Total number of steps.
    pub steps: usize,
    /// Running mean of the loss.
    pub loss: f32,
    /// Running means of the parts of the loss and further figures of the stage, by name.
    pub parts: Vec<(&'static str, f32)>,
    /// Estimated time left.
    pub left: Duration,
}

/// Input of one shard in one step.
pub(super) struct Draw {
    pub(super) random: Random,
    /// Examples in this shard.
    pub(super) examples: usize,
}

/// One shard's loss.
pub(super) struct Loss {
    /// Scalar with a gradient.
    pub(super) total: Tensor,
    pub(super) parts: Vec<(&'static str, f32)>,
}

/// A model with a loss.
pub(super) trait Task: Sync {
    fn loss(&self, draw: Draw) -> Result<Loss, TrainError>;
}

/// Steps between two reports of progress and points of the curve.
const REPORT_EVERY: usize = 10;

const CHECKPOINT: &str = "checkpoint.safetensors";

fn full_name(name: &str, settings: &Settings) -> String {
    format!("{name}\n{settings:?}")
}

/// Whether [`train`] would have nothing to do.
///
/// # Errors
/// [`TrainError::OtherRun`] if the folder holds another run.
pub(super) fn is_finished(name: &str, settings: &Settings, folder: &Path) -> Result<bool, TrainError> {
    let taken = Store::steps_taken(&full_name(name, settings), &folder.join(CHECKPOINT))?;
    Ok(taken == Some(settings.steps))
}

/// A training run.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) settings: &'a Settings,
    /// Identifies the run's data and configuration.
    pub(super) name: &'a str,
    /// Folder of `checkpoint.safetensors`, `curve.csv` and `curve.png`.
    pub(super) folder: &'a Path,
}

/// Trains `store` on `task`, from the run's checkpoint if there is one.
pub(super) fn train(
    task: &dyn Task,
    store: &Store,
    run: Run<'_>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), TrainError> {
    let Run { settings, name, folder } = run;
    std::fs::create_dir_all(folder).map_err(|error| TrainError::file(folder, error))?;
    let (path, name) = (folder.join(CHECKPOINT), full_name(name, settings));
    let mut state = store.resume(&name, &path)?.unwrap_or_else(|| store.begin());
    let mut curve = Curve::open(folder, state.step)?;
    let workers = Workers::new(settings.shards, store.is_on_cpu())?;
    let (begun, first) = (Instant::now(), state.step);
    let mut smooth: Option<Mean> = None;
    while state.step < settings.steps {
        let losses = workers.losses(task, store, settings, state.step)?;
        let now = apply(losses, store, &mut state, settings)?;
        smooth = Some(smooth.map_or(now.clone(), |smooth| smooth.blend(&now)));
        let done = state.step == settings.steps;
        if done || state.step.is_multiple_of(settings.checkpoint_every.max(1)) {
            store.save(&state, &name, &path)?;
        }
        if let Some(smooth) = smooth.as_ref().filter(|_| done || state.step.is_multiple_of(REPORT_EVERY)) {
            curve.push(state.step, smooth.total, &smooth.parts)?;
            let left = (settings.steps - state.step) as f64 / (state.step - first) as f64;
            let left = begun.elapsed().mul_f64(left);
            let (step, steps, loss, parts) = (state.step, settings.steps, smooth.total, smooth.parts.clone());
            if progress(&Progress { step, steps, loss, parts, left }).is_break() {
                return Err(TrainError::Stopped { step });
            }
        }
    }
    curve.draw()
}

/// Mean loss of a step.
#[derive(Debug, Clone, PartialEq)]
struct Mean {
    total: f32,
    parts: Vec<(&'static str, f32)>,
}

impl Mean {
    fn blend(&self, next: &Mean) -> Mean {
        let mix = |old: f32, new: f32| 0.95 * old + 0.05 * new;
        let parts = self.parts.iter().zip(&next.parts).map(|(old, new)| (old.0, mix(old.1, new.1)));
        Mean { total: mix(self.total, next.total), parts: parts.collect() }
    }
}

/// Loss of a shard, its parts, and gradients in the order of the store's variables.
struct Shard {
    total: f32,
    parts: Vec<(&'static str, f32)>,
    gradients: Vec<Vec<f32>>,
}

/// Threads for the shards.
struct Workers {
    /// One pool of one thread per shard: candle's products run in the calling pool. Empty on other devices:
    /// there shards run one after the other.
    pools: Vec<rayon::ThreadPool>,
}

impl Workers {
    fn new(shards: usize, on_cpu: bool) -> Result<Self, TrainError> {
        let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let count = if on_cpu { shards } else { 0 };
        let pools: Result<_, _> = (0..count).map(|_| pool()).collect();
        let why = |error: rayon::ThreadPoolBuildError| candle_core::Error::Msg(error.to_string());
        Ok(Workers { pools: pools.map_err(why)? })
    }

    fn losses(
        &self,
        task: &dyn Task,
        store: &Store,
        settings: &Settings,
        step: usize,
    ) -> Result<Vec<Shard>, TrainError> {
        let shard = |shard: usize| {
            let random = Random::new(&[settings.seed, step as u64, shard as u64]);
            let examples = settings.batch.div_ceil(settings.shards.max(1));
            backwards(task, store, Draw { random, examples })
        };
        if self.pools.is_empty() {
            return (0..settings.shards.max(1)).map(shard).collect();
        }
        let shard = &shard;
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .pools
                .iter()
                .enumerate()
                .map(|(number, pool)| scope.spawn(move || pool.install(|| shard(number))))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        let panicked = || TrainError::Device(candle_core::Error::Msg("a worker panicked".to_owned()));
        results.into_iter().map(|result| result.map_err(|_| panicked())?).collect()
    }
}

fn backwards(task: &dyn Task, store: &Store, draw: Draw) -> Result<Shard, TrainError> {
    let loss = task.loss(draw)?;
    let found = loss.total.backward()?;
    let mut gradients = Vec::new();
    for (_, variable) in store.variables() {
        gradients.push(match found.get(variable) {
            Some(gradient) => gradient.flatten_all()?.to_vec1()?,
            None => vec![0.0; variable.elem_count()],
        });
    }
    Ok(Shard { total: loss.total.to_scalar()?, parts: loss.parts, gradients })
}

/// One optimiser step with the mean gradient of the shards.
fn apply(
    shards: Vec<Shard>,
    store: &Store,
    state: &mut State,
    settings: &Settings,
) -> Result<Mean, TrainError> {
    let share = 1.0 / shards.len().max(1) as f32;
    let mut shards = shards.into_iter();
    let Some(first) = shards.next() else {
        return Err(TrainError::Data("nothing to train on".into()));
    };
    let (mut total, mut parts, mut gradients) = (first.total, first.parts, first.gradients);
    for shard in shards {
        total += shard.total;
        parts.iter_mut().zip(&shard.parts).for_each(|(sum, part)| sum.1 += part.1);
        for (sum, gradient) in gradients.iter_mut().flatten().zip(shard.gradients.iter().flatten()) {
            *sum += gradient;
        }
    }
    gradients.iter_mut().flatten().for_each(|gradient| *gradient *= share);
    parts.iter_mut().for_each(|part| part.1 *= share);
    let norm = clip(&mut gradients, settings.clip);
    let loss = total * share;
    if !loss.is_finite() || !norm.is_finite() {
        return Err(TrainError::Diverged { step: state.step, loss });
    }
    let rate = learning_rate(settings.learning_rate, state.step, settings.steps, settings.warmup) as f32;
    for (((_, variable), moments), gradient) in store.variables().zip(&mut state.moments).zip(&gradients) {
        let mut values: Vec<f32> = variable.flatten_all()?.to_vec1()?;
        let decay = if variable.rank() > 1 { settings.weight_decay } else { 0.0 };
        moments.step(&mut values, gradient, state.step, rate, decay);
        variable.set(&Tensor::from_vec(values, variable.shape(), variable.device())?)?;
    }
    state.step += 1;
    Ok(Mean { total: loss, parts })
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use reprise_encoders::families::sports::training::{Linear, Norm};

    /// Predicts the sign of a sum.
    struct Signs {
        first: Linear,
        norm: Norm,
        second: Linear,
    }

    impl Task for Signs {
        fn loss(&self, mut draw: Draw) -> Result<Loss, TrainError> {
            let values: Vec<f32> = (0..draw.examples * 6).map(|_| draw.random.normal()).collect();
            let signs = values.chunks(6).map(|row| if row.iter().sum::<f32>() > 0.0 { 1.0 } else { -1.0 });
            let signs = Tensor::from_vec(signs.collect::<Vec<f32>>(), (draw.examples, 1), &Device::Cpu)?;
            let x = Tensor::from_vec(values, (draw.examples, 6), &Device::Cpu)?;
            let guess = self.second.forward(&self.norm.forward(&self.first.forward_relu(&x)?)?)?;
            let total = (guess - signs)?.sqr()?.mean_all()?;
            Ok(Loss { parts: vec![("error", total.to_scalar()?)], total })
        }
    }

    fn signs() -> (Signs, Store) {
        let mut store = Store::new(3, &Device::Cpu);
        let first = Linear::new(&mut store, "first", 6, 16).unwrap();
        let norm = Norm::new(&mut store, "norm", 16).unwrap();
        let second = Linear::new(&mut store, "second", 16, 1).unwrap();
        (Signs { first, norm, second }, store)
    }

    fn settings() -> Settings {
        Settings {
            steps: 60,
            batch: 32,
            learning_rate: 0.02,
            warmup: 5,
            weight_decay: 0.01,
            clip: 1.0,
            seed: 1,
            shards: 2,
            checkpoint_every: 7,
        }
    }

    fn values(store: &Store) -> Vec<Vec<f32>> {
        store.variables().map(|(_, it)| it.flatten_all().unwrap().to_vec1().unwrap()).collect()
    }

    #[test]
    fn a_run_that_was_stopped_ends_as_one_that_was_not() {
        let folder = tempfile::tempdir().unwrap();
        let (task, whole) = signs();
        let (mut losses, straight) = (Vec::new(), folder.path().join("whole"));
        train(&task, &whole, Run { settings: &settings(), name: "signs", folder: &straight }, &mut |it| {
            losses.push(it.loss);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(losses.last().unwrap() < &(losses[0] * 0.7), "nothing was learnt: {losses:?}");

        let stopped = folder.path().join("stopped");
        for stop in [20, 30, 50] {
            // A new process would start here with fresh initial values.
            let (task, store) = signs();
            let error = train(
                &task,
                &store,
                Run { settings: &settings(), name: "signs", folder: &stopped },
                &mut |it| {
                    if it.step >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            );
            assert!(matches!(error, Err(TrainError::Stopped { step }) if step == stop), "{error:?}");
        }
        let (task, parts) = signs();
        let again = Run { settings: &settings(), name: "signs", folder: &stopped };
        train(&task, &parts, again, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(values(&parts), values(&whole));
        let curve = |folder: &Path| {
            let text = std::fs::read_to_string(folder.join("curve.csv")).unwrap();
            text.lines().map(|line| line.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(curve(&stopped), curve(&straight));
    }

    #[test]
    fn a_checkpoint_of_other_settings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (task, store) = signs();
        let go = |it: Settings| {
            let run = Run { settings: &it, name: "signs", folder: folder.path() };
            train(&task, &store, run, &mut |_| ControlFlow::Continue(()))
        };
        go(Settings { steps: 7, ..settings() }).unwrap();
        let error = go(settings());
        assert!(matches!(error, Err(TrainError::OtherRun { .. })), "{error:?}");
        let short = Settings { steps: 7, ..settings() };
        assert!(is_finished("signs", &short, folder.path()).unwrap());
        assert!(is_finished("others", &short, folder.path()).is_err());
        assert!(!is_finished("others", &short, &folder.path().join("new")).unwrap());
    }

    #[test]
    fn a_loss_that_is_no_number_ends_the_run() {
        struct Broken(Signs);
        impl Task for Broken {
            fn loss(&self, draw: Draw) -> Result<Loss, TrainError> {
                let loss = self.0.loss(draw)?;
                Ok(Loss { total: (loss.total * f64::NAN)?, parts: loss.parts })
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let (task, store) = signs();
        let run = Run { settings: &settings(), name: "broken", folder: folder.path() };
        let error = train(&Broken(task), &store, run, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(error, Err(TrainError::Diverged { step: 0, .. })), "{error:?}");
    }
}
