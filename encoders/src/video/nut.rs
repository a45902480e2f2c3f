//! A demuxer for NUT, the container in which ffmpeg passes streams of raw pictures or samples through one pipe,
//! with exact timestamps.
//!
//! Covers the output of ffmpeg's muxer (version 3 of the format). It does not seek and checks no checksums, because a
//! pipe loses nothing. Knows nothing of the contents.

use std::io::{self, Read};
use std::sync::Arc;

use super::spare::Spare;

/// Why a byte stream is not readable NUT.
#[derive(Debug, thiserror::Error)]
pub(super) enum NutError {
    /// The pipe broke or ended inside a packet.
    #[error("the pipe from ffmpeg broke: {0}")]
    Read(#[from] io::Error),
    /// The bytes differ from the output of ffmpeg's muxer.
    #[error("ffmpeg sent an unexpected stream: {0}")]
    Format(&'static str),
}

/// A stream's header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// Seconds per tick.
    pub(super) time_base: (u64, u64),
    /// Pixels per row; 0 for sound.
    pub(super) width: u32,
    /// Rows; 0 for sound.
    pub(super) height: u32,
    msb_pts_shift: u32,
    last_pts: i64,
    time_base_id: usize,
}

/// One packet: a raw picture, or samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packet {
    /// Index of its stream.
    pub(super) stream: usize,
    /// Timestamp, in ticks of the stream.
    pub(super) pts: i64,
    /// The picture, or the samples.
    pub(super) data: Arc<[u8]>,
}

/// Defaults of the packets with one frame code.
#[derive(Debug, Clone, Copy, Default)]
struct Code {
    flags: u64,
    stream: u64,
    size_mul: u64,
    size_lsb: u64,
    pts_delta: i64,
    reserved: u64,
    header: u64,
}

mod flag {
    pub(super) const CODED_PTS: u64 = 8;
    pub(super) const STREAM_ID: u64 = 16;
    pub(super) const SIZE_MSB: u64 = 32;
    pub(super) const CHECKSUM: u64 = 64;
    pub(super) const RESERVED: u64 = 128;
    pub(super) const SIDE_DATA: u64 = 256;
    pub(super) const HEADER: u64 = 1024;
    pub(super) const MATCH_TIME: u64 = 2048;
    pub(super) const CODED: u64 = 4096;
    pub(super) const INVALID: u64 = 8192;
}

const FILE_ID: &[u8; 25] = b"nut/multimedia container\0";
const MAIN: u64 = 0x4E4D_7A56_1F5F_04AD;
const STREAM: u64 = 0x4E53_1140_5BF2_F9DB;
const SYNCPOINT: u64 = 0x4E4B_E4AD_EECA_4569;

/// Class of a stream of samples; 0 is one of pictures.
const AUDIO: u64 = 1;

/// Larger than any header packet of ffmpeg.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// A NUT stream being read.
pub(super) struct Demuxer<R> {
    input: R,
    codes: Vec<Code>,
    /// Elided header bytes of packets, by index.
    headers: Vec<Vec<u8>>,
    time_bases: Vec<(u64, u64)>,
    streams: Vec<Stream>,
    max_packet_bytes: u64,
    spare: Spare,
}

impl<R: Read> Demuxer<R> {
    /// Reads the file id. `None` if the pipe is empty: ffmpeg ended before its first picture.
    pub(super) fn open(mut input: R, max_packet_bytes: u64) -> Result<Option<Demuxer<R>>, NutError> {
        let mut id = [0; FILE_ID.len()];
        if read_up_to(&mut input, &mut id)? == 0 {
            return Ok(None);
        }
        if &id != FILE_ID {
            return Err(NutError::Format("no file id"));
        }
        let (codes, headers, time_bases, streams) = (Vec::new(), vec![Vec::new()], Vec::new(), Vec::new());
        let spare = Spare::default();
        Ok(Some(Demuxer { input, codes, headers, time_bases, streams, max_packet_bytes, spare }))
    }

    /// The header of a stream whose packet was read.
    pub(super) fn stream(&self, index: usize) -> Option<&Stream> {
        self.streams.get(index)
    }

    /// The next packet; `None` at the end.
    pub(super) fn next_packet(&mut self) -> Result<Option<Packet>, NutError> {
        loop {
            let mut code = [0; 1];
            if read_up_to(&mut self.input, &mut code)? == 0 {
                return Ok(None);
            }
            if code[0] == b'N' {
                self.read_header_packet()?;
            } else {
                return self.read_frame(code[0]).map(Some);
            }
        }
    }

