//! The tricks.

use super::media::{with_attachment, with_reference};
use super::{Input, Proof, Trick};

macro_rules! protocols {
    ($rest:literal) => {
        concat!(
            "-protocol_whitelist file,http,https,tcp,udp,rtp,rtmp,crypto,concat,concatf,subfile,data,async,cache,",
            "unix,pipe,hls,ftp,gopher,md5,srtp,tee,tls,httpproxy ",
            $rest
        )
    };
}

const PLAYLIST: &str =
    "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile://@/secret.wav\n#EXT-X-ENDLIST\n";
const PLAYLIST_CALLING: &str =
    "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nhttp://127.0.0.1:TCP/a.ts\n#EXT-X-ENDLIST\n";
const PLAYLIST_WITH_KEY: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n\
    #EXT-X-KEY:METHOD=AES-128,URI=\"http://127.0.0.1:TCP/key\"\n#EXTINF:10,\nfile://@/secret.wav\n#EXT-X-ENDLIST\n";
const PLAYLIST_WITH_MAP: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-MAP:URI=\"file://@/secret.wav\"\n\
    #EXTINF:10,\nfile://@/secret.txt\n#EXT-X-ENDLIST\n";
const MASTER_PLAYLIST: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://127.0.0.1:TCP/list.m3u8\n";
const MANIFEST: &str = concat!(
    "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" ",
    "mediaPresentationDuration=\"PT10S\" minBufferTime=\"PT1S\"><Period><AdaptationSet mimeType=\"audio/mp4\">",
    "<Representation id=\"0\" bandwidth=\"1000\"><BaseURL>file://@/secret.wav</BaseURL>",
    "</Representation></AdaptationSet></Period></MPD>"
);
const MANIFEST_CALLING: &str = concat!(
    "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" ",
    "mediaPresentationDuration=\"PT10S\" minBufferTime=\"PT1S\"><Period><AdaptationSet mimeType=\"audio/mp4\">",
    "<Representation id=\"0\" bandwidth=\"1000\"><BaseURL>http://127.0.0.1:TCP/a.mp4</BaseURL>",
    "</Representation></AdaptationSet></Period></MPD>"
);
const SESSION: &str = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=a\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio RTP RTP/AVP 96\n\
    a=rtpmap:96 L16/8000/1\n";
const NOTHING: Input = Input::Text("nothing");

fn trick(name: &'static str, input: Input, line: &'static str, proof: Proof) -> Trick {
    Trick { name, input, line, proof }
}

/// The file names another file, or its name is a protocol.
pub(super) fn inputs() -> Vec<Trick> {
    let text = Input::Text;
    let secret = |name, input, line| trick(name, input, line, Proof::Secret);
    vec![
        secret(
            "HLS playlist",
            text(PLAYLIST),
            protocols!("-f hls -allowed_extensions ALL -extension_picky 0 -i @/input -f s16le pipe:1"),
        ),
        secret(
            "HLS map",
            text(PLAYLIST_WITH_MAP),
            protocols!("-f hls -allowed_extensions ALL -extension_picky 0 -i @/input -f s16le pipe:1"),
        ),
        secret(
            "DASH manifest",
            text(MANIFEST),
            protocols!("-f dash -allowed_extensions ALL -i @/input -f s16le pipe:1"),
        ),
        secret(
            "ffconcat script",
            text("ffconcat version 1.0\nfile @/secret.wav\n"),
            protocols!("-safe 0 -i @/input -f s16le pipe:1"),
        ),
        secret(
            "concat script with options",
            text("file @/secret.txt\noption sample_rate 8000\n"),
            protocols!("-f concat -safe 0 -i @/input -map 0 -c copy -f data pipe:1"),
        ),
        secret(
            "QuickTime reference",
            Input::Made(with_reference),
            "-enable_drefs 1 -use_absolute_path 1 -protocol_whitelist file -f mov -i @/input -f s16le pipe:1",
        ),
        secret("file", NOTHING, "-i @/secret.wav -f s16le pipe:1"),
        secret("concat:", NOTHING, protocols!("-f wav -i concat:@/secret.wav|@/input -f s16le pipe:1")),
        secret("concatf:", NOTHING, protocols!("-f s16le -i concatf:@/secret.list -f s16le pipe:1")),
        secret(
            "subfile,,",
            NOTHING,
            protocols!("-f s16le -i subfile,,start,0,end,640,,:@/secret.txt -f s16le pipe:1"),
        ),
        secret("async:", NOTHING, protocols!("-i async:@/secret.wav -f s16le pipe:1")),
        secret("cache:", NOTHING, protocols!("-i cache:@/secret.wav -f s16le pipe:1")),
        secret("image sequence", NOTHING, "-f image2 -i @/secret%d.pgm -f rawvideo -pix_fmt gray pipe:1"),
        secret(
            "image glob",
            NOTHING,
            "-f image2 -pattern_type glob -i @/secret*.pgm -f rawvideo -pix_fmt gray pipe:1",
        ),
    ]
}

