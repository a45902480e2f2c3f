//! A pool of encoders of one space.

use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::{Permit, Pool, PoolError, Settings, Worker};
use crate::{EncodeError, Encoder, Input, Space};

impl From<PoolError> for EncodeError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Overloaded { capacity } => EncodeError::Overloaded { capacity },
            PoolError::Closed => EncodeError::Closed,
            PoolError::Stuck { seconds } => EncodeError::Stuck { seconds },
            PoolError::Failed(why) => EncodeError::Failed(why),
        }
    }
}

/// An encoder on its thread.
pub struct EncoderWorker(Box<dyn Encoder>);

impl Clone for EncoderWorker {
    fn clone(&self) -> Self {
        EncoderWorker(self.0.share())
    }
}

impl Worker for EncoderWorker {
    type Input = Input;
    type Output = Vec<f32>;
    type Error = EncodeError;

    fn name(&self) -> String {
        self.0.space().name.clone()
    }

    fn cost(&self, input: &Input) -> usize {
        self.0.cost(input)
    }

    fn run(&mut self, batch: &[Input], pause: &dyn Fn()) -> Result<Vec<Vec<f32>>, EncodeError> {
        self.0.encode_pausing(batch, pause)
    }

    fn check(&self, input: &Input, vector: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
        let values = values_for(self.0.space(), input);
        if vector.len() != values {
            let why = format!("a vector of {} values instead of {values}", vector.len());
            return Err(EncodeError::Failed(why.into()));
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(EncodeError::Failed("a vector with values that are not finite".into()));
        }
        if vector.iter().all(|value| *value == 0.0) {
            return Err(EncodeError::BadInput("its vector has norm 0".into()));
        }
        Ok(vector)
    }

    fn is_inputs_fault(error: &EncodeError) -> bool {
        matches!(error, EncodeError::BadInput(_) | EncodeError::Unsupported { .. })
    }
}

/// The number of values of an input's vector or feature.
fn values_for(space: &Space, input: &Input) -> usize {
    match (input, space.frame_stage) {
        (Input::Frame(_), Some(width)) => width,
        _ => space.dim,
    }
}

impl Pool {
    /// Starts one thread per encoder; all encoders must have the same space.
    ///
    /// Without an encoder, or if no thread starts, the pool is closed at once.
    pub fn of_encoders(encoders: Vec<Box<dyn Encoder>>, settings: Settings) -> Pool {
        Pool::start(encoders.into_iter().map(EncoderWorker).collect(), settings)
    }

    /// The span of one call. `batch_size` is that of the last batch with an input of the call.
    fn span(&self, inputs: usize) -> Span {
        let model = self.name();
        tracing::debug_span!("encode", model, inputs, batch_size = Empty)
    }

    /// Encodes the inputs of one admitted request ahead of bulk work. Returns raw vectors in order.
    ///
    /// # Errors
    /// As [`Pool::run`].
    pub async fn encode(&self, permit: Permit, inputs: Vec<Input>) -> Result<Vec<Vec<f32>>, EncodeError> {
        let span = self.span(inputs.len());
        self.run(permit, inputs).instrument(span).await
    }

    /// Encodes bulk inputs (ingest), in general while no request waits. Returns raw vectors in order.
    ///
    /// # Errors
    /// As [`Pool::run_bulk`].
    pub async fn encode_bulk(&self, inputs: Vec<Input>) -> Result<Vec<Vec<f32>>, EncodeError> {
        let span = self.span(inputs.len());
        self.run_bulk(inputs).instrument(span).await
    }
}
