//! Silero's voice activity detector, version 6 at 16 kHz: convolutions over a frame's spectrum, then an LSTM over frames.
//!
//! Source: `tinygrad_model.py` of the package silero-vad 6.2.3. Its `silero_vad.jit` and `silero_vad_16k.safetensors` are read;
//! their weights are of different trainings. A spectrum of a frame of 512 samples, 64 before it and 64 mirrored after it has
//! four rows; the convolutions make one row of them.

use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor};

use super::activity::{FRAME, SpeechDetector};
use crate::blocks::layers::{Activation, Affine, Linear};
use crate::loading::Weights;
use crate::{Cause, EncodeError, LoadError};

/// Samples before a frame that its spectrum also covers, and as many mirrored ones after it.
const CONTEXT: usize = 64;
/// Samples of a row of the spectrum, and from one row to the next.
const ROW: usize = 256;
const HOP: usize = 128;
/// Rows of a frame's spectrum, and values of a row: 0 to 8 kHz.
const ROWS: usize = 4;
const BANDS: usize = ROW / 2 + 1;
/// Rows that a convolution takes together.
const TAPS: usize = 3;
/// Name, and rows from one product to the next, of each convolution.
const CONVOLUTIONS: [(&str, usize); 4] = [("conv1", 1), ("conv2", 2), ("conv3", 2), ("conv4", 1)];
/// Frames that are computed at once: 16 s. Their spectra take 4 MB.
const AT_ONCE: usize = 512;

/// Loudest sample that is heard, of full scale: 24 dB over it. Files of floats may hold any number, and the LSTM would never
/// forget one that is not finite.
const LOUDEST: f32 = 16.0;
/// Largest file with weights, in bytes; the released ones take 1 to 3 MB. It also bounds how wide layers can be.
const LARGEST_FILE: u64 = 16 << 20;

/// Where the TorchScript archive keeps the network for 16 kHz, and its names of layers with those of the safetensors.
const ARCHIVE: &str = "_model";
const ARCHIVED: [(&str, &str); 7] = [
    ("stft.forward_basis_buffer", "stft_conv.weight"),
    ("encoder.0.reparam_conv", "conv1"),
    ("encoder.1.reparam_conv", "conv2"),
    ("encoder.2.reparam_conv", "conv3"),
    ("encoder.3.reparam_conv", "conv4"),
    ("decoder.rnn", "lstm_cell"),
    ("decoder.decoder.2", "final_conv"),
];

/// Finds speech by Silero's network. Clones share the weights; each hears sound of its own.
#[derive(Debug, Clone)]
pub struct Silero {
    network: Arc<Network>,
    /// The last samples that it heard.
    context: [f32; CONTEXT],
    state: State,
}

/// What the LSTM keeps from frame to frame.
#[derive(Debug, Clone)]
struct State {
    hidden: Vec<f32>,
    cell: Vec<f32>,
}

impl Silero {
    /// Reads `silero_vad.jit` or a file such as `silero_vad_16k.safetensors`. Runs on the CPU.
    ///
    /// # Errors
    /// [`LoadError`] if it can't be read, is larger than 16 MiB or has other tensors than Silero's detector.
    pub fn open(path: &Path) -> std::result::Result<Silero, LoadError> {
        check_size(path).map_err(|why| LoadError::BadFile { path: path.to_owned(), why })?;
        let weights = Weights::read(&[path.to_owned()])?.renamed(plain_name);
        let network = Network::load(&weights)?;
        // The archive also has a network for 8 kHz.
        let is_archive = weights.names().any(|name| name.starts_with(ARCHIVE));
        weights.check_taken(&[if is_archive { ARCHIVE } else { "" }], &[])?;
        let state = State { hidden: vec![0.0; network.width], cell: vec![0.0; network.width] };
        Ok(Silero { network: Arc::new(network), context: [0.0; CONTEXT], state })
    }