/// An option or a filter names another file.
pub(super) fn options() -> Vec<Trick> {
    let secret = |name, line| trick(name, NOTHING, line, Proof::Secret);
    let picture = |name, line| trick(name, NOTHING, line, Proof::Picture);
    vec![
        secret("movie=", "-f lavfi -i movie=@/secret1.pgm -f rawvideo -pix_fmt gray pipe:1"),
        secret("amovie=", "-f lavfi -i amovie=@/secret.wav -f s16le pipe:1"),
        secret(
            "movie= in a filter graph",
            "-f lavfi -i color=s=64x64:d=1 -filter_complex movie=@/secret1.pgm -frames:v 1 -f rawvideo -pix_fmt gray pipe:1",
        ),
        secret(
            "filter script",
            "-filter_complex_script @/secret.graph -frames:v 1 -f rawvideo -pix_fmt gray pipe:1",
        ),
        secret(
            "option from a file",
            "-/filter_complex @/secret.graph -frames:v 1 -f rawvideo -pix_fmt gray pipe:1",
        ),
        secret(
            "attachment",
            "-f lavfi -i color=s=64x64:d=1:r=1 -attach @/secret.txt -metadata:s:t mimetype=text/plain -f matroska pipe:1",
        ),
        secret("data stream", "-f data -i @/secret.txt -map 0 -c copy -f data pipe:1"),
        picture(
            "subtitles=",
            "-f lavfi -i color=s=64x64:d=1 -vf subtitles=@/secret.srt -frames:v 1 -f rawvideo pipe:1",
        ),
        picture(
            "lut3d=",
            "-f lavfi -i color=s=64x64:d=1 -vf lut3d=@/secret.cube -frames:v 1 -f rawvideo pipe:1",
        ),
        picture(
            "removelogo=",
            "-f lavfi -i color=s=64x64:d=1 -vf removelogo=@/secret1.pgm -frames:v 1 -f rawvideo pipe:1",
        ),
        picture(
            "drawtext=",
            "-f lavfi -i color=s=64x64:d=1 -vf drawtext=textfile=@/secret.txt -frames:v 1 -f rawvideo pipe:1",
        ),
    ]
}