    fn read_header_packet(&mut self) -> Result<(), NutError> {
        let mut start = [b'N', 0, 0, 0, 0, 0, 0, 0];
        self.input.read_exact(&mut start[1..])?;
        let size = unsigned(&mut self.input)?;
        if size > MAX_HEADER_BYTES {
            return Err(NutError::Format("oversized header"));
        }
        if size > 4096 {
            self.input.read_exact(&mut [0; 4])?;
        }
        let mut body = vec![0; size as usize];
        self.input.read_exact(&mut body)?;
        let mut body = body.as_slice();
        match u64::from_be_bytes(start) {
            MAIN => self.read_main(&mut body),
            STREAM => self.read_stream(&mut body),
            SYNCPOINT => self.read_syncpoint(&mut body),
            _ => Ok(()),
        }
    }

    fn read_main(&mut self, body: &mut &[u8]) -> Result<(), NutError> {
        if unsigned(body)? > 3 {
            return Err(NutError::Format("a later version"));
        }
        let streams = unsigned(body)?;
        unsigned(body)?;
        let time_bases = unsigned(body)?;
        if streams > 1000 || time_bases > 1000 {
            return Err(NutError::Format("too many streams"));
        }
        self.time_bases.clear();
        for _ in 0..time_bases {
            self.time_bases.push((unsigned(body)?, unsigned(body)?));
        }
        // Headers are repeated; their contents do not change.
        self.streams.resize(streams as usize, Stream::default());
        self.codes = read_codes(body)?;
        self.headers = vec![Vec::new()];
        for _ in 0..unsigned(body)?.min(128) {
            self.headers.push(bytes(body)?);
        }
        Ok(())
    }

    fn read_stream(&mut self, body: &mut &[u8]) -> Result<(), NutError> {
        let index = unsigned(body)? as usize;
        let class = unsigned(body)?;
        if class > AUDIO {
            return Err(NutError::Format("a stream that is neither video nor audio"));
        }
        bytes(body)?;
        let time_base_id = unsigned(body)? as usize;
        let msb_pts_shift = unsigned(body)? as u32;
        unsigned(body)?;
        unsigned(body)?;
        unsigned(body)?;
        bytes(body)?;
        let (width, height) = match class {
            AUDIO => (0, 0),
            _ => (unsigned(body)? as u32, unsigned(body)? as u32),
        };
        let time_base = *self.time_bases.get(time_base_id).ok_or(NutError::Format("unknown time base"))?;
        if msb_pts_shift > 62 || time_base.0 == 0 || time_base.1 == 0 {
            return Err(NutError::Format("bad stream header"));
        }
        let stream = self.streams.get_mut(index).ok_or(NutError::Format("unknown stream"))?;
        *stream = Stream { time_base, width, height, msb_pts_shift, last_pts: stream.last_pts, time_base_id };
        Ok(())
    }

    /// A syncpoint restates the time, so that later timestamps can be short.
    fn read_syncpoint(&mut self, body: &mut &[u8]) -> Result<(), NutError> {
        let coded = unsigned(body)?;
        let count = self.time_bases.len() as u64;
        if count == 0 {
            return Err(NutError::Format("no main header"));
        }
        let (ticks, from) = (coded / count, self.time_bases[(coded % count) as usize]);
        for stream in &mut self.streams {
            let (num, den) = self.time_bases.get(stream.time_base_id).copied().unwrap_or(from);
            let scaled = (u128::from(ticks) * u128::from(from.0))
                .checked_mul(u128::from(den))
                .map(|product| product / (u128::from(from.1) * u128::from(num)).max(1))
                .and_then(|scaled| i64::try_from(scaled).ok());
            stream.last_pts = scaled.ok_or(NutError::Format("time out of range"))?;
        }
        Ok(())
    }

