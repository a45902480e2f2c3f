//! The input rows of a product: plain, or through a layer norm.

use std::ops::Range;

use super::Processor;
use super::elementwise::Moments;
use super::lanes::{Lanes, Work};
use super::matrix::{Rows, Target};

/// The parameters of a layer norm: weight, bias, and the epsilon added to variances.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
    pub(super) epsilon: f32,
}

/// Input rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Input<'a> {
    /// Unchanged.
    Plain(Rows<'a>),
    /// Normalised to mean 0 and variance 1, then multiplied by the norm's weight and shifted by its bias.
    Normalised(Rows<'a>, &'a Norm),
}

impl<'a> Input<'a> {
    pub(super) fn new(rows: Rows<'a>, norm: Option<&'a Norm>) -> Self {
        norm.map_or(Input::Plain(rows), |norm| Input::Normalised(rows, norm))
    }

    /// The rows before the norm.
    pub(super) fn rows(&self) -> &Rows<'a> {
        match self {
            Input::Plain(rows) | Input::Normalised(rows, _) => rows,
        }
    }

    /// Computes the moments that [`Input::read`] needs, for the rows `which`.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    #[inline(always)]
    pub(super) unsafe fn measure<L: Lanes>(&self, which: Range<usize>, moments: &mut [Moments]) {
        if let Input::Normalised(rows, norm) = self {
            for (row, moments) in which.zip(moments) {
                // SAFETY: as the caller promises.
                *moments = unsafe { Moments::of::<L>(rows.row(row), norm.epsilon) };
            }
        }
    }

    /// Copies the values `columns` of a row, normalised if the input has a norm.
    ///
    /// # Safety
    /// The processor has the instructions of `L`.
    ///
    /// # Panics
    /// If `into` has another length.
    #[inline(always)]
    pub(super) unsafe fn read<L: Lanes>(
        &self,
        row: usize,
        columns: Range<usize>,
        moments: Moments,
        into: &mut [f32],
    ) {
        match self {
            Input::Plain(rows) => into.copy_from_slice(&rows.row(row)[columns]),
            Input::Normalised(rows, norm) => {
                assert_eq!(into.len(), columns.len());
                let (weight, bias) = (&norm.weight[columns.clone()], &norm.bias[columns.clone()]);
                // SAFETY: as the caller promises; the assertion above checks the room.
                unsafe { moments.apply::<L>(&rows.row(row)[columns], weight, bias, into.as_mut_ptr()) };
            }
        }
    }
}

/// Normalises the rows `which` into the same rows of `target`.
///
/// # Panics
/// If the shapes do not fit.
pub(super) fn normalise(
    processor: Processor,
    rows: Rows<'_>,
    norm: &Norm,
    target: Target,
    which: Range<usize>,
) {
    assert_eq!((rows.rows, rows.columns), (target.rows, target.columns));
    processor.run(Normalisation { rows, norm, target, which });
}

struct Normalisation<'a> {
    rows: Rows<'a>,
    norm: &'a Norm,
    target: Target,
    which: Range<usize>,
}

impl Work for Normalisation<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let Normalisation { rows, norm, target, which } = self;
        for row in which {
            let values = rows.row(row);
            // SAFETY: as the caller promises; the target has the same number of columns.
            unsafe {
                let moments = Moments::of::<L>(values, norm.epsilon);
                moments.apply::<L>(values, &norm.weight, &norm.bias, target.at(row, 0));
            }
        }
    }
}
