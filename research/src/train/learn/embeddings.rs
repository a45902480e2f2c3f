//! Stage 2 on precomputed vectors: trains TF-CoVR's Combiner (arXiv 2506.05274) with HN-NCE. The vectors may
//! come from any encoder.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{Device, Tensor};

use super::loss::{HardNegatives, hn_nce};
use super::run::{Draw, Loss, Run, Task, train};
use super::store::Store;
use super::{Progress, Settings, TrainError};
use crate::rows::Rows;
use reprise_encoders::families::aim::{Combiner, Widths};
use reprise_encoders::families::sports::training::default_device;
use reprise_encoders::families::sports::training::unit;
use reprise_encoders::families::sports::training::{Parameters, Start};

/// Temperature, as in the paper.
const TEMPERATURE: f64 = 0.07;

impl Settings {
    /// Defaults of the Combiner: the paper's batch and weight decay. Its learning rate is 1e-5 in the code,
    /// 1e-4 in the text.
    pub fn embeddings() -> Self {
        Settings {
            steps: 4000,
            batch: 512,
            learning_rate: 1e-4,
            warmup: 50,
            weight_decay: 0.05,
            clip: 1.0,
            seed: 3,
            shards: 1,
            checkpoint_every: 500,
        }
    }
}

/// One training example, as row numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedTriplet {
    /// Row of the query video.
    pub query: usize,
    /// Row of the target video.
    pub target: usize,
    /// Row of the modification text.
    pub text: usize,
    /// Label of the target; targets with one label are no negatives of each other.
    pub label: usize,
}

/// Vectors of videos and texts, and triplets of their rows.
#[derive(Clone, Copy)]
pub struct EmbeddedData<'a> {
    /// Raw vectors of the videos, not normalised.
    pub videos: &'a Rows,
    /// Vectors of the modification texts; their width may differ from the videos'.
    pub texts: &'a Rows,
    /// The examples.
    pub triplets: &'a [EmbeddedTriplet],
}

/// The Combiner's shape and its loss.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedRecipe {
    /// Size of the projections.
    pub projection: usize,
    /// Size of the hidden layer.
    pub hidden: usize,
    /// Weights of hard negatives.
    pub hard: HardNegatives,
}

/// Trains a Combiner and writes it to `combiner.safetensors` in `folder`, in the layout of a model of type
/// "aim". If texts and videos differ in width, a projection of the texts is trained and written too.
///
/// Video queries stay raw. Texts are projected if needed and then normalised. Targets are normalised. There is
/// no dropout.
///
/// # Errors
/// [`TrainError`]. After [`TrainError::Stopped`] the same call resumes.
pub fn train_embeddings(
    data: EmbeddedData<'_>,
    recipe: EmbeddedRecipe,
    settings: &Settings,
    folder: &Path,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(), TrainError> {
    let EmbeddedData { videos, texts, triplets } = data;
    let EmbeddedRecipe { projection, hidden, hard } = recipe;
    let fits = |it: &EmbeddedTriplet| it.query.max(it.target) < videos.len() && it.text < texts.len();
    if triplets.is_empty() || !triplets.iter().all(fits) {
        return Err(TrainError::Data("no triplets, or some whose vectors are not there".into()));
    }
    let mut store = Store::new(settings.seed, default_device());
    let widths = Widths { dim: videos.dim(), projection, hidden };
    let combiner = Combiner::new(widths, |name, shape| store.get(name, shape, start(shape)))?;
    let shape = [videos.dim(), texts.dim()];
    let project = match videos.dim() == texts.dim() {
        true => None,
        false => Some((
            store.get("text_proj.weight", &shape, start(&shape))?,
            store.get("text_proj.bias", &shape[..1], Start::Constant(0.0))?,
        )),
    };
    let task = Embedded { videos, texts, triplets, combiner, project, hard };
    let name = format!("embeddings {widths:?} {hard:?} {} {} {}", videos.len(), texts.len(), triplets.len());
    train(&task, &store, Run { settings, name: &name, folder }, progress)?;
    let path = folder.join("combiner.safetensors");
    let tensors: HashMap<String, Tensor> = store.tensors()?.into_iter().collect();
    candle_core::safetensors::save(&tensors, &path).map_err(|error| TrainError::file(&path, error))
}

/// Initial values of a parameter; weights have the shape `[outputs, inputs]`.
fn start(shape: &[usize]) -> Start {
    match shape {
        [_, inputs] => Start::Noise((1.0 / *inputs as f32).sqrt()),
        _ => Start::Constant(0.0),
    }
}

/// The given rows on the default device: `[rows, dim]`, f32.
fn gather(from: &Rows, rows: &[usize]) -> Result<Tensor, TrainError> {
    let (values, dim) = (from.values(), from.dim());
    let gathered = rows.iter().flat_map(|row| &values[row * dim..][..dim]).copied();
    let tensor = Tensor::from_vec(gathered.collect(), (rows.len(), dim), &Device::Cpu)?;
    Ok(tensor.to_device(default_device())?)
}

struct Embedded<'a> {
    videos: &'a Rows,
    texts: &'a Rows,
    triplets: &'a [EmbeddedTriplet],
    combiner: Combiner,
    /// Weight and bias of the text projection.
    project: Option<(Tensor, Tensor)>,
    hard: HardNegatives,
}