    fn read_frame(&mut self, code: u8) -> Result<Packet, NutError> {
        let code = *self.codes.get(usize::from(code)).ok_or(NutError::Format("no main header"))?;
        let input = &mut self.input;
        let flags = if code.flags & flag::CODED != 0 { code.flags ^ unsigned(input)? } else { code.flags };
        if flags & (flag::INVALID | flag::SIDE_DATA) != 0 {
            return Err(NutError::Format("bad frame code"));
        }
        let index = if flags & flag::STREAM_ID != 0 { unsigned(input)? } else { code.stream } as usize;
        let stream = self.streams.get_mut(index).ok_or(NutError::Format("unknown stream"))?;
        let pts = match flags & flag::CODED_PTS {
            0 => stream.last_pts.saturating_add(code.pts_delta),
            _ => whole_pts(unsigned(input)?, stream),
        };
        stream.last_pts = pts;
        let msb = if flags & flag::SIZE_MSB != 0 { unsigned(input)? } else { 0 };
        if flags & flag::MATCH_TIME != 0 {
            signed(input)?;
        }
        let header = if flags & flag::HEADER != 0 { unsigned(input)? } else { code.header };
        let reserved = if flags & flag::RESERVED != 0 { unsigned(input)? } else { code.reserved };
        for _ in 0..reserved.min(256) {
            unsigned(input)?;
        }
        if flags & flag::CHECKSUM != 0 {
            input.read_exact(&mut [0; 4])?;
        }
        let size = msb.saturating_mul(code.size_mul).saturating_add(code.size_lsb);
        let header = if size > 4096 { 0 } else { header as usize };
        let header = self.headers.get(header).ok_or(NutError::Format("unknown elision header"))?;
        if size > self.max_packet_bytes || size < header.len() as u64 {
            return Err(NutError::Format("bad packet size"));
        }
        let data = self.spare.filled(size as usize, |bytes| read_data(input, header, bytes))?;
        Ok(Packet { stream: index, pts, data })
    }
}

/// Reads a packet. `header` is its elided start.
fn read_data(input: &mut impl Read, header: &[u8], data: &mut [u8]) -> Result<(), NutError> {
    let (start, rest) = data.split_at_mut(header.len());
    start.copy_from_slice(header);
    input.read_exact(rest)?;
    Ok(())
}

/// Restores the high bits of a short timestamp: takes the candidate nearest to the last timestamp.
fn whole_pts(coded: u64, stream: &Stream) -> i64 {
    let range = 1_i128 << stream.msb_pts_shift;
    let coded = i128::from(coded);
    let pts = if coded < range {
        let delta = i128::from(stream.last_pts) - (range - 1) / 2;
        (coded - delta).rem_euclid(range) + delta
    } else {
        coded - range
    };
    i64::try_from(pts).unwrap_or(i64::MAX)
}

fn read_codes(body: &mut &[u8]) -> Result<Vec<Code>, NutError> {
    let mut codes = Vec::with_capacity(256);
    let (mut pts_delta, mut size_mul, mut stream, mut header) = (0, 1, 0, 0);
    while codes.len() < 256 {
        let flags = unsigned(body)?;
        let fields = unsigned(body)?;
        let field = |at: u64, body: &mut &[u8]| if fields > at { unsigned(body).map(Some) } else { Ok(None) };
        if fields > 0 {
            pts_delta = signed(body)?;
        }
        size_mul = field(1, body)?.unwrap_or(size_mul);
        stream = field(2, body)?.unwrap_or(stream);
        let size = field(3, body)?.unwrap_or(0);
        let reserved = field(4, body)?.unwrap_or(0);
        let count = field(5, body)?.unwrap_or(size_mul.wrapping_sub(size));
        if fields > 6 {
            signed(body)?;
        }
        header = field(7, body)?.unwrap_or(header);
        for _ in 8..fields.min(64) {
            unsigned(body)?;
        }
        for size_lsb in (0..count.min(256)).map(|more| size.saturating_add(more)) {
            if codes.len() == usize::from(b'N') {
                codes.push(Code { flags: flag::INVALID, ..Code::default() });
            }
            if codes.len() < 256 {
                codes.push(Code { flags, stream, size_mul, size_lsb, pts_delta, reserved, header });
            }
        }
        if count == 0 && body.is_empty() {
            return Err(NutError::Format("bad main header"));
        }
    }
    Ok(codes)
}

/// Fills `buffer`, unless the input ends before its first byte.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, NutError> {
    let first = loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first > 0 {
        input.read_exact(&mut buffer[first..])?;
    }
    Ok(first)
}

/// NUT's variable-length number: seven bits a byte, the highest first.
fn unsigned(input: &mut impl Read) -> Result<u64, NutError> {
    let mut value = 0_u64;
    loop {
        let mut byte = [0; 1];
        input.read_exact(&mut byte)?;
        if value >> 57 != 0 {
            return Err(NutError::Format("number out of range"));
        }
        value = (value << 7) | u64::from(byte[0] & 0x7f);
        if byte[0] & 0x80 == 0 {
            return Ok(value);
        }
    }
}

