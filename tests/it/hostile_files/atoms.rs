//! MP4 files whose atoms lie: sizes, counts, clocks, and nesting.

use super::Files;

/// A change of the contents of each atom of one kind: its name, where in the atom's body, and the new bytes.
const CHANGES: [(&str, &[u8; 4], usize, &[u8]); 15] = [
    ("huge-track.mp4", b"tkhd", 76, &[0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0]),
    ("huge-picture.mp4", b"avc1", 24, &[0xff; 4]),
    ("no-picture.mp4", b"avc1", 24, &[0; 4]),
    ("no-clock.mp4", b"mdhd", 12, &[0; 4]),
    ("fast-clock.mp4", b"mdhd", 12, &[0xff; 4]),
    ("slow-clock.mp4", b"mdhd", 12, &[0, 0, 0, 1]),
    ("long-movie.mp4", b"mvhd", 16, &[0xff; 4]),
    ("long-media.mp4", b"mdhd", 16, &[0xff; 4]),
    ("many-samples.mp4", b"stsz", 8, &[0x7f, 0xff, 0xff, 0xff]),
    ("empty-samples.mp4", b"stsz", 12, &[0; 40]),
    ("large-samples.mp4", b"stsz", 12, &[0x7f; 40]),
    ("no-time.mp4", b"stts", 12, &[0; 4]),
    ("long-time.mp4", b"stts", 12, &[0x7f, 0xff, 0xff, 0xff]),
    ("many-times.mp4", b"stts", 4, &[0xff; 4]),
    ("far-chunks.mp4", b"stco", 8, &[0xff; 4]),
];

/// An atom of a kind.
fn atom(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes()[..], kind, body].concat()
}

/// The film with one lie each, in the last atom of its kind, and files of atoms alone.
pub(super) fn files(film: &[u8]) -> Files {
    let mut files = Files::new();
    for (name, kind, place, bytes) in CHANGES {
        let mut changed = film.to_vec();
        let at = film.windows(4).rposition(|window| window == kind).expect("the film has this atom");
        changed[at + 4 + place..at + 4 + place + bytes.len()].copy_from_slice(bytes);
        files.insert(name.to_owned(), changed);
    }
    let start = atom(b"ftyp", b"isom\0\0\x02\0isomiso2avc1mp41");
    let of = |rest: &[u8]| [&start[..], rest].concat();
    // Each lies in the one before.
    let deep: Vec<u8> =
        (1..=20_000_u32).rev().flat_map(|atoms| [&(8 * atoms).to_be_bytes()[..], b"moov"].concat()).collect();
    files.insert("deep.mp4".to_owned(), of(&deep));
    files.insert("no-size.mp4".to_owned(), of(&[&[0, 0, 0, 1][..], b"moov", &[0; 8]].concat().repeat(1_000)));
    files.insert("large-size.mp4".to_owned(), of(&[&[0, 0, 0, 1][..], b"moov", &[0x7f; 8], film].concat()));
    files.insert("many-moov.mp4".to_owned(), of(&atom(b"moov", b"").repeat(50_000)));
    files.insert("twice.mp4".to_owned(), film.repeat(2));
    files
}
