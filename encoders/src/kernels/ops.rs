//! The kernels as operations on candle tensors.

use std::cell::Cell;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use super::attention::{AttentionMask, Heads, RotaryAngles, attend};
use super::finish::Finish;
use super::int8::{self, BytePanels};
use super::matrix::{Filled, Panels, Rows, Target};
use super::norm::{Input, Norm, normalise};
use super::pairs::PairPanels;
use super::sharing::threads_for;
use super::slices::SlicePanels;
use super::{Activation, Cores, Processor, bf16, blocking, float, float_tiles};

/// What a layer norm takes for a value, in multiplications.
const OPERATIONS_OF_A_VALUE: usize = 16;
/// What reading a weight from memory takes, in multiplications: few rows wait for that.
const OPERATIONS_OF_A_READ: usize = 16;

/// `x W + b` on f32 rows on the CPU, with packed weights.
#[derive(Debug)]
pub(crate) struct PackedLinear {
    processor: Processor,
    weight: Weight,
    bias: Option<Vec<f32>>,
}

/// The fewest outputs of a layer for which rows are sliced into bytes: that takes as long as the products with some tens of
/// columns save.
const FEWEST_SLICED: usize = 96;

/// Packed weights of one precision.
#[derive(Debug)]
pub(super) enum Weight {
    Float(Panels),
    /// The same in tile registers.
    Slices(SlicePanels),
    Bf16(PairPanels),
    Bytes(BytePanels),
}

impl Weight {
    /// Packs an f32 `weight` of (inputs, outputs), row after row.
    ///
    /// # Panics
    /// If the number of values differs.
    pub(super) fn of_floats(processor: Processor, weight: &[f32], inputs: usize, outputs: usize) -> Weight {
        match processor.has_amx() && outputs >= FEWEST_SLICED {
            true => Weight::Slices(SlicePanels::new(processor, weight, inputs, outputs)),
            false => Weight::Float(Panels::new(weight, inputs, outputs)),
        }
    }

    /// Writes `from` times these weights to all of `to`, through the steps of `finish`.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub(super) fn multiply(&self, cores: Cores, from: Input<'_>, to: Target, finish: Finish<'_>) {
        match self {
            Weight::Float(panels) => float::multiply(cores, from, panels, to, finish),
            Weight::Slices(panels) => float_tiles::multiply(cores, from, panels, to, finish),
            Weight::Bf16(panels) => bf16::multiply(cores, from, panels, to, finish),
            Weight::Bytes(panels) => int8::multiply(cores, from, panels, to, finish),
        }
    }
}

impl PackedLinear {
    /// Packs a contiguous f32 `weight` of shape (inputs, outputs) on the CPU and its `bias`.
    ///
    /// # Errors
    /// Other types, shapes or devices.
    pub(crate) fn of_floats(processor: Processor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let (inputs, outputs) = weight.dims2()?;
        let weight: Vec<f32> = weight.flatten_all()?.to_vec1()?;
        let weight = Weight::of_floats(processor, &weight, inputs, outputs);
        PackedLinear { processor, weight, bias: None }.biased(bias)
    }

    /// Like [`PackedLinear::of_floats`], but with int8 products. Falls back to floats if the rows are too long.
    ///
    /// # Errors
    /// As [`PackedLinear::of_floats`].
    pub(crate) fn of_bytes(processor: Processor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let (inputs, outputs) = weight.dims2()?;
        if inputs > BytePanels::DEEPEST {
            return PackedLinear::of_floats(processor, weight, bias);
        }
        let weight = Weight::Bytes(BytePanels::new(&weight.flatten_all()?.to_vec1()?, inputs, outputs));
        PackedLinear { processor, weight, bias: None }.biased(bias)
    }

    /// Like [`PackedLinear::of_floats`], but weights and rows are rounded to bf16.
    ///
    /// # Errors
    /// As [`PackedLinear::of_floats`].
    pub(crate) fn of_bf16(processor: Processor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        let (inputs, outputs) = weight.dims2()?;
        let weight = Weight::Bf16(PairPanels::new(&weight.flatten_all()?.to_vec1()?, inputs, outputs));
        PackedLinear { processor, weight, bias: None }.biased(bias)
    }