    fn hear(&mut self, samples: &[f32]) -> Result<Vec<f32>> {
        let rows = self.rows(samples);
        let gates = self.network.gates(rows)?;
        gates.iter().map(|gates| self.network.step(&mut self.state, gates)).collect()
    }

    /// The samples of all rows of the spectra, one row after the other.
    fn rows(&mut self, samples: &[f32]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(samples.len() / FRAME * ROWS * ROW);
        for frame in samples.chunks_exact(FRAME) {
            let mirrored = frame.iter().rev().skip(1).take(CONTEXT);
            let heard = self.context.iter().chain(frame).chain(mirrored);
            let heard: Vec<f32> = heard.map(|sample| audible(*sample)).collect();
            heard.windows(ROW).step_by(HOP).for_each(|row| rows.extend_from_slice(row));
            self.context.copy_from_slice(&frame[FRAME - CONTEXT..]);
        }
        rows
    }
}

impl SpeechDetector for Silero {
    fn speech(&mut self, samples: &[f32]) -> std::result::Result<Vec<f32>, EncodeError> {
        let mut marks = Vec::with_capacity(samples.len() / FRAME);
        for some in samples.chunks(AT_ONCE * FRAME) {
            marks.extend(self.hear(some).map_err(|error| EncodeError::Failed(error.into()))?);
        }
        Ok(marks)
    }

    fn reset(&mut self) {
        self.context.fill(0.0);
        self.state.hidden.fill(0.0);
        self.state.cell.fill(0.0);
    }
}

/// The loaded network.
#[derive(Debug)]
struct Network {
    /// Samples of a row to the real and then the imaginary parts of its spectrum.
    spectrum: Linear,
    convolutions: Vec<Convolution>,
    /// From the last convolution, and from the LSTM's own last state, to its four gates.
    from_input: Linear,
    from_hidden: Linear,
    /// Values of the LSTM's state.
    width: usize,
    output: Vec<f32>,
    output_bias: f32,
}

/// A convolution over rows with a row of zeros at both ends, then ReLU.
#[derive(Debug)]
struct Convolution {
    /// From [`TAPS`] rows side by side.
    layer: Linear,
    inputs: usize,
    stride: usize,
}

impl Network {
    fn load(weights: &Weights) -> std::result::Result<Network, LoadError> {
        let spectrum = weights.get("stft_conv.weight", &[2 * BANDS, 1, ROW])?.squeeze(1)?;
        let mut inputs = BANDS;
        let mut convolutions = Vec::with_capacity(CONVOLUTIONS.len());
        for (name, stride) in CONVOLUTIONS {
            let [outputs, ..] = weights.dims::<3>(&format!("{name}.weight"))?;
            convolutions.push(Convolution::load(weights, name, [inputs, outputs], stride)?);
            inputs = outputs;
        }
        // The state is as wide as its input.
        let width = inputs;
        let recurrent = |part: &str| {
            let weight = weights.get(&format!("lstm_cell.weight_{part}"), &[4 * width, width])?;
            let bias = weights.get(&format!("lstm_cell.bias_{part}"), &[4 * width])?;
            Ok::<_, LoadError>(Linear::of_rows(weights.placement(), &weight, Some(bias))?)
        };
        let output = weights.get("final_conv.weight", &[1, width, 1])?.flatten_all()?.to_vec1()?;
        let output_bias = weights.get("final_conv.bias", &[1])?.to_vec1::<f32>()?[0];
        let (from_input, from_hidden) = (recurrent("ih")?, recurrent("hh")?);
        let spectrum = Linear::of_rows(weights.placement(), &spectrum, None)?;
        Ok(Network { spectrum, convolutions, from_input, from_hidden, width, output, output_bias })
    }