/// Something is written where it should not be.
pub(super) fn outputs() -> Vec<Trick> {
    let written = |name, line| trick(name, NOTHING, line, Proof::Written);
    vec![
        written("output", "-f lavfi -i color=s=64x64:d=1 -f nut @/stolen"),
        written(
            "tee muxer",
            "-f lavfi -i color=s=64x64:d=1 -map 0 -c:v mpeg4 -f tee [f=nut]@/output|[f=nut]@/stolen",
        ),
        written(
            "segments",
            "-f lavfi -i color=s=64x64:d=1 -map 0 -c:v mpeg4 -f segment -segment_format nut @/stolen%d",
        ),
        written("image sequence", "-f lavfi -i color=s=64x64:d=1 -f image2 @/stolen%d.png"),
        written("HLS", "-f lavfi -i color=s=64x64:d=1 -c:v mpeg4 -f hls @/stolen.m3u8"),
        written(
            "vidstabdetect=",
            "-f lavfi -i testsrc=d=1:s=64x64 -vf format=yuv420p,vidstabdetect=result=@/stolen -f null -",
        ),
        written("signature=", "-f lavfi -i color=s=64x64:d=1 -vf signature=filename=@/stolen -f null -"),
        written(
            "psnr=",
            "-f lavfi -i color=s=64x64:d=1 -filter_complex split[a][b];[a][b]psnr=stats_file=@/stolen -f null -",
        ),
        written("metadata=print", "-f lavfi -i color=s=64x64:d=1 -vf metadata=print:file=@/stolen -f null -"),
        written("-progress", "-progress file:@/stolen -f lavfi -i color=s=64x64:d=1 -f null -"),
        written("-vstats_file", "-f lavfi -i color=s=64x64:d=1 -vstats_file @/stolen -c:v mpeg4 -f null -"),
        written(
            "-passlogfile",
            "-f lavfi -i color=s=64x64:d=1 -c:v mpeg4 -pass 1 -passlogfile @/stolen -f null -",
        ),
        written("-report", "-report -f lavfi -i color=s=64x64:d=1 -f null -"),
        trick(
            "-dump_attachment",
            Input::Made(with_attachment),
            "-dump_attachment:t @/stolen -i @/input -f null -",
            Proof::Written,
        ),
        trick(
            "-dump_attachment to the name that the input gives",
            Input::Made(with_attachment),
            "-dump_attachment:t '' -i @/input -f null -",
            Proof::Written,
        ),
    ]
}

/// Something calls an address.
pub(super) fn addresses() -> Vec<Trick> {
    let text = Input::Text;
    let call = |name, input, line| trick(name, input, line, Proof::Call);
    vec![
        call("HLS segment", text(PLAYLIST_CALLING), protocols!("-f hls -i @/input -f null -")),
        call(
            "HLS key",
            text(PLAYLIST_WITH_KEY),
            protocols!("-f hls -allowed_extensions ALL -extension_picky 0 -i @/input -f null -"),
        ),
        call("HLS variant", text(MASTER_PLAYLIST), protocols!("-f hls -i @/input -f null -")),
        call("DASH segment", text(MANIFEST_CALLING), protocols!("-f dash -i @/input -f null -")),
        call(
            "concat script",
            text("file http://127.0.0.1:TCP/a.wav\n"),
            protocols!("-f concat -safe 0 -i @/input -f null -"),
        ),
        call("http:", NOTHING, protocols!("-i http://127.0.0.1:TCP/ -f null -")),
        call("tcp:", NOTHING, protocols!("-f s16le -i tcp://127.0.0.1:TCP -f null -")),
        call("ftp:", NOTHING, protocols!("-i ftp://127.0.0.1:TCP/a -f null -")),
        call("gopher:", NOTHING, protocols!("-i gopher://127.0.0.1:TCP/1 -f null -")),
        call("rtsp:", NOTHING, protocols!("-i rtsp://127.0.0.1:TCP/a -f null -")),
        call("rtmp:", NOTHING, protocols!("-i rtmp://127.0.0.1:TCP/a/b -f null -")),
        call(
            "httpproxy by option",
            NOTHING,
            protocols!("-http_proxy http://127.0.0.1:TCP -i http://a.invalid/ -f null -"),
        ),
        call("movie=", NOTHING, "-f lavfi -i movie=http\\\\://127.0.0.1\\\\:TCP/a -f null -"),
        call("output by tcp:", NOTHING, "-f lavfi -i sine=d=0.1 -f s16le tcp://127.0.0.1:TCP"),
        call("output by udp:", NOTHING, "-f lavfi -i sine=d=0.1 -f s16le udp://127.0.0.1:UDP"),
        call("output by rtp:", NOTHING, "-f lavfi -i sine=d=0.1 -f rtp rtp://127.0.0.1:UDP"),
        call("output by unix:", NOTHING, "-f lavfi -i sine=d=0.1 -f s16le unix:@/socket"),
        trick("SDP", text(SESSION), protocols!("-f sdp -i @/input -t 0.02 -f s16be pipe:1"), Proof::Secret),
    ]
}