    fn biased(self, bias: Option<&Tensor>) -> Result<Self> {
        let bias = bias.map(|bias| bias.to_vec1::<f32>()).transpose()?;
        if bias.as_ref().is_some_and(|bias| bias.len() != self.outputs()) {
            bail!("the bias and the layer's output differ in length");
        }
        if self.inputs() == 0 {
            bail!("the layer has no inputs");
        }
        Ok(PackedLinear { bias, ..self })
    }

    fn inputs(&self) -> usize {
        match &self.weight {
            Weight::Float(panels) => panels.depth,
            Weight::Slices(panels) => panels.depth,
            Weight::Bf16(panels) => panels.depth,
            Weight::Bytes(panels) => panels.depth,
        }
    }

    fn outputs(&self) -> usize {
        match &self.weight {
            Weight::Float(panels) => panels.columns,
            Weight::Slices(panels) => panels.columns,
            Weight::Bf16(panels) => panels.columns,
            Weight::Bytes(panels) => panels.columns,
        }
    }

    /// `activation(norm(x) W + b)`, and `beside` added or multiplied: `rows` are (rows, inputs), `beside` and the result
    /// (rows, outputs).
    ///
    /// # Errors
    /// Other types, shapes or devices, or tensors that are not contiguous.
    pub(crate) fn forward(
        &self,
        rows: &Tensor,
        norm: Option<&Norm>,
        activation: Option<Activation>,
        beside: Beside<'_>,
    ) -> Result<Tensor> {
        let multiplies = matches!(beside, Beside::Multiplied(_));
        let op = Product { linear: self, norm, activation, multiplies, place: Cell::default() };
        let result = match beside {
            Beside::Nothing => rows.apply_op1_no_bwd(&op)?,
            Beside::Added(beside) | Beside::Multiplied(beside) => rows.apply_op2_no_bwd(beside, &op)?,
        };
        op.place.get().of(&result)
    }
}

/// Where a matrix lies in an operation's result, which has padding.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// The index of the first value.
    first: usize,
    rows: usize,
    columns: usize,
}

impl Place {
    /// The matrix in `result`, without a copy.
    fn of(self, result: &Tensor) -> Result<Tensor> {
        result.narrow(0, self.first, self.rows * self.columns)?.reshape((self.rows, self.columns))
    }
}

/// A new matrix as an operation's result; sets its place.
fn filled(
    place: &Cell<Place>,
    rows: usize,
    columns: usize,
    write: impl FnOnce(Target),
) -> (CpuStorage, Shape) {
    let Filled { values, first } = Filled::new(rows, columns, write);
    place.set(Place { first, rows, columns });
    let shape = Shape::from(values.len());
    (CpuStorage::F32(values), shape)
}

/// The second operand of a layer, element by element.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beside<'a> {
    Nothing,
    Added(&'a Tensor),
    Multiplied(&'a Tensor),
}

struct Product<'a> {
    linear: &'a PackedLinear,
    norm: Option<&'a Norm>,
    activation: Option<Activation>,
    /// Whether the second operand is multiplied instead of added.
    multiplies: bool,
    /// Of the result, once there is one.
    place: Cell<Place>,
}

impl Product<'_> {
    fn run(&self, values: &[f32], shape: &Shape, beside: Option<&[f32]>) -> Result<(CpuStorage, Shape)> {
        let ((rows, inputs), outputs) = (shape.dims2()?, self.linear.outputs());
        if inputs != self.linear.inputs() || self.norm.is_some_and(|norm| norm.width() != inputs) {
            bail!("rows have {inputs} values, but the layer or its norm takes {}", self.linear.inputs());
        }
        let beside = beside.map(|values| Rows::new(values, rows, outputs, outputs));
        let (factor, residual) = if self.multiplies { (beside, None) } else { (None, beside) };
        let finish =
            Finish { bias: self.linear.bias.as_deref(), activation: self.activation, factor, residual };
        let from = Input::new(Rows::new(values, rows, inputs, inputs), self.norm);
        let threads = threads_for(rows.max(OPERATIONS_OF_A_READ) * inputs * outputs);
        let cores = Cores { processor: self.linear.processor, threads };
        let weight = &self.linear.weight;
        Ok(filled(&self.place, rows, outputs, |to| weight.multiply(cores, from, to, finish)))
    }
}

