//! TF-CoVR's data from annotated footage (arXiv 2506.05274, section 3). A text encoder pairs similar labels. A
//! modification text leads from one label to the other, and the clips of both form triplets. Independent of models:
//! callers pass a function from texts to vectors.

mod command;
pub mod footage;
pub mod label;
pub mod modification;
pub mod pairs;
pub mod triplets;

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use reprise_index::UnitVector;

pub use command::{CovrArgs, run};

use crate::synth::draw::{Draw, Purpose};
use footage::Stretch;
use label::Label;
use modification::{Writer, from_template};
use pairs::{EmbeddedLabel, LabelPair};
use reprise_encoders::Cause;
use triplets::{OrderedPair, ordered};

/// Why no triplets were made.
#[derive(Debug, thiserror::Error)]
pub enum CovrError {
    /// The labels cannot be used; the caller's fault.
    #[error("{}: {reason}", path.display())]
    Labels {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        #[source]
        reason: Cause,
    },
    /// A file cannot be read or written; the disk's fault.
    #[error("{}: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A label got no vector; the model's fault.
    #[error("the label {label:?} has no vector: {reason}")]
    Embedding {
        /// The label.
        label: String,
        /// The model's reason.
        #[source]
        reason: Cause,
    },
    /// The endpoint is unreachable, refuses the request, or writes no usable text; the endpoint's fault.
    #[error("the language model wrote no modification: {0}")]
    Endpoint(#[source] Cause),
}

/// The distinct labels, in order.
pub fn labels(footage: &[Stretch]) -> Vec<Label> {
    let texts: BTreeSet<&str> = footage.iter().map(|it| it.label.trim()).collect();
    texts.into_iter().map(Label::new).collect()
}

/// The labels with the vectors of their texts and actions.
///
/// # Errors
/// `embed` fails for a text.
pub fn embedded(
    labels: &[Label],
    mut embed: impl FnMut(&str) -> Result<UnitVector, Cause>,
) -> Result<Vec<EmbeddedLabel>, CovrError> {
    let mut of = |label: &Label, text: &str| {
        let failed = |reason| CovrError::Embedding { label: label.text.clone(), reason };
        embed(text).map_err(failed)
    };
    let embedded = |label: &Label| {
        // A label without an action is compared as a whole.
        let action = if label.action.is_empty() { &label.text } else { &label.action };
        let (text, action) = (of(label, &label.text)?, of(label, action)?);
        Ok(EmbeddedLabel { label: label.clone(), text, action })
    };
    labels.iter().map(embedded).collect()
}

/// Template texts per pair; several vary the wording.
const TEMPLATES_OF_PAIR: usize = 4;

/// Both orders of all pairs, with texts from templates.
pub fn with_templates(labels: &[Label], pairs: &[LabelPair], seed: u64) -> Vec<OrderedPair> {
    let mut draw = Draw::new(seed, 0, Purpose::Description, 0);
    let pair = |(query, target, pair): (usize, usize, &LabelPair)| {
        let text = |_| from_template(&labels[query], &labels[target], pair.change, &mut draw);
        OrderedPair { query, target, texts: (0..TEMPLATES_OF_PAIR).map(text).collect() }
    };
    ordered(pairs).map(pair).collect()
}

/// Concurrent requests to the endpoint.
const REQUESTS: usize = 4;

/// Both orders of all pairs, with one text of a language model each. Calls `done` after each text.
///
/// # Errors
/// The first pair without a text.
pub async fn with_writer(
    labels: &[Label],
    pairs: &[LabelPair],
    writer: &Writer,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<OrderedPair>, CovrError> {
    let asked: Vec<(usize, usize)> = ordered(pairs).map(|(query, target, _)| (query, target)).collect();
    let write = |(query, target): (usize, usize)| async move {
        let text = writer.write(&labels[query], &labels[target]).await?;
        done();
        Ok(OrderedPair { query, target, texts: vec![text] })
    };
    stream::iter(asked).map(write).buffered(REQUESTS).try_collect().await
}
