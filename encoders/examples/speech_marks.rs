//! Reads 16 kHz sound (f32, little endian) from the standard input and prints how surely each frame of 32 ms holds speech, by
//! Silero's weights. The last line has the seconds that it took. `cargo run --release -p reprise-encoders --example
//! speech_marks WEIGHTS`

use std::error::Error;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use reprise_encoders::speech::{FRAME, Silero, SpeechDetector};

fn main() -> Result<(), Box<dyn Error>> {
    let weights = PathBuf::from(std::env::args_os().nth(1).ok_or("name the file with the weights")?);
    let mut silero = Silero::open(&weights)?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    let (samples, _) = bytes.as_chunks::<4>();
    let mut samples: Vec<f32> = samples.iter().map(|it| f32::from_le_bytes(*it)).collect();
    samples.resize(samples.len().next_multiple_of(FRAME), 0.0);
    let began = Instant::now();
    let marks = silero.speech(&samples)?;
    let seconds = began.elapsed().as_secs_f64();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for mark in marks {
        writeln!(out, "{mark}")?;
    }
    writeln!(out, "{seconds}")?;
    Ok(out.flush()?)
}