impl CustomOp1 for Product<'_> {
    fn name(&self) -> &'static str {
        "packed linear"
    }

    fn cpu_fwd(&self, rows: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.run(values_of(rows, layout)?, layout.shape(), None)
    }
}

impl CustomOp2 for Product<'_> {
    fn name(&self) -> &'static str {
        "packed linear and second operand"
    }

    fn cpu_fwd(
        &self,
        rows: &CpuStorage,
        layout: &Layout,
        beside: &CpuStorage,
        of_beside: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        if of_beside.shape().dims2()? != (layout.shape().dims2()?.0, self.linear.outputs()) {
            bail!("the second operand and the result differ in shape");
        }
        self.run(values_of(rows, layout)?, layout.shape(), Some(values_of(beside, of_beside)?))
    }
}

/// Multi-head self-attention within each sequence.
pub(crate) struct Attention<'a> {
    pub(crate) processor: Processor,
    /// Tokens of a sequence.
    pub(crate) tokens: usize,
    /// Heads of the queries.
    pub(crate) heads: usize,
    /// Heads of the keys and of the values, a divisor of `heads`.
    pub(crate) kv_heads: usize,
    pub(crate) mask: AttentionMask<'a>,
    pub(crate) angles: Option<&'a RotaryAngles>,
    /// Multiplies the queries; 1 if they are scaled already.
    pub(crate) scale: f32,
    /// Whether queries, keys, softmax weights and values are rounded to bf16 before they are multiplied.
    pub(crate) is_bf16: bool,
}

impl Attention<'_> {
    /// The attention output, (batch * tokens, heads * size). `packed` is (batch * tokens, (heads + 2 * kv_heads) * size),
    /// contiguous f32 on the CPU: queries, keys and values of all heads.
    ///
    /// # Errors
    /// Other types, shapes or devices.
    pub(crate) fn of(&self, packed: &Tensor) -> Result<Tensor> {
        let op = AttentionOf { attention: self, place: Cell::default() };
        let result = packed.apply_op1_no_bwd(&op)?;
        op.place.get().of(&result)
    }
}

struct AttentionOf<'a> {
    attention: &'a Attention<'a>,
    /// Of the result, once there is one.
    place: Cell<Place>,
}

impl CustomOp1 for AttentionOf<'_> {
    fn name(&self) -> &'static str {
        "packed attention"
    }

    fn cpu_fwd(&self, packed: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, across) = layout.shape().dims2()?;
        let Attention { processor, tokens, heads, kv_heads, mask, angles, scale, is_bf16 } = *self.attention;
        let parts = heads + 2 * kv_heads;
        if tokens == 0 || rows % tokens != 0 || across == 0 || across % parts != 0 {
            bail!("{rows} rows of {across} values are not {heads} heads of sequences of {tokens} tokens");
        }
        if kv_heads == 0 || heads % kv_heads != 0 {
            bail!("{heads} heads of queries do not share {kv_heads} of keys");
        }
        let (batch, size) = (rows / tokens, across / parts);
        if matches!(mask, AttentionMask::Within(lengths) if lengths.len() != batch) {
            bail!("the attention mask is not for {batch} sequences");
        }
        if angles.is_some_and(|angles| !angles.fit(batch, tokens, size)) {
            bail!("the rotary angles do not fit {tokens} tokens and heads of {size} values");
        }
        let shape = Heads { batch, tokens, heads, kv_heads, size, mask, angles, scale, is_bf16 };
        // For each pair of tokens: a query by a key, and a softmax weight by a value.
        let threads = threads_for(2 * rows * tokens * heads * size);
        let (packed, cores) = (values_of(packed, layout)?, Cores { processor, threads });
        Ok(filled(&self.place, rows, heads * size, |target| attend(cores, packed, target, shape)))
    }
}

/// Rows that one thread normalises at a time.
const ROWS_AT_ONCE: usize = 16;