    /// The LSTM's gates of each frame before its own last state is added: `[frames][4 * width]`.
    fn gates(&self, rows: Vec<f32>) -> Result<Vec<Vec<f32>>> {
        let spectrum = self.spectrum.forward(&matrix(rows, ROW)?)?.to_vec2::<f32>()?;
        let magnitudes = spectrum.iter().flat_map(|row| {
            let (real, imaginary) = row.split_at(BANDS);
            real.iter().zip(imaginary).map(|(re, im)| (re * re + im * im).sqrt())
        });
        let (mut values, mut rows) = (magnitudes.collect::<Vec<f32>>(), ROWS);
        for convolution in &self.convolutions {
            values = convolution.forward(&values, rows)?;
            rows = rows.div_ceil(convolution.stride);
        }
        self.from_input.forward(&matrix(values, self.width)?)?.to_vec2()
    }

    /// A step of the LSTM. Returns how surely the frame holds speech.
    fn step(&self, state: &mut State, gates: &[f32]) -> Result<f32> {
        let width = self.width;
        let own = self.from_hidden.forward(&matrix(state.hidden.clone(), width)?)?;
        let own: Vec<f32> = own.flatten_all()?.to_vec1()?;
        // In PyTorch's order: input, forget, cell, output.
        let gate = |which: usize, at: usize| gates[which * width + at] + own[which * width + at];
        for at in 0..width {
            let new = sigmoid(gate(0, at)) * gate(2, at).tanh();
            state.cell[at] = sigmoid(gate(1, at)) * state.cell[at] + new;
            state.hidden[at] = sigmoid(gate(3, at)) * state.cell[at].tanh();
        }
        let sum: f32 =
            state.hidden.iter().zip(&self.output).map(|(value, weight)| value.max(0.0) * weight).sum();
        Ok(sigmoid(sum + self.output_bias))
    }
}

impl Convolution {
    fn load(
        weights: &Weights,
        name: &str,
        [inputs, outputs]: [usize; 2],
        stride: usize,
    ) -> std::result::Result<Convolution, LoadError> {
        // A layer without outputs can't be multiplied with.
        let weight = weights.get(&format!("{name}.weight"), &[outputs.max(1), inputs, TAPS])?;
        let bias = weights.get(&format!("{name}.bias"), &[outputs])?;
        let weight = weight.transpose(1, 2)?.contiguous()?.reshape((outputs, TAPS * inputs))?;
        let layer = Affine::of_rows(&weight, Some(bias))?.ready(&weights.placement().in_f32())?;
        Ok(Convolution { layer, inputs, stride })
    }

    /// `values`: `[frames][rows][inputs]`. Returns `[frames][rows / stride][outputs]`, rounded up.
    fn forward(&self, values: &[f32], rows: usize) -> Result<Vec<f32>> {
        let mut taps = Vec::with_capacity(values.len() * TAPS / self.stride);
        for frame in values.chunks_exact(rows * self.inputs) {
            let zeros = std::iter::repeat_n(&0.0, self.inputs);
            let padded: Vec<f32> = zeros.clone().chain(frame).chain(zeros).copied().collect();
            let products = padded.windows(TAPS * self.inputs).step_by(self.stride * self.inputs);
            products.for_each(|rows| taps.extend_from_slice(rows));
        }
        let taps = matrix(taps, TAPS * self.inputs)?;
        self.layer.forward_inner(&taps, Some(Activation::Relu))?.flatten_all()?.to_vec1()
    }
}

fn check_size(path: &Path) -> std::result::Result<(), Cause> {
    let bytes = std::fs::metadata(path)?.len();
    match bytes <= LARGEST_FILE {
        true => Ok(()),
        false => Err(format!("a voice activity detector has no {bytes} bytes").into()),
    }
}

/// The sample, within what can be heard; 0 for what is no number.
fn audible(sample: f32) -> f32 {
    if sample.is_nan() { 0.0 } else { sample.clamp(-LOUDEST, LOUDEST) }
}

