//! Files that are no video: texts, playlists, archives, pictures, noise.

use reprise_tests::mutations::Dice;

use super::Files;

/// Texts that some program takes for a video.
const TEXTS: [(&str, &str); 16] = [
    ("empty.mp4", ""),
    ("byte.mp4", "x"),
    ("text.mp4", "this is not a video\n"),
    ("page.mp4", "<!DOCTYPE html><html><video src='file:///etc/hostname'></video></html>"),
    ("picture.svg", "<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/hostname'/></svg>"),
    ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n"),
    ("remote.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n"),
    ("list.mp4", "ffconcat version 1.0\nfile /etc/hostname\n"),
    ("session.sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n"),
    (
        "manifest.mpd",
        "<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'><Period><BaseURL>file:///etc/</BaseURL></Period></MPD>",
    ),
    ("redirect.mp4", "RTSPtext\r\nrtsp://127.0.0.1:1/x\r\n"),
    ("list.asx", "<asx version='3.0'><entry><ref href='file:///etc/hostname'/></entry></asx>"),
    ("meta.txt", ";FFMETADATA1\ntitle=x\n[CHAPTER]\nTIMEBASE=1/0\nSTART=0\nEND=-1\n"),
    ("subtitles.mp4", "1\n00:00:01,000 --> 99:59:59,000\nonly words\n"),
    ("huge.y4m", "YUV4MPEG2 W100000 H100000 F25:1 Ip C420jpeg\nFRAME\n"),
    ("zero.y4m", "YUV4MPEG2 W0 H0 F0:0 Ip C420jpeg\nFRAME\nFRAME\n"),
];

/// Beginnings of files in binary formats.
const BINARY: [(&str, &[u8]); 11] = [
    ("archive.zip", b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0a.mp4"),
    ("film.mp4.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0"),
    ("still.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9"),
    ("huge.bmp", b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\0\x18\0\0\0\0\0"),
    ("huge.apng", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0\0\0\0\0\0\0\0\x08acTL\xff\xff\xff\xff\0\0\0\0"),
    ("huge.gif", b"GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\xff\xff\xff\xff\0\x02\x02D\x01\0;"),
    ("sound.wav", b"RIFF\xff\xff\xff\x7fWAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\xff\xff\xff\x7f\0\0\0\0"),
    ("moving.webp", b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\xff\xff\xff\xff\xff\xffANIM\x06\0\0\0\0\0\0\0\0\0"),
    ("size.mkv", b"\x1a\x45\xdf\xa3\x01\xff\xff\xff\xff\xff\xff\xfe\x42\x82\x88matroska"),
    ("length.flv", b"FLV\x01\x05\0\0\0\x09\0\0\0\0\x09\xff\xff\xff\0\0\0\0\0\0\0\x17\0\0\0\0"),
    ("program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0"),
];

/// Texts, beginnings, noise, and the film under wrong names or behind something else.
pub(super) fn files(film: &[u8]) -> Files {
    let texts = TEXTS.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let binary = BINARY.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
    let mut dice = Dice::new(7);
    let noise: Vec<u8> = (0..200_000).map(|_| dice.roll() as u8).collect();
    let made = [
        ("zeros.mp4", vec![0; 1 << 20]),
        ("noise.mp4", noise.clone()),
        (
            "noise.ts",
            noise.iter().enumerate().map(|(at, byte)| if at % 188 == 0 { 0x47 } else { *byte }).collect(),
        ),
        (
            "noise.h264",
            noise.chunks(100).flat_map(|chunk| [&b"\0\0\0\x01\x65"[..], chunk].concat()).collect(),
        ),
        ("noise.mpeg", noise.chunks(100).flat_map(|chunk| [&b"\0\0\x01\xb3"[..], chunk].concat()).collect()),
        ("film.txt", [film, b"x"].concat()),
        ("\u{202e}4pm.exe", [film, b"xy"].concat()),
        ("behind-a-script.mp4", [&b"#!/bin/sh\nexit\n"[..], film].concat()),
        ("subtitles.mkv", b"\x1a\x45\xdf\xa3".repeat(50_000)),
    ];
    texts.chain(binary).chain(made.map(|(name, bytes)| (name.to_owned(), bytes))).collect()
}