impl Task for Embedded<'_> {
    fn loss(&self, mut draw: Draw) -> Result<Loss, TrainError> {
        let any = |_| self.triplets[draw.random.below(self.triplets.len())];
        let drawn: Vec<EmbeddedTriplet> = (0..draw.examples).map(any).collect();
        let rows = |of: &dyn Fn(&EmbeddedTriplet) -> usize| drawn.iter().map(of).collect::<Vec<_>>();
        let mut texts = gather(self.texts, &rows(&|it| it.text))?;
        if let Some((weight, bias)) = &self.project {
            texts = texts.matmul(&weight.t()?)?.broadcast_add(bias)?;
        }
        let queries = self.combiner.forward(&gather(self.videos, &rows(&|it| it.query))?, &unit(&texts)?)?;
        let targets = unit(&gather(self.videos, &rows(&|it| it.target))?)?;
        let scores = (queries.matmul(&targets.t()?)? / TEMPERATURE)?;
        let best = scores.argmax(1)?.to_vec1::<u32>()?;
        let right = best.iter().zip(&drawn).filter(|(best, it)| drawn[**best as usize].label == it.label);
        let right = right.count() as f32 / drawn.len().max(1) as f32;
        let others = drawn.iter().flat_map(|a| drawn.iter().map(|b| f32::from(u8::from(a.label != b.label))));
        let others = Tensor::from_vec(others.collect(), (drawn.len(), drawn.len()), default_device())?;
        let loss = hn_nce(&scores, None, self.hard.masking(&others), self.hard)?;
        let total = (loss.rows + loss.columns)?;
        Ok(Loss { total, parts: vec![("right", right)] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;

    #[test]
    fn a_combiner_learns_where_a_text_leads_and_loads_again() {
        // Videos lie on a grid of 5 by 2 directions; a text moves them along one axis.
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(&[1]);
        let (mut videos, mut triplets) = (Vec::new(), Vec::new());
        for number in 0..40 {
            let hot = (0..10).map(|at| f32::from(u8::from(at == number % 5 || at == 5 + number / 5 % 2)));
            videos.extend(hot.map(|value| 3.0 * value + random.normal() * 0.1));
        }
        for (query, target) in (0..40).flat_map(|query| (0..40).map(move |target| (query, target))) {
            if query % 5 == target % 5 && query / 5 % 2 != target / 5 % 2 {
                let text = target / 5 % 2;
                triplets.push(EmbeddedTriplet { query, target, text, label: target % 10 });
            }
        }
        let save = |name: &str, values: Vec<f32>, dim: usize| {
            let path = folder.path().join(name);
            let rows = values.len() / dim;
            Tensor::from_vec(values, (rows, dim), &Device::Cpu).unwrap().write_npy(&path).unwrap();
            Rows::read(&path).unwrap()
        };
        let (videos, texts) =
            (save("videos.npy", videos, 10), save("texts.npy", vec![1.0, 0.0, 2.0, 0.0, 5.0, 2.0], 3));
        let settings = Settings { steps: 160, batch: 32, learning_rate: 5e-3, ..Settings::embeddings() };
        let mut last = 0.0;
        let data = EmbeddedData { videos: &videos, texts: &texts, triplets: &triplets };
        let recipe = EmbeddedRecipe { projection: 16, hidden: 24, hard: HardNegatives::PAPER };
        train_embeddings(data, recipe, &settings, folder.path(), &mut |it| {
            last = it.parts[0].1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(last > 0.8, "{last}");
        let file = folder.path().join("combiner.safetensors");
        let weights = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
        let stored = |name: &str, shape: &[usize]| {
            weights.get(name).filter(|tensor| tensor.dims() == shape).cloned().ok_or(name.to_owned())
        };
        Combiner::new(Widths { dim: 10, projection: 16, hidden: 24 }, stored).unwrap();
        assert!(stored("text_proj.weight", &[10, 3]).is_ok());
        let wrong = [EmbeddedTriplet { query: 40, ..triplets[0] }];
        let wrong = EmbeddedData { triplets: &wrong, ..data };
        let error =
            train_embeddings(wrong, recipe, &settings, folder.path(), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(error, Err(TrainError::Data(_))), "{error:?}");
    }
}
