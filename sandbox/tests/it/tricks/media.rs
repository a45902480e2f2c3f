//! Secrets in the forms that ffmpeg reads, and hostile inputs that are no text.

use std::fs;

use crate::scene::{Scene, make};

/// 16 bytes, so that a row of pixels or a frame of sound holds it whole.
pub(super) const SECRET: &[u8] = b"TOP-SECRET-PIXEL";

pub(super) fn put_secrets(scene: &Scene) {
    fs::write(scene.path("secret.txt"), SECRET.repeat(500)).unwrap();
    fs::write(scene.path("secret.wav"), wave(&SECRET.repeat(5000))).unwrap();
    fs::write(scene.path("secret1.pgm"), [b"P5\n64 64\n255\n".to_vec(), SECRET.repeat(256)].concat())
        .unwrap();
    fs::write(scene.path("secret.srt"), "1\n00:00:00,000 --> 00:00:10,000\nhidden\n").unwrap();
    fs::write(scene.path("secret.cube"), cube()).unwrap();
    fs::write(scene.path("secret.graph"), format!("movie={}", scene.text("secret1.pgm"))).unwrap();
    fs::write(scene.path("secret.list"), scene.text("secret.txt")).unwrap();
}

/// Sound of 16 bits, one channel, 8 kHz.
fn wave(samples: &[u8]) -> Vec<u8> {
    let length = u32::try_from(samples.len()).unwrap();
    let mut bytes = [b"RIFF", &(36 + length).to_le_bytes()[..], b"WAVEfmt ", &16_u32.to_le_bytes()].concat();
    bytes.extend([1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0]);
    bytes.extend([b"data", &length.to_le_bytes()[..], samples].concat());
    bytes
}

/// A table of colours.
fn cube() -> String {
    let corners = (0..8).map(|corner| format!("{} {} {}\n", corner & 1, corner >> 1 & 1, corner >> 2));
    format!("LUT_3D_SIZE 2\n{}", corners.collect::<String>())
}

/// A file that holds another one and says where it belongs, as Matroska may.
pub(super) fn with_attachment(scene: &Scene) -> Vec<u8> {
    let tags = "-metadata:s:t mimetype=text/plain -metadata:s:t filename=@/stolen";
    make(scene, &format!("-f lavfi -i color=s=64x64:d=1:r=1 -attach @/input {tags} -f matroska @/made"));
    fs::read(scene.path("made")).unwrap()
}

/// A film of QuickTime whose sound lies in another file, by an alias of the Macintosh with a full path.
pub(super) fn with_reference(scene: &Scene) -> Vec<u8> {
    let path = scene.text("secret.txt");
    let mut alias = vec![0; 10 + 28 + 12 + 64 + 16 + 4 + 16];
    alias.extend([0, 2]);
    alias.extend(u16::try_from(path.len()).unwrap().to_be_bytes());
    alias.extend(path.as_bytes());
    alias.extend(vec![0; path.len() % 2]);
    alias.extend([255, 255, 0, 0]);
    let references = [numbers(&[0, 1]), atom(b"alis", &[numbers(&[0]), alias])].concat();
    let sound = [numbers(&[0]), numbers(&[1, 0, 0]), numbers(&[0x0001_0010, 0, 8000 << 16])].concat();
    let tables = [
        atom(b"stsd", &[numbers(&[0, 1]), atom(b"sowt", &[sound])]),
        atom(b"stts", &[numbers(&[0, 1, 4000, 1])]),
        atom(b"stsc", &[numbers(&[0, 1, 1, 4000, 1])]),
        atom(b"stsz", &[numbers(&[0, 2, 4000])]),
        atom(b"stco", &[numbers(&[0, 1, 0])]),
    ];
    let media = atom(
        b"mdia",
        &[
            atom(b"mdhd", &[numbers(&[0, 0, 0, 8000, 4000, 0])]),
            atom(b"hdlr", &[numbers(&[0]), b"mhlrsoun".to_vec(), numbers(&[0, 0, 0, 0])]),
            atom(b"minf", &[atom(b"dinf", &[atom(b"dref", &[references])]), atom(b"stbl", &tables)]),
        ],
    );
    let header = atom(b"mvhd", &[numbers(&[0, 0, 0, 8000, 4000]), vec![0; 80]]);
    let track = atom(b"trak", &[atom(b"tkhd", &[numbers(&[7, 0, 0, 1, 0, 4000]), vec![0; 60]]), media]);
    [atom(b"ftyp", &[b"qt  ".to_vec(), numbers(&[0])]), atom(b"moov", &[header, track])].concat()
}

fn atom(name: &[u8; 4], parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    [&u32::try_from(body.len() + 8).unwrap().to_be_bytes()[..], name, &body].concat()
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}
