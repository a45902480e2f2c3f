//! Prints what is measured of each stretch of a film that may be a gradual transition, to fit the judge of them: when it begins,
//! has its middle and ends in milliseconds, and its signs, each an f32 in little endian. tests/bench/transition_fit.py runs it:
//! `cargo run --release -p reprise-encoders --example transition_stretches FILM`

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use reprise_encoders::video::segment::Meter;
use reprise_encoders::video::{Event, Limits, Request, decode, probe};

/// As `reprise segment` and ingest look at films.
const WIDTH: u32 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let film = PathBuf::from(std::env::args_os().nth(1).ok_or("name a film")?);
    let limits = Limits::default();
    let probed = probe(&film, &limits)?;
    let request = Request { detect_width: Some(WIDTH), outputs: Vec::new() };
    let mut meter = Meter::new(false);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for event in decode(&film, &probed, request, &limits)? {
        let Event::Detect(frame) = event? else { continue };
        meter.measure(&frame);
        for stretch in meter.stretches() {
            let times = [stretch.began_ms, stretch.middle_ms, stretch.ended_ms];
            for value in times.map(|it| it as f32).into_iter().chain(stretch.signs) {
                out.write_all(&value.to_le_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}