fn signed(input: &mut impl Read) -> Result<i64, NutError> {
    let value = unsigned(input)?.wrapping_add(1);
    let half = (value >> 1) as i64;
    Ok(if value & 1 == 1 { -half } else { half })
}

fn bytes(body: &mut &[u8]) -> Result<Vec<u8>, NutError> {
    let length = unsigned(body)?;
    if length > body.len() as u64 {
        return Err(NutError::Format("bad string"));
    }
    let (taken, rest) = body.split_at(length as usize);
    *body = rest;
    Ok(taken.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn made_by_ffmpeg(graph: &str, maps: &[&str]) -> Vec<u8> {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-filter_complex", graph]);
        for map in maps {
            command.args(["-map", map]);
        }
        command.args([super::super::ffmpeg::frame_rate_mode(), "passthrough", "-enc_time_base", "1:90000"]);
        let output =
            command.args(["-c:v", "rawvideo", "-pix_fmt", "rgb24", "-f", "nut", "-"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn read_all(bytes: &[u8]) -> (Vec<Packet>, Vec<Stream>) {
        let mut demuxer = Demuxer::open(bytes, 1 << 20).unwrap().unwrap();
        let packets = std::iter::from_fn(|| demuxer.next_packet().unwrap()).collect();
        (packets, demuxer.streams)
    }

    #[test]
    fn every_packet_of_two_streams_comes_out_with_its_time_and_size() {
        let graph = "testsrc2=size=64x48:rate=25:duration=4,settb=1/90000,split=2[a][b];\
                     [a]setpts='PTS+90000*7+N*N*11'[x];[b]select='not(mod(n,7))',scale=10:6[y]";
        let (packets, streams) = read_all(&made_by_ffmpeg(graph, &["[x]", "[y]"]));
        let seconds = |p: &Packet| {
            let (num, den) = streams[p.stream].time_base;
            i128::from(p.pts) * i128::from(num) * 90_000 / i128::from(den)
        };
        let times: Vec<_> = packets.iter().filter(|p| p.stream == 0).map(seconds).collect();
        let expected: Vec<_> = (0..100).map(|n| n * 3600 + 90_000 * 7 + n * n * 11).collect();
        assert_eq!(times, expected);
        let small: Vec<_> = packets.iter().filter(|p| p.stream == 1).collect();
        assert_eq!(
            small.iter().map(|p| seconds(p)).collect::<Vec<_>>(),
            (0..15).map(|n| n * 7 * 3600).collect::<Vec<_>>()
        );
        assert!(packets.iter().all(|p| p.data.len() == [64 * 48 * 3, 10 * 6 * 3][p.stream]));
        assert_eq!((streams[1].width, streams[1].height), (10, 6));
    }

    #[test]
    fn an_empty_pipe_is_no_stream() {
        assert!(Demuxer::open([].as_slice(), 1 << 20).unwrap().is_none());
    }

    #[test]
    fn numbers_are_read_as_written() {
        for (bytes, expected) in
            [(&[0x00][..], 0), (&[0x7f], 127), (&[0x81, 0x00], 128), (&[0xbd, 0x84, 0x40], 0xf4240)]
        {
            assert_eq!(unsigned(&mut &*bytes).unwrap(), expected);
        }
        for (bytes, expected) in [(&[0x00][..], -0), (&[0x01], 1), (&[0x02], -1), (&[0x03], 2)] {
            assert_eq!(signed(&mut &*bytes).unwrap(), expected);
        }
    }

    /// A stream of one main header, in which `time_bases` precede the rest.
    fn main_header(time_bases: &[&[u8]], codes: &[u8]) -> Vec<u8> {
        let mut body = [&[3, 1, 0, time_bases.len() as u8][..], &time_bases.concat(), codes].concat();
        // 255 further codes, and no elided headers.
        body.extend([&[0, 6, 0, 1, 0, 0, 0, 0x81, 0x7f], &[0; 1][..]].concat());
        let mut file = [&FILE_ID[..], &MAIN.to_be_bytes(), &[body.len() as u8]].concat();
        file.extend(body);
        file
    }

    #[test]
    fn numbers_out_of_range_are_refused_and_overflow_nothing() {
        let largest = [0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        // One code whose sizes begin at the largest number.
        let codes = [&[0, 6, 0, 1, 0][..], &largest, &[0, 2]].concat();
        let syncpoint = [&SYNCPOINT.to_be_bytes()[..], &[10], &largest].concat();
        let one = [1, 1];
        let file = [main_header(&[&one], &codes), syncpoint.clone(), b"x".to_vec()].concat();
        let next = |bytes: &[u8]| Demuxer::open(bytes, 1 << 20).unwrap().unwrap().next_packet();
        assert!(matches!(next(&file), Err(NutError::Format("time out of range"))), "{:?}", next(&file));
        let base = [&largest[..], &largest].concat();
        let file = [main_header(&[&base], &codes), syncpoint].concat();
        assert!(matches!(next(&file), Err(NutError::Format("time out of range"))), "{:?}", next(&file));
    }

    /// A number as NUT writes it.
    fn written(value: u64) -> Vec<u8> {
        let more = |at: u32| value.checked_shr(7 * at).filter(|rest| *rest > 0).map(|rest| rest as u8 | 0x80);
        let mut bytes: Vec<u8> = (1..10).map_while(more).collect();
        bytes.reverse();
        bytes.push(value as u8 & 0x7f);
        bytes
    }

    fn header_packet(kind: u64, numbers: &[u64]) -> Vec<u8> {
        let body: Vec<u8> = numbers.iter().copied().flat_map(written).collect();
        [kind.to_be_bytes().to_vec(), written(body.len() as u64), body].concat()
    }

    /// The main header of a file: version, number of streams, time bases, and codes: the first ones of frames with a time
    /// and a size, those from 129 on of frames with a size, two ticks after the last one.
    fn main_packet(version: u64, streams: u64, time_bases: &[u64]) -> Vec<u8> {
        let before = [version, streams, 1, time_bases.len() as u64 / 2];
        let timed = [flag::CODED_PTS | flag::SIZE_MSB, 6, 0, 1, 0, 0, 0, 128];
        let codes = [&timed[..], &[flag::SIZE_MSB, 6, 3, 1, 0, 0, 0, 128, 0]].concat();
        header_packet(MAIN, &[&before[..], time_bases, &codes[..]].concat())
    }

    /// A stream's header: its index, class, time base, and the bits of a short timestamp.
    fn stream_packet(index: u64, class: u64, time_base: u64, shift: u64) -> Vec<u8> {
        header_packet(STREAM, &[index, class, 0, time_base, shift, 0, 0, 0, 0, 6, 4])
    }

    fn frame(coded_pts: u64, size: u64) -> Vec<u8> {
        [vec![0], written(coded_pts), written(size), vec![7; size as usize]].concat()
    }

    /// The times of a file's packets, which may have 9 bytes; or why it is refused.
    #[track_caller]
    fn check(packets: &[Vec<u8>], expected: Result<&[i64], &str>) {
        let file = [&FILE_ID[..], &packets.concat()].concat();
        let mut demuxer = Demuxer::open(file.as_slice(), 9).unwrap().unwrap();
        let packets = std::iter::from_fn(|| demuxer.next_packet().transpose()).collect::<Result<Vec<_>, _>>();
        let times = packets.map(|packets| packets.iter().map(|packet| packet.pts).collect::<Vec<i64>>());
        match (times, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, _) => panic!("{got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn short_times_are_those_nearest_to_the_last_one() {
        let main = main_packet(3, 1, &[1, 25]);
        let of = |shift: u64, coded: &[u64]| -> Vec<Vec<u8>> {
            let headers = [main.clone(), stream_packet(0, 0, 0, shift)];
            headers.into_iter().chain(coded.iter().map(|coded| frame(*coded, 1))).collect()
        };
        check(&of(3, &[3, 7, 3, 0]), Ok(&[3, 7, 11, 8]));
        check(&of(3, &[4]), Ok(&[4]));
        check(&of(3, &[5]), Ok(&[-3]));
        // Whole times are written above the short ones.
        check(&of(3, &[8, 28, 4, 8]), Ok(&[0, 20, 20, 0]));
        check(&of(62, &[5, 1 << 61]), Ok(&[5, 1 << 61]));
        // A frame without a time is two ticks after the last one.
        let untimed = vec![129, 1, 7];
        check(&[of(3, &[3]), vec![untimed.clone(), untimed]].concat(), Ok(&[3, 5, 7]));
    }

    #[test]
    fn headers_and_packets_have_limits() {
        let (main, stream) = (main_packet(3, 1, &[1, 25]), stream_packet(0, 0, 0, 3));
        check(&[main.clone(), stream.clone(), frame(1, 9)], Ok(&[1]));
        check(&[main.clone(), stream.clone(), frame(1, 10)], Err("bad packet size"));
        check(&[main_packet(4, 1, &[1, 25])], Err("a later version"));
        check(&[main_packet(3, 1000, &[1, 25]), stream_packet(999, 0, 0, 3)], Ok(&[]));
        check(&[main_packet(3, 1001, &[1, 25])], Err("too many streams"));
        check(&[main_packet(3, 1, &[1; 2000]), stream_packet(0, 0, 999, 3)], Ok(&[]));
        check(&[main_packet(3, 1, &[1; 2002])], Err("too many streams"));
        check(&[main.clone(), stream_packet(0, 1, 0, 62)], Ok(&[]));
        check(&[main.clone(), stream_packet(0, 0, 0, 63)], Err("bad stream header"));
        check(&[main_packet(3, 1, &[0, 25]), stream.clone()], Err("bad stream header"));
        check(&[main_packet(3, 1, &[1, 0]), stream], Err("bad stream header"));
        check(&[main.clone(), stream_packet(0, 2, 0, 3)], Err("neither video nor audio"));
        check(&[main.clone(), stream_packet(0, 0, 1, 3)], Err("unknown time base"));
        check(&[main.clone(), stream_packet(1, 0, 0, 3)], Err("unknown stream"));
        check(&[frame(1, 1)], Err("no main header"));
        let of_side_data = [3, 1, 1, 1, 1, 25, flag::SIDE_DATA, 6, 0, 1, 0, 0, 0, 256, 0];
        check(
            &[header_packet(MAIN, &of_side_data), stream_packet(0, 0, 0, 3), vec![0]],
            Err("bad frame code"),
        );
        check(&[header_packet(SYNCPOINT, &[0])], Err("no main header"));
        let long = |length: u64| [STREAM.to_be_bytes().to_vec(), written(length)].concat();
        check(&[main.clone(), long(MAX_HEADER_BYTES + 1)], Err("oversized header"));
        check(&[main, long(MAX_HEADER_BYTES)], Err("the pipe from ffmpeg broke"));
    }

    #[test]
    fn packets_begin_with_the_bytes_that_the_main_header_keeps_for_them() {
        // Frames with a size; `8` and `9` stand before each.
        let codes = [flag::SIZE_MSB, 8, 0, 1, 0, 0, 0, 256, 0, 1];
        let main = header_packet(MAIN, &[&[3, 1, 1, 1, 1, 25][..], &codes, &[1, 2, 8, 9]].concat());
        let of = |frame: &[u8]| -> Result<Option<Packet>, NutError> {
            let file = [&FILE_ID[..], &main, &stream_packet(0, 0, 0, 3), frame].concat();
            Demuxer::open(file.as_slice(), 9).unwrap().unwrap().next_packet()
        };
        for (frame, expected) in [(&[0, 3, 7][..], &[8, 9, 7][..]), (&[0, 2], &[8, 9])] {
            assert_eq!(of(frame).unwrap().map(|packet| packet.data.to_vec()).as_deref(), Some(expected));
        }
        assert!(of(&[0, 1]).unwrap_err().to_string().contains("bad packet size"));
    }

    #[test]
    fn a_syncpoint_says_the_time_of_all_streams() {
        // Ticks of the second time base, 1/50: 2 of its ticks are one of the first.
        let main = main_packet(3, 2, &[1, 25, 1, 50]);
        let streams = [stream_packet(0, 0, 0, 3), stream_packet(1, 0, 1, 3)];
        let syncpoint = header_packet(SYNCPOINT, &[2 * 1000 + 1]);
        let [first, second] = streams;
        check(&[main, first, second, syncpoint, frame(500 % 8, 1)], Ok(&[500]));
    }

    proptest! {
        #[test]
        fn damaged_streams_end_without_panic(cut in 0_usize..40_000, at in 0_usize..2000, to in any::<u8>()) {
            static GOOD: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let good = GOOD.get_or_init(|| made_by_ffmpeg("testsrc2=size=32x24:rate=25:duration=1[x]", &["[x]"]));
            let mut bytes = good[..cut.min(good.len())].to_vec();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = to;
            }
            if let Ok(Some(mut demuxer)) = Demuxer::open(bytes.as_slice(), 1 << 20) {
                while let Ok(Some(_)) = demuxer.next_packet() {}
            }
        }
    }
}
