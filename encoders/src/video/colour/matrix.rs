//! The matrices by which videos mix red, green and blue into luma and chroma.

use serde::{Deserialize, Serialize};

/// The weights of red and blue in a video's luma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matrix {
    /// ITU-R BT.601, also for videos that name no matrix.
    Bt601,
    /// ITU-R BT.709.
    Bt709,
    /// BT.2020, with or without constant luminance.
    Bt2020,
    /// FCC, Title 47.
    Fcc,
    /// SMPTE 240M.
    Smpte240m,
}

impl Matrix {
    /// The matrix for ffprobe's `name`, chosen as in ffmpeg's scaler.
    pub(in crate::video) fn named(name: &str) -> Matrix {
        match name {
            "bt709" => Matrix::Bt709,
            "bt2020nc" | "bt2020c" => Matrix::Bt2020,
            "fcc" => Matrix::Fcc,
            "smpte240m" => Matrix::Smpte240m,
            _ => Matrix::Bt601,
        }
    }

    /// The weights of red and blue; green has the rest.
    fn weights(self) -> (f64, f64) {
        match self {
            Matrix::Bt601 => (0.299, 0.114),
            Matrix::Bt709 => (0.2126, 0.0722),
            Matrix::Bt2020 => (0.2627, 0.0593),
            Matrix::Fcc => (0.30, 0.11),
            Matrix::Smpte240m => (0.212, 0.087),
        }
    }

    /// The change of each colour per step of chroma, which has 224 steps for the whole range.
    pub(super) fn slopes(self) -> Slopes {
        let (red, blue) = self.weights();
        let green = 1.0 - red - blue;
        let slope = |by: f64| (by * 2.0 * 255.0 / 224.0 * 65_536.0).round() as i32;
        Slopes {
            red_by_red: slope(1.0 - red),
            green_by_blue: slope(-blue * (1.0 - blue) / green),
            green_by_red: slope(-red * (1.0 - red) / green),
            blue_by_blue: slope(1.0 - blue),
        }
    }
}

/// One step of luma (of 219) on the scale of 8-bit colours; fixed point with 16 fractional bits.
pub(super) const LUMA: i32 = (255 << 16) / 219;

/// Changes of 8-bit colours per step of chroma; fixed point with 16 fractional bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slopes {
    pub(super) red_by_red: i32,
    pub(super) green_by_blue: i32,
    pub(super) green_by_red: i32,
    pub(super) blue_by_blue: i32,
}
