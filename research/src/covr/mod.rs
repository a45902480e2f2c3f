//! Makes data like TF-CoVR's from annotated footage (arXiv 2506.05274, section 3). A grammar splits labels into
//! parts. A modification text names the changed parts of two labels. Clips of both labels form triplets with this
//! text. Independent of models: callers pass a function from texts to vectors.

pub mod check;
mod command;
pub mod feedback;
pub mod footage;
pub mod grammar;
pub mod label;
pub mod modification;
mod number;
pub mod pairs;
#[cfg(test)]
mod sets;
pub mod triplets;
pub mod writer;

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use reprise_index::UnitVector;

pub use command::{CovrArgs, run};

use crate::synth::draw::{Draw, Purpose};
use footage::Stretch;
use grammar::Grammar;
use label::Label;
use pairs::{LabelPair, LabelVectors};
use reprise_encoders::Cause;
use triplets::{Asked, OrderedPair, ordered, with_shared_texts};
use writer::Writer;

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
    /// A grammar cannot be used; the caller's fault.
    #[error("the grammar {name}: {reason}")]
    Grammar {
        /// The file or set.
        name: String,
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
    /// The endpoint is unreachable or refuses the request; the endpoint's fault.
    #[error("the language model wrote no modification: {0}")]
    Endpoint(#[source] Cause),
}

/// The distinct labels, in order. The first grammar that covers a label parses it.
pub fn labels(footage: &[Stretch], grammars: &[Grammar]) -> Vec<Label> {
    let texts: BTreeSet<&str> = footage.iter().map(|it| it.label.trim()).collect();
    texts.into_iter().map(|it| Label::new(it, grammars)).collect()
}

/// The vectors of the wordings of labels and of their actions. One entry per label.
///
/// # Errors
/// `embed` fails for a text.
pub fn embedded(
    labels: &[Label],
    mut embed: impl FnMut(&str) -> Result<UnitVector, Cause>,
) -> Result<Vec<LabelVectors>, CovrError> {
    let mut of = |label: &Label, text: &str| {
        let failed = |reason| CovrError::Embedding { label: label.text.clone(), reason };
        embed(text).map_err(failed)
    };
    let embedded = |it: &Label| Ok(LabelVectors { text: of(it, &it.said())?, action: of(it, &it.action())? });
    labels.iter().map(embedded).collect()
}

/// Sentences per pair; several vary the wording.
const SENTENCES_OF_PAIR: usize = 4;

/// All pairs in both orders, with sentences about the changed parts.
pub fn with_sentences(labels: &[Label], pairs: &[LabelPair], seed: u64) -> Vec<OrderedPair> {
    let mut draw = Draw::new(seed, 0, Purpose::Description, 0);
    let pair = |Asked { query, targets, difference }| {
        let texts = (0..SENTENCES_OF_PAIR).map(|_| difference.drawn_sentence(&mut draw)).collect();
        OrderedPair { query, targets, texts }
    };
    ordered(labels, pairs).into_iter().map(pair).collect()
}

/// Concurrent requests to the endpoint.
const REQUESTS: usize = 4;

/// Pairs with texts of a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The pairs, with one text each.
    pub pairs: Vec<OrderedPair>,
    /// Number of texts that the check refused. A built-in sentence replaces each.
    pub refused: usize,
}

/// Asks a language model for one text for each pair, in both orders. Calls `done` after each text.
///
/// # Errors
/// The endpoint fails.
pub async fn with_writer(
    labels: &[Label],
    pairs: &[LabelPair],
    writer: &Writer,
    done: &(dyn Fn() + Sync),
) -> Result<Written, CovrError> {
    let write = |Asked { query, targets, difference }| async move {
        let text = match targets.first() {
            Some(target) => writer.write(&labels[query], &labels[*target]).await?,
            None => None,
        };
        done();
        let refused = text.is_none();
        let texts = vec![text.unwrap_or_else(|| difference.sentence())];
        Ok::<_, CovrError>((OrderedPair { query, targets, texts }, refused))
    };
    let asked = stream::iter(ordered(labels, pairs));
    let written: Vec<(OrderedPair, bool)> = asked.map(write).buffered(REQUESTS).try_collect().await?;
    let refused = written.iter().filter(|(_, refused)| *refused).count();
    let pairs = written.into_iter().map(|(pair, _)| pair).collect();
    Ok(Written { pairs: with_shared_texts(labels, pairs), refused })
}
