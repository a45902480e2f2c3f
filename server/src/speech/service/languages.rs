//! The languages of Whisper by their English names, which some services answer.

use crate::subtitles::language;

const NAMES: &str = "af=afrikaans am=amharic ar=arabic as=assamese az=azerbaijani ba=bashkir be=belarusian bg=bulgarian \
    bn=bengali bo=tibetan br=breton bs=bosnian ca=catalan cs=czech cy=welsh da=danish de=german el=greek en=english \
    es=spanish et=estonian eu=basque fa=persian fi=finnish fo=faroese fr=french gl=galician gu=gujarati ha=hausa \
    haw=hawaiian he=hebrew hi=hindi hr=croatian ht=haitian_creole hu=hungarian hy=armenian id=indonesian is=icelandic \
    it=italian ja=japanese jv=javanese ka=georgian kk=kazakh km=khmer kn=kannada ko=korean la=latin lb=luxembourgish \
    ln=lingala lo=lao lt=lithuanian lv=latvian mg=malagasy mi=maori mk=macedonian ml=malayalam mn=mongolian mr=marathi \
    ms=malay mt=maltese my=myanmar ne=nepali nl=dutch nn=nynorsk no=norwegian oc=occitan pa=punjabi pl=polish ps=pashto \
    pt=portuguese ro=romanian ru=russian sa=sanskrit sd=sindhi si=sinhala sk=slovak sl=slovenian sn=shona so=somali \
    sq=albanian sr=serbian su=sundanese sv=swedish sw=swahili ta=tamil te=telugu tg=tajik th=thai tk=turkmen tl=tagalog \
    tr=turkish tt=tatar uk=ukrainian ur=urdu uz=uzbek vi=vietnamese yi=yiddish yo=yoruba yue=cantonese zh=chinese";

/// The tag of a language that a service names in English or by a code; `None` if it is neither.
pub(super) fn tag(named: &str) -> Option<String> {
    let name = named.trim().to_lowercase().replace(' ', "_");
    let mut known = NAMES.split_whitespace().filter_map(|pair| pair.split_once('='));
    match known.find(|(_, it)| *it == name) {
        Some((code, _)) => Some(code.to_owned()),
        // Whisper's own code of Javanese is not the standard's.
        None if name == "jw" => Some("jv".to_owned()),
        None => language::tag(&name).filter(|tag| tag != language::UNDETERMINED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(named: &str, expected: Option<&str>) {
        assert_eq!(tag(named).as_deref(), expected, "{named}");
    }

    #[test]
    fn names_and_codes_become_tags() {
        check("english", Some("en"));
        check(" German ", Some("de"));
        check("haitian creole", Some("ht"));
        check("en", Some("en"));
        check("pt_br", Some("pt-BR"));
        check("jw", Some("jv"));
        check("yue", Some("yue"));
        check("", None);
        check("und", None);
        check("???", None);
    }
}