impl Norm {
    /// A layer norm from `weight` and `bias`, each as long as a row.
    ///
    /// # Errors
    /// Other types or different shapes.
    pub(crate) fn new(weight: &Tensor, bias: &Tensor, epsilon: f32) -> Result<Self> {
        let (weight, bias): (Vec<f32>, _) = (weight.to_vec1()?, bias.to_vec1()?);
        if weight.is_empty() || weight.len() != bias.len() {
            bail!("the layer norm's weight and bias differ in length or are empty");
        }
        Ok(Norm { weight, bias, epsilon })
    }

    fn width(&self) -> usize {
        self.weight.len()
    }

    /// Normalises each row of `x` (any shape, contiguous f32 on the CPU) to mean 0 and variance 1, then applies weight
    /// and bias.
    ///
    /// # Errors
    /// Other types, shapes or devices.
    pub(crate) fn forward(&self, processor: Processor, x: &Tensor) -> Result<Tensor> {
        let op = Normalisation { processor, norm: self, place: Cell::default() };
        let result = x.apply_op1_no_bwd(&op)?;
        op.place.get().of(&result)?.reshape(x.shape())
    }
}

struct Normalisation<'a> {
    processor: Processor,
    norm: &'a Norm,
    /// Of the result, once there is one.
    place: Cell<Place>,
}

impl CustomOp1 for Normalisation<'_> {
    fn name(&self) -> &'static str {
        "layer norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, width) = (values_of(x, layout)?, self.norm.width());
        if layout.shape().dims().last() != Some(&width) {
            bail!("the rows and the layer norm differ in width");
        }
        let count = x.len() / width;
        let rows = Rows::new(x, count, width, width);
        let pieces = blocking::even(count, count.div_ceil(ROWS_AT_ONCE));
        let Normalisation { processor, norm, ref place } = *self;
        Ok(filled(place, count, width, |target| {
            let some = |(first, last)| normalise(processor, rows, norm, target, first..last);
            match threads_for(x.len() * OPERATIONS_OF_A_VALUE) {
                1 => some((0, count)),
                _ => pieces.into_par_iter().for_each(some),
            }
        }))
    }
}