/// The name that the safetensors have for a tensor of the archive; other names stay.
fn plain_name(name: &str) -> String {
    let inner = name.strip_prefix(ARCHIVE).and_then(|name| name.strip_prefix('.'));
    let renamed = inner.and_then(|inner| {
        ARCHIVED.iter().find_map(|(old, new)| Some(format!("{new}{}", inner.strip_prefix(old)?)))
    });
    renamed.unwrap_or_else(|| name.to_owned())
}

/// Rows of `columns` values.
fn matrix(values: Vec<f32>, columns: usize) -> Result<Tensor> {
    let rows = values.len() / columns;
    Tensor::from_vec(values, (rows, columns), &Device::Cpu)
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::synthetic::sound;
    use super::*;

    /// Largest accepted difference of marks.
    const TOLERANCE: f32 = 1e-4;
    const SECONDS: usize = 20;

    fn file(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/parity/data").join(name)
    }

    fn silero() -> Silero {
        Silero::open(&file("silero/model.safetensors")).unwrap()
    }

    /// What the reference says of the fixture's sound (see tests/parity/silero.py).
    fn expected() -> Vec<f32> {
        let expected =
            candle_core::safetensors::load(file("silero/expected.safetensors"), &Device::Cpu).unwrap();
        expected["marks"].to_vec1().unwrap()
    }

    #[track_caller]
    fn check(what: &str, marks: &[f32], expected: &[f32]) {
        assert_eq!(marks.len(), expected.len(), "{what}");
        let largest = marks.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        eprintln!("{what}: {largest:.1e}");
        assert!(largest <= TOLERANCE, "{what}: the marks differ by {largest}");
    }

    #[test]
    fn marks_are_those_of_the_reference_however_the_sound_comes() {
        let samples = sound(0, SECONDS * 16_000);
        let mut silero = silero();
        check("all at once", &silero.speech(&samples).unwrap(), &expected());
        silero.reset();
        let mut pieces = Vec::new();
        for frames in [1, 17, 300, 307] {
            let first = pieces.len() * FRAME;
            pieces.extend(silero.speech(&samples[first..first + frames * FRAME]).unwrap());
        }
        check("in pieces", &pieces, &expected());
        assert_eq!(silero.speech(&[]).unwrap(), [0.0; 0]);
    }

    #[test]
    fn what_was_heard_long_ago_does_not_matter() {
        let samples = sound(0, SECONDS * 16_000);
        let (first, heard) = (300, 100);
        let late = silero().speech(&samples[first * FRAME..]).unwrap();
        check("from the middle", &late[heard..], &expected()[first + heard..]);
    }

    #[test]
    fn samples_that_are_no_sound_are_forgotten() {
        let mut samples = sound(0, SECONDS * 16_000);
        samples[..4].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::MIN, f32::MAX]);
        let marks = silero().speech(&samples).unwrap();
        assert!(marks.iter().all(|mark| mark.is_finite()));
        check("after them", &marks[200..], &expected()[200..]);
    }

    #[test]
    fn names_of_the_archive_are_those_of_the_safetensors() {
        let check = |name: &str, expected: &str| assert_eq!(plain_name(name), expected);
        check("_model.stft.forward_basis_buffer", "stft_conv.weight");
        check("_model.encoder.3.reparam_conv.bias", "conv4.bias");
        check("_model.decoder.rnn.weight_hh", "lstm_cell.weight_hh");
        check("_model.decoder.decoder.2.weight", "final_conv.weight");
        check("_model_8k.decoder.rnn.weight_hh", "_model_8k.decoder.rnn.weight_hh");
        check("conv1.bias", "conv1.bias");
    }

    #[test]
    fn other_files_are_refused() {
        let check = |name: &str, expected: &str| {
            let error = Silero::open(&file(name)).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        };
        check("whisper/model.safetensors", "no tensor stft_conv.weight");
        check("silero/none.safetensors", "can't be used");
        check("whisper/config.json", "can't be used");
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large.safetensors");
        std::fs::File::create(&large).unwrap().set_len(LARGEST_FILE + 1).unwrap();
        check(large.to_str().unwrap(), "has no 16777217 bytes");
    }
}
