//! Signed links: their parts in a request, what they show, and whether they hold.

use uuid::Uuid;

use super::error::ApiError;
use crate::access::Link;
use crate::app::App;
use crate::catalog::instant;

/// What a link shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Video(Uuid),
    Clip(Uuid),
    Export(Uuid),
}

impl Target {
    /// `None`: no link to this path can be signed.
    pub(super) fn of(path: &str) -> Option<Target> {
        let parts: Vec<&str> = path.strip_prefix("/v1/")?.split('/').collect();
        let id = parts.get(1)?.parse().ok()?;
        match parts[..] {
            ["videos", _, "media" | "thumbnail" | "sprites"] => Some(Target::Video(id)),
            ["videos", _, "sprites", sheet] => sheet.parse::<u32>().ok().map(|_| Target::Video(id)),
            ["clips", _, "preview" | "thumbnail"] => Some(Target::Clip(id)),
            ["exports", _, "download"] => Some(Target::Export(id)),
            _ => None,
        }
    }
}

/// The parts of a signed link's query string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signed {
    /// The reel, if the link is to a reel and the media of its videos.
    pub(super) reel: Option<Uuid>,
    pub(super) key: Option<Uuid>,
    pub(super) expires: i64,
    pub(super) signature: String,
    /// The other parameters.
    pub(super) rest: String,
}

impl Signed {
    /// `None` without a signature. A part that can't be read leaves the signature wrong: no reel has the id nil.
    pub(super) fn of(query: &str) -> Option<Signed> {
        let (mut reel, mut key, mut expires, mut signature, mut rest) = (None, None, 0, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("reel", id)) => reel = Some(id.parse().unwrap_or_default()),
                Some(("key", id)) => key = id.parse().ok(),
                Some(("expires", seconds)) => expires = seconds.parse().unwrap_or_default(),
                Some(("signature", text)) => signature = Some(text.to_owned()),
                _ => rest.push(pair),
            }
        }
        Some(Signed { reel, key, expires, signature: signature?, rest: rest.join("&") })
    }
}

/// Checks that this library has signed a link, and that it has not expired.
///
/// # Errors
/// 401.
pub(super) fn check(app: &App, link: Link<'_>, signature: &str) -> Result<(), ApiError> {
    let is_valid = app.links.has_signed(link, signature) && instant::now_ms() / 1000 < link.expires;
    if is_valid { Ok(()) } else { Err(wrong()) }
}

/// The same for every link that is not valid, so that nobody learns why.
pub(super) fn wrong() -> ApiError {
    ApiError::unauthorized("this link is not valid, or has expired")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: Option<(i64, &str, &str)>) {
        let read = Signed::of(query).map(|it| (it.expires, it.signature, it.rest));
        assert_eq!(
            read.as_ref().map(|(at, it, rest)| (*at, it.as_str(), rest.as_str())),
            expected,
            "{query}"
        );
    }

    #[test]
    fn a_signature_is_taken_out_of_the_query() {
        check("", None);
        check("rendition=web", None);
        check("expires=5&signature=ab", Some((5, "ab", "")));
        check("rendition=web&key=x&expires=5&signature=ab", Some((5, "ab", "rendition=web")));
        check("signature=&expires=x", Some((0, "", "")));
    }

    #[test]
    fn only_media_has_links() {
        let id = Uuid::now_v7();
        assert_eq!(Target::of(&format!("/v1/videos/{id}/media")), Some(Target::Video(id)));
        assert_eq!(Target::of(&format!("/v1/clips/{id}/preview")), Some(Target::Clip(id)));
        assert_eq!(Target::of(&format!("/v1/videos/{id}/sprites")), Some(Target::Video(id)));
        assert_eq!(Target::of(&format!("/v1/videos/{id}/sprites/12")), Some(Target::Video(id)));
        for path in [
            format!("/v1/videos/{id}"),
            format!("/v1/clips/{id}/media"),
            "/v1/videos/x/media".to_owned(),
            format!("/v1/videos/{id}/media/x"),
            format!("/v1/videos/{id}/sprites/x"),
            format!("/v1/videos/{id}/sprites/1/2"),
            format!("/v1/clips/{id}/sprites"),
            "/v1/videos".to_owned(),
        ] {
            assert_eq!(Target::of(&path), None, "{path}");
        }
    }
}