/// The values of a contiguous f32 tensor on the CPU.
pub(crate) fn values_of<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((from, to)) = layout.contiguous_offsets() else { bail!("the tensor is not contiguous") };
    Ok(&storage.as_slice::<f32>()?[from..to])
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::super::sharing::FEWEST_SHARED;
    use super::*;

    fn tensor(rows: usize, columns: usize, salt: usize) -> Tensor {
        let value = |at: usize| ((at * 7919 + salt * 104_729) % 2003) as f32 / 1001.0 - 1.0;
        let values: Vec<f32> = (0..rows * columns).map(value).collect();
        Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap()
    }

    /// Compares with candle's own operations, within f32 rounding.
    #[track_caller]
    fn check(got: Result<Tensor>, expected: &Tensor) {
        let got = got.unwrap();
        assert_eq!(got.dims(), expected.dims());
        let values = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (at, (got, expected)) in values(&got).iter().zip(values(expected)).enumerate() {
            assert!((got - expected).abs() < 1e-4, "{at}: {got} instead of {expected}");
        }
    }

    #[test]
    fn a_packed_layer_is_the_layer() {
        let (x, weight, bias) = (tensor(37, 100, 1), tensor(100, 70, 2), tensor(1, 70, 3));
        let bias = bias.flatten_all().unwrap();
        let residual = tensor(37, 70, 4);
        let plain = x.matmul(&weight).unwrap().broadcast_add(&bias).unwrap();
        let Some(processor) = Processor::detect() else { return };
        let layer = PackedLinear::of_floats(processor, &weight, Some(&bias)).unwrap();
        check(layer.forward(&x, None, None, Beside::Nothing), &plain);
        check(
            layer.forward(&x, None, Some(Activation::Relu), Beside::Added(&residual)),
            &(plain.relu().unwrap() + &residual).unwrap(),
        );
        check(layer.forward(&x, None, None, Beside::Multiplied(&residual)), &(&plain * &residual).unwrap());
        // Rows of a larger tensor.
        let part = x.narrow(0, 5, 20).unwrap();
        check(layer.forward(&part, None, None, Beside::Nothing), &plain.narrow(0, 5, 20).unwrap());
        for wrong in [x.t().unwrap(), tensor(37, 99, 1), x.to_dtype(candle_core::DType::F64).unwrap()] {
            assert!(layer.forward(&wrong, None, None, Beside::Nothing).is_err());
        }
        assert!(layer.forward(&x, None, None, Beside::Added(&x)).is_err());
    }

    #[test]
    fn a_layer_norm_is_candles_alone_and_before_a_packed_layer() {
        let (x, weight, bias) = (tensor(40, 65, 1), tensor(1, 65, 2), tensor(1, 65, 3));
        let (weight, bias) = (weight.flatten_all().unwrap(), bias.flatten_all().unwrap());
        let expected = candle_nn::ops::layer_norm(&x, &weight, &bias, 1e-5).unwrap();
        let norm = Norm::new(&weight, &bias, 1e-5).unwrap();
        let matrix = tensor(65, 70, 5);
        let nine = tensor(1, 9, 6).flatten_all().unwrap();
        let narrow = Norm::new(&nine, &nine, 1e-5).unwrap();
        let Some(best) = Processor::detect() else { return };
        for processor in [best, Processor::Avx2] {
            check(norm.forward(processor, &x), &expected);
            let cube = x.reshape((8, 5, 65)).unwrap();
            check(norm.forward(processor, &cube), &expected.reshape((8, 5, 65)).unwrap());
            assert!(norm.forward(processor, &tensor(40, 64, 1)).is_err());
            let layer = PackedLinear::of_floats(processor, &matrix, None).unwrap();
            check(layer.forward(&x, Some(&norm), None, Beside::Nothing), &expected.matmul(&matrix).unwrap());
            assert!(layer.forward(&x, Some(&narrow), None, Beside::Nothing).is_err());
            let apart = norm.forward(processor, &x).unwrap();
            for rounded in [PackedLinear::of_bytes, PackedLinear::of_bf16] {
                let layer = rounded(processor, &matrix, None).unwrap();
                let apart = layer.forward(&apart, None, None, Beside::Nothing).unwrap();
                check(layer.forward(&x, Some(&norm), None, Beside::Nothing), &apart);
            }
        }
        assert!(Norm::new(&weight, &matrix.get(0).unwrap(), 1e-5).is_err());
    }

    /// Each operation is just large enough to be shared.
    #[test]
    fn threads_share_large_operations() {
        let Some(processor) = Processor::detect() else { return };
        let (x, weight) = (tensor(164, 160, 1), tensor(160, 160, 2));
        const { assert!(164 * 160 * 160 >= FEWEST_SHARED) };
        let layer = PackedLinear::of_floats(processor, &weight, None).unwrap();
        check(layer.forward(&x, None, None, Beside::Nothing), &x.matmul(&weight).unwrap());

        let (x, ones) =
            (tensor(4096, 64, 1), Tensor::ones(64, candle_core::DType::F32, &Device::Cpu).unwrap());
        const { assert!(4096 * 64 * OPERATIONS_OF_A_VALUE >= FEWEST_SHARED) };
        let norm = Norm::new(&ones, &ones, 1e-5).unwrap();
        check(norm.forward(processor, &x), &candle_nn::ops::layer_norm(&x, &ones, &ones, 1e-5).unwrap());

        let (tokens, heads, size) = (64, 4, 16);
        let attention = Attention {
            processor,
            tokens,
            heads,
            kv_heads: heads,
            mask: AttentionMask::All,
            angles: None,
            scale: 0.25,
            is_bf16: false,
        };
        let packed = tensor(8 * tokens, 3 * heads * size, 1);
        assert!(2 * 8 * tokens * tokens * heads * size >= FEWEST_SHARED);
        let alone = |sequence| attention.of(&packed.narrow(0, sequence * tokens, tokens)?);
        let alone: Vec<Tensor> = (0..8).map(alone).collect::<Result<_>>().unwrap();
        check(attention.of(&packed), &Tensor::cat(&alone, 0).unwrap());
    }
}
