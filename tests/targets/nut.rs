//! NUT streams, as ffmpeg's pipe sends them. The demuxer is private: its source is compiled here once more.

#[path = "../../encoders/src/video/nut.rs"]
#[allow(dead_code, reason = "decoding needs more of it than this target")]
mod demuxer;
#[path = "../../encoders/src/video/spare.rs"]
mod spare;

use demuxer::Demuxer;

/// Largest picture.
pub(super) const PICTURE_BYTES: u64 = 1 << 16;

/// Every packet is of a known stream and within the limit, and each takes a byte of the input at least.
pub(super) fn run(bytes: &[u8]) {
    let Ok(Some(mut demuxer)) = Demuxer::open(bytes, PICTURE_BYTES) else { return };
    let mut packets = 0;
    while let Ok(Some(packet)) = demuxer.next_packet() {
        packets += 1;
        assert!(demuxer.stream(packet.stream).is_some() && packet.data.len() as u64 <= PICTURE_BYTES);
    }
    assert!(packets <= bytes.len());
}
