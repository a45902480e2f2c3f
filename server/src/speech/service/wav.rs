//! WAV files of mono samples, which every service reads.

use reprise_encoders::transcriber::SAMPLE_RATE;

/// Bytes before the samples.
const HEADER_BYTES: u32 = 44;
/// Bytes of a sample.
const SAMPLE_BYTES: u32 = 2;

/// A WAV file of 16-bit samples. Values beyond -1 to 1 are cut.
pub(super) fn of(samples: &[f32]) -> Vec<u8> {
    let bytes = (samples.len() as u32).saturating_mul(SAMPLE_BYTES);
    let rate = SAMPLE_RATE as u32;
    let mut file = Vec::with_capacity((HEADER_BYTES + bytes) as usize);
    file.extend(b"RIFF");
    file.extend((HEADER_BYTES - 8 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    // PCM, one channel.
    file.extend(1_u16.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * SAMPLE_BYTES).to_le_bytes());
    file.extend((SAMPLE_BYTES as u16).to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    let value = |sample: &f32| (sample.clamp(-1.0, 1.0) * f32::from(i16::MAX)).round() as i16;
    file.extend(samples.iter().flat_map(|sample| value(sample).to_le_bytes()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_its_size_and_holds_its_samples() {
        let file = of(&[0.0, 1.0, -1.0, 7.0, f32::NAN]);
        assert_eq!(file.len(), 54);
        assert_eq!((&file[..4], &file[8..16], &file[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!(u32::from_le_bytes([file[4], file[5], file[6], file[7]]), 46);
        assert_eq!(u32::from_le_bytes([file[24], file[25], file[26], file[27]]), 16_000);
        let values: Vec<i16> =
            file[44..].chunks_exact(2).map(|it| i16::from_le_bytes([it[0], it[1]])).collect();
        assert_eq!(values, [0, 32_767, -32_767, 32_767, 0]);
    }
}
