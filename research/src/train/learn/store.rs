//! Trained and fixed tensors, and their checkpoints.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{Device, Tensor, Var};

use super::optimizer::Moments;
use super::{Random, TrainError};
use reprise_encoders::LoadError;
use reprise_encoders::families::sports::training::{Parameters, Start};

/// Tensors by name. Initial values of a new tensor depend on the seed and its name alone.
pub(crate) struct Store {
    device: Device,
    seed: u64,
    fixed: BTreeMap<String, Tensor>,
    variables: BTreeMap<String, Var>,
}

/// State of a training run.
pub(super) struct State {
    /// Steps taken.
    pub(super) step: usize,
    /// Optimiser state, in the order of the store's variables.
    pub(super) moments: Vec<Moments>,
}

impl Store {
    pub(crate) fn new(seed: u64, device: &Device) -> Self {
        Store { device: device.clone(), seed, fixed: BTreeMap::new(), variables: BTreeMap::new() }
    }

    /// Sets a tensor that is not trained.
    pub(crate) fn fix(&mut self, name: &str, tensor: Tensor) {
        self.fixed.insert(name.to_owned(), tensor);
    }

    /// All trained variables, ordered by name.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.variables.iter().map(|(name, variable)| (&name[..], variable))
    }

    pub(super) fn is_on_cpu(&self) -> bool {
        self.device.is_cpu()
    }

    /// All trained and fixed tensors on the CPU, except names that begin with `heads.`.
    pub(crate) fn tensors(&self) -> Result<BTreeMap<String, Tensor>, TrainError> {
        let variables = self.variables.iter().map(|(name, variable)| (name, variable.as_tensor()));
        let all = variables.chain(&self.fixed).filter(|(name, _)| !name.starts_with("heads."));
        let all = all.map(|(name, tensor)| Ok((name.clone(), tensor.detach().to_device(&Device::Cpu)?)));
        all.collect()
    }

    /// Initial state of a run.
    pub(super) fn begin(&self) -> State {
        let moments = self.variables.values().map(|variable| Moments::new(variable.elem_count()));
        State { step: 0, moments: moments.collect() }
    }

    /// Writes a checkpoint. A temporary name protects the previous one until the file is complete.
    pub(super) fn save(&self, state: &State, run: &str, path: &Path) -> Result<(), TrainError> {
        let mut tensors = HashMap::new();
        for ((name, variable), moments) in self.variables.iter().zip(&state.moments) {
            let shape = variable.shape();
            let mut add = |kind: &str, tensor| tensors.insert(format!("{kind}.{name}"), tensor);
            add("value", variable.as_tensor().to_device(&Device::Cpu)?);
            add("first", Tensor::from_slice(&moments.first, shape, &Device::Cpu)?);
            add("second", Tensor::from_slice(&moments.second, shape, &Device::Cpu)?);
        }
        tensors.insert("step".to_owned(), Tensor::new(&[state.step as i64], &Device::Cpu)?);
        tensors.insert("run".to_owned(), Tensor::new(run.as_bytes(), &Device::Cpu)?);
        let part = path.with_extension("part");
        candle_core::safetensors::save(&tensors, &part)?;
        std::fs::rename(&part, path).map_err(|error| TrainError::file(path, error))
    }

    /// Steps taken in the checkpoint at `path`; `None` without a file.
    ///
    /// # Errors
    /// [`TrainError::OtherRun`] if the checkpoint is not of `run`.
    pub(super) fn steps_taken(run: &str, path: &Path) -> Result<Option<usize>, TrainError> {
        Ok(checkpoint(run, path)?.map(|(step, _)| step))
    }

    /// Restores a checkpoint of [`Store::save`]; `None` without a file.
    pub(super) fn resume(&self, run: &str, path: &Path) -> Result<Option<State>, TrainError> {
        let Some((step, tensors)) = checkpoint(run, path)? else { return Ok(None) };
        let get = |name: String| {
            let found = tensors.get(&name).cloned();
            found.ok_or_else(|| TrainError::file(path, format!("the checkpoint has no {name}")))
        };
        let mut moments = Vec::new();
        for (name, variable) in &self.variables {
            variable.set(&get(format!("value.{name}"))?.to_device(&self.device)?)?;
            let flat = |kind: &str| -> Result<Vec<f32>, TrainError> {
                Ok(get(format!("{kind}.{name}"))?.flatten_all()?.to_vec1()?)
            };
            moments.push(Moments { first: flat("first")?, second: flat("second")? });
        }
        Ok(Some(State { step, moments }))
    }
}

type Tensors = HashMap<String, Tensor>;

/// Steps taken and tensors of `run`'s checkpoint; `None` without a file.
fn checkpoint(run: &str, path: &Path) -> Result<Option<(usize, Tensors)>, TrainError> {
    if !path.is_file() {
        return Ok(None);
    }
    let tensors =
        candle_core::safetensors::load(path, &Device::Cpu).map_err(|error| TrainError::file(path, error))?;
    let (of, step) = (tensors.get("run"), tensors.get("step"));
    let (Some(of), Some(step)) = (of, step) else {
        return Err(TrainError::file(path, "no checkpoint of a training"));
    };
    if of.to_vec1::<u8>()? != run.as_bytes() {
        return Err(TrainError::OtherRun { path: path.to_owned() });
    }
    let step = step.to_vec1::<i64>()?.first().map_or(0, |step| *step as usize);
    Ok(Some((step, tensors)))
}

impl Parameters for Store {
    fn get(&mut self, name: &str, shape: &[usize], start: Start) -> Result<Tensor, LoadError> {
        let known = self.fixed.get(name).or_else(|| self.variables.get(name).map(Var::as_tensor));
        if let Some(tensor) = known {
            if tensor.dims() != shape {
                let (expected, found) = (shape.to_vec(), tensor.dims().to_vec());
                return Err(LoadError::WrongShape { name: name.to_owned(), expected, found });
            }
            return Ok(tensor.to_device(&self.device)?);
        }
        let count = shape.iter().product();
        let values: Vec<f32> = match start {
            Start::Constant(value) => vec![value; count],
            Start::Noise(deviation) => {
                let letters: Vec<u64> = name.bytes().map(u64::from).collect();
                let mut random = Random::new(&[&[self.seed], &letters[..]].concat());
                (0..count).map(|_| random.normal() * deviation).collect()
            }
        };
        let variable = Var::from_tensor(&Tensor::from_vec(values, shape, &self.device)?)?;
        let tensor = variable.as_tensor().clone();
        self.variables.insert(name.to_owned(), variable);
        Ok(tensor)
    }
}
