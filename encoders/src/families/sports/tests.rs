use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use super::language::PaddedTexts;
use super::operations::{self, ConvPatches, basic};
use super::parameters::{ForInference, Parameters, Start};
use super::parts::Parts;
use super::{Config, StemLayer, TimeModel};
use crate::LoadError;

/// Pseudorandom values in -1 to 1.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn variable(shape: &[usize], seed: u64) -> Var {
    let values = noise(shape.iter().product(), seed);
    Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu).unwrap()).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

#[track_caller]
fn check(shapes: &[&[usize]], fused: impl Fn(&[Tensor]) -> Tensor, basic: impl Fn(&[Tensor]) -> Tensor) {
    let inputs: Vec<Var> = shapes.iter().zip(1..).map(|(shape, seed)| variable(shape, seed)).collect();
    let tensors: Vec<Tensor> = inputs.iter().map(|it| it.as_tensor().clone()).collect();
    let (fused, basic) = (fused(&tensors), basic(&tensors));
    let weights = variable(fused.dims(), 99);
    let gradients =
        [&fused, &basic].map(|it| (it * weights.as_tensor()).unwrap().sum_all().unwrap().backward().unwrap());
    let close = |a: &Tensor, b: &Tensor| {
        assert_eq!(a.dims(), b.dims());
        let worst = values(a).iter().zip(values(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 2e-5, "{worst}");
    };
    close(&fused, &basic);
    for input in &inputs {
        close(gradients[0].get(input).unwrap(), gradients[1].get(input).unwrap());
    }
}

#[test]
fn a_linear_layer_is_that_of_basic_operations() {
    for relu in [false, true] {
        for rows in [&[6, 27][..], &[2, 3, 27]] {
            check(
                &[rows, &[27, 40], &[40]],
                |x| operations::linear(&x[0], &x[1], &x[2], relu).unwrap(),
                |x| basic::linear(&x[0], &x[1], &x[2], relu).unwrap(),
            );
        }
    }
}

#[test]
fn rows_are_normalised_as_by_basic_operations() {
    check(
        &[&[3, 4, 21], &[21], &[21]],
        |x| operations::layer_norm(&x[0], &x[1], &x[2]).unwrap(),
        |x| basic::layer_norm(&x[0], &x[1], &x[2]).unwrap(),
    );
}

#[test]
fn attention_is_that_of_basic_operations() {
    for lengths in [None, Some(vec![5, 1, 3])] {
        let shared: Option<Arc<[usize]>> = lengths.clone().map(Into::into);
        check(
            &[&[3, 5, 72]],
            |x| operations::attention(&x[0], 2, shared.clone()).unwrap(),
            |x| basic::attention(&x[0], 2, lengths.as_deref()).unwrap(),
        );
    }
}

#[test]
fn neighbourhoods_are_those_of_basic_operations() {
    for (side, kernel, stride) in [(8, 3, 2), (8, 2, 2), (9, 6, 4), (5, 3, 1)] {
        let windows = ConvPatches { side, kernel, stride };
        check(
            &[&[2, side * side, 3]],
            |x| windows.gather(&x[0]).unwrap(),
            |x| basic::gather(&windows, &x[0]).unwrap(),
        );
    }
}

#[test]
fn neighbourhoods_and_a_product_are_a_convolution() {
    let (x, kernel) = (variable(&[2, 3, 8, 8], 1), variable(&[5, 3, 3, 3], 2));
    let expected = x.conv2d(&kernel, 1, 2, 1, 1).unwrap();
    let rows = x.permute((0, 2, 3, 1)).unwrap().reshape((2, 64, 3)).unwrap();
    let weights = kernel.permute((2, 3, 1, 0)).unwrap().reshape((27, 5)).unwrap();
    let gathered = ConvPatches { side: 8, kernel: 3, stride: 2 }.gather(&rows).unwrap();
    let product = gathered.reshape((32, 27)).unwrap().matmul(&weights).unwrap();
    let product = product.reshape((2, 4, 4, 5)).unwrap().permute((0, 3, 1, 2)).unwrap();
    let worst = (product - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
    assert!(worst < 1e-5, "{worst}");
}

/// A small configuration with every kind of layer.
fn config() -> Config {
    let layer = |kernel, stride, channels| StemLayer { kernel, stride, channels };
    Config {
        image_size: 16,
        frames: 4,
        width: 16,
        inner: 24,
        heads: 2,
        stem: vec![layer(6, 4, 8), layer(3, 2, 16)],
        temporal_layers: 1,
        text_layers: 1,
        fusion_inner: 12,
        dim: 16,
        vocab_size: 9,
        max_position_embeddings: 7,
        ..Config::default()
    }
}

/// Trainable parameters.
#[derive(Default)]
struct Variables(BTreeMap<String, Var>);

impl Parameters for Variables {
    fn get(&mut self, name: &str, shape: &[usize], start: Start) -> Result<Tensor, LoadError> {
        let values = variable(shape, self.0.len() as u64 + 5);
        let values = match start {
            Start::Constant(value) => (values.zeros_like()? + f64::from(value))?,
            Start::Noise(deviation) => (values.as_tensor() * f64::from(deviation))?,
        };
        let variable = Var::from_tensor(&values)?;
        self.0.insert(name.to_owned(), variable.clone());
        Ok(variable.as_tensor().clone())
    }
}

#[test]
fn every_parameter_has_a_gradient() {
    let mut store = Variables::default();
    let model = Parts::new(&mut store, &config()).unwrap();
    let pixels = variable(&[3 * 4, 256, 3], 1);
    let features = model.frames.forward(&pixels).unwrap().reshape((3, 4, 16)).unwrap();
    let clips = model.clips.forward(&features).unwrap();
    let ids: [&[u32]; 3] = [&[1, 2, 3, 4, 5, 6, 7], &[1, 8], &[1, 0, 2]];
    let texts: Vec<(&[u32], usize)> = ids.into_iter().map(|ids| (ids, 0)).collect();
    let texts = model.text.forward(&PaddedTexts::new(&texts, &Device::Cpu).unwrap()).unwrap();
    let fused = model.fusion.forward(&clips.clips, &texts).unwrap();
    let outputs = [(fused, 1), (texts.aligned, 2), (clips.frames, 3)];
    let losses =
        outputs.map(|(it, seed)| (variable(it.dims(), seed).as_tensor() * it).unwrap().sum_all().unwrap());
    let [one, two, three] = losses;
    let gradients = ((one + two).unwrap() + three).unwrap().backward().unwrap();
    let without: Vec<&String> = store
        .0
        .iter()
        .filter(|(_, variable)| {
            let gradient = gradients.get(variable).map(values);
            gradient.is_none_or(|it| !it.iter().any(|value| value.abs() > 1e-9 && value.is_finite()))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(without.is_empty(), "{without:?}");
    assert!(store.0.len() > 50);
}

/// All outputs of a model of [`config`] for the same inputs.
fn answers(parameters: &mut dyn Parameters) -> Vec<Tensor> {
    let model = Parts::new(parameters, &config()).unwrap();
    let features = model.frames.forward(&variable(&[3 * 4, 256, 3], 1)).unwrap();
    let clips = model.clips.forward(&features.reshape((3, 4, 16)).unwrap()).unwrap();
    let ids: [&[u32]; 3] = [&[1, 2, 3, 4, 5, 6, 7], &[1, 8], &[1, 0, 2]];
    let texts: Vec<(&[u32], usize)> = ids.into_iter().map(|ids| (ids, 0)).collect();
    let texts = model.text.forward(&PaddedTexts::new(&texts, &Device::Cpu).unwrap()).unwrap();
    let fused = model.fusion.forward(&clips.clips, &texts).unwrap();
    vec![features, clips.clips, clips.frames, texts.meaning, texts.aligned, fused]
}

#[test]
fn kernels_for_inference_give_what_trainable_layers_give() {
    let (mut trained, mut fixed) = (Variables::default(), Variables::default());
    let expected = answers(&mut trained);
    for (got, expected) in answers(&mut ForInference(&mut fixed)).iter().zip(&expected) {
        assert_eq!(got.dims(), expected.dims());
        let difference = (got - expected).unwrap().abs().unwrap().max_all().unwrap();
        let worst = difference.to_scalar::<f32>().unwrap();
        assert!(worst < 1e-5, "{worst}");
    }
}

#[track_caller]
fn refuses(change: impl Fn(&mut Config)) {
    let mut config = config();
    config.check().unwrap();
    change(&mut config);
    assert!(matches!(config.check(), Err(LoadError::Unsupported(_))));
}

#[test]
fn numbers_that_make_no_model_are_refused() {
    refuses(|it| it.width = 0);
    refuses(|it| it.heads = 3);
    refuses(|it| it.frames = 1);
    refuses(|it| it.image_size = 1 << 20);
    refuses(|it| it.stem.clear());
    refuses(|it| it.stem[0].stride = 0);
    refuses(|it| it.stem[1].kernel = 99);
    refuses(|it| it.stem[1].channels = 4);
    refuses(|it| it.image_size = 1_025);
    refuses(|it| it.text_layers = 1 << 40);
    refuses(|it| it.temporal_layers = 101);
    refuses(|it| (it.time, it.dim) = (TimeModel::Mean, 8));
}
