//! Language tags for subtitles (a part of BCP 47), and the tag in a file name.

/// Three-letter codes, bibliographic and terminological, of containers and file names, with the two-letter codes
/// that BCP 47 requires.
const CODES: &str = "alb=sq sqi=sq amh=am ara=ar arm=hy hye=hy aze=az baq=eu eus=eu bel=be ben=bn bos=bs bul=bg bur=my \
    mya=my cat=ca chi=zh zho=zh cze=cs ces=cs dan=da dut=nl nld=nl eng=en epo=eo est=et fin=fi fre=fr \
    fra=fr geo=ka kat=ka ger=de deu=de gle=ga glg=gl gre=el ell=el guj=gu heb=he hin=hi hrv=hr hun=hu \
    ice=is isl=is ind=id ita=it jpn=ja kan=kn kaz=kk khm=km kor=ko lat=la lav=lv lit=lt mac=mk mkd=mk \
    mal=ml mar=mr may=ms msa=ms mon=mn nep=ne nob=nb nor=no pan=pa per=fa fas=fa pol=pl por=pt rum=ro \
    ron=ro rus=ru sin=si slo=sk slk=sk slv=sl spa=es srp=sr swa=sw swe=sv tam=ta tel=te tgl=tl tha=th \
    tur=tr ukr=uk urd=ur uzb=uz vie=vi wel=cy cym=cy";

/// The tag of a text in an unknown language.
pub const UNDETERMINED: &str = "und";

/// Normalises a language tag (`en`, `pt-BR`, `zh-Hant`). `None` if it is invalid.
///
/// Three-letter codes of well-known languages become two-letter codes, as BCP 47 requires.
pub fn tag(text: &str) -> Option<String> {
    let mut parts = text.split(['-', '_']);
    let language = parts.next()?.to_ascii_lowercase();
    let is_language = (2..=3).contains(&language.len()) && language.bytes().all(|it| it.is_ascii_lowercase());
    if !is_language || text.len() > 35 {
        return None;
    }
    let mut codes = CODES.split(' ').filter_map(|pair| pair.split_once('='));
    let short = codes.find(|(long, _)| *long == language).map_or(language.as_str(), |(_, short)| short);
    let mut tag = short.to_owned();
    for part in parts {
        tag.push('-');
        tag.push_str(&subtag(part)?);
    }
    Some(tag)
}

/// Scripts are written like `Hant`, regions like `BR`, other subtags in lower case.
fn subtag(part: &str) -> Option<String> {
    if !(1..=8).contains(&part.len()) || !part.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return None;
    }
    let is_word = part.bytes().all(|it| it.is_ascii_alphabetic());
    Some(match part.len() {
        2 if is_word => part.to_ascii_uppercase(),
        4 if is_word => format!("{}{}", part[..1].to_ascii_uppercase(), part[1..].to_ascii_lowercase()),
        _ => part.to_ascii_lowercase(),
    })
}

/// Splits a subtitle file's name: `lecture.pt-BR.srt` gives `("lecture", "pt-BR")`. The language is
/// [`UNDETERMINED`] if the name has none.
pub fn of_file_name(name: &str) -> (&str, String) {
    let stem = stem_of(name);
    let told = stem.rsplit_once('.').and_then(|(before, last)| Some((before, tag(last)?)));
    match told {
        Some((before, language)) if !before.is_empty() => (before, language),
        _ => (stem, UNDETERMINED.to_owned()),
    }
}

/// Whether a file name ends in `.srt` or `.vtt`.
pub fn is_subtitle_name(name: &str) -> bool {
    stem_of(name) != name
}

/// The name without `.srt` or `.vtt`.
pub fn stem_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, "srt" | "vtt" | "SRT" | "VTT" | "Srt" | "Vtt")) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(tag(text).as_deref(), expected, "{text:?}");
    }

    #[track_caller]
    fn check_name(name: &str, expected: (&str, &str)) {
        let (stem, language) = of_file_name(name);
        assert_eq!((stem, language.as_str()), expected, "{name:?}");
    }

    #[test]
    fn tags_have_one_spelling() {
        check("en", Some("en"));
        check("ENG", Some("en"));
        check("pt-br", Some("pt-BR"));
        check("zh_hant_TW", Some("zh-Hant-TW"));
        check("es-419", Some("es-419"));
        check("und", Some("und"));
        check("en-x-2", Some("en-x-2"));
        for none in
            ["", "e", "english", "e1", "en-", "en--US", "en-toolongasubtag", "en/US", "é", "en\0", "-en"]
        {
            check(none, None);
        }
    }

    #[test]
    fn the_language_stands_between_name_and_extension() {
        check_name("lecture.srt", ("lecture", "und"));
        check_name("lecture.en.srt", ("lecture", "en"));
        check_name("lecture.pt-BR.vtt", ("lecture", "pt-BR"));
        check_name("week 1. intro.eng.SRT", ("week 1. intro", "en"));
        check_name("🎬 datasets 🤗.vtt", ("🎬 datasets 🤗", "und"));
        check_name("v1.2.srt", ("v1.2", "und"));
        check_name(".en.srt", (".en", "und"));
        check_name("part", ("part", "und"));
    }
}
