//! Measures the fastest batch size of a device.

use crate::EncodeError;

/// The share of time per input that doubling the batch must save. With less saved, the smaller batch is better, because
/// the next inputs wait less.
const SAVED: f64 = 0.05;

/// The largest of 1, 2, 4 … `most` inputs up to which the time per input falls. `seconds` encodes a batch and returns
/// its duration. A batch that fails, for example for lack of memory, is too large.
///
/// # Errors
/// The error of a single input.
pub(super) fn best_batch(
    most: usize,
    mut seconds: impl FnMut(usize) -> Result<f64, EncodeError>,
) -> Result<usize, EncodeError> {
    let (mut inputs, mut each) = (1, seconds(1)?);
    while 2 * inputs <= most {
        let doubled = match seconds(2 * inputs) {
            Ok(took) => took / (2 * inputs) as f64,
            Err(error) => {
                tracing::debug!(%error, inputs = 2 * inputs, "too large a batch");
                break;
            }
        };
        if doubled > (1.0 - SAVED) * each {
            break;
        }
        (inputs, each) = (2 * inputs, doubled);
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes `start` seconds per batch plus one per `lanes` inputs, and fails above `room` inputs.
    #[track_caller]
    fn check(start: f64, lanes: usize, room: usize, most: usize, expected: Option<usize>) {
        let mut tried = Vec::new();
        let seconds = |inputs: usize| {
            tried.push(inputs);
            match inputs <= room {
                true => Ok(start + inputs.div_ceil(lanes) as f64),
                false => Err(EncodeError::Failed("out of memory".into())),
            }
        };
        assert_eq!(best_batch(most, seconds).ok(), expected);
        assert!(tried.iter().all(|inputs| *inputs <= most.max(1)), "{tried:?}");
    }

    #[test]
    fn a_batch_grows_while_that_saves_time() {
        check(0.0, 1, usize::MAX, 256, Some(1));
        check(0.0, 16, usize::MAX, 256, Some(16));
        check(1.0, 8, usize::MAX, 256, Some(128));
        check(0.0, 1024, usize::MAX, 256, Some(256));
        check(0.0, 1024, usize::MAX, 200, Some(128));
        check(0.0, 1024, usize::MAX, 0, Some(1));
    }

    #[test]
    fn a_batch_that_does_not_fit_is_halved() {
        check(0.0, 1024, 100, 256, Some(64));
        check(0.0, 1024, 1, 256, Some(1));
        check(0.0, 1024, 0, 256, None);
    }
}
