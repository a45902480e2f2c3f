//! `Upload-Metadata`: the fields of a plain upload, as names with Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::add::{self, Details};
use super::super::error::ApiError;
use super::super::extract;

/// The name of the header, for errors.
const HEADER: &str = "Upload-Metadata";
/// Fields that common clients send by themselves. The server finds out by itself what they say.
const IGNORED: [&str; 3] = ["filetype", "type", "relativePath"];
/// Fields of a plain upload.
const FIELDS: [&str; 6] = ["title", "metadata", "tags", "folder", "recorded_at", "segmentation"];

/// What a client says of a file.
pub(super) struct Said {
    pub(super) file_name: String,
    pub(super) details: Details,
}

/// Reads the header. Its fields are not checked yet.
///
/// # Errors
/// 422 with the name of the header or of the field.
pub(super) fn parse(text: &str) -> Result<Said, ApiError> {
    if text.len() > extract::MAX_PART {
        return Err(ApiError::invalid(HEADER, format!("this header may have {} bytes", extract::MAX_PART)));
    }
    let mut details = Details::default();
    let (mut file_name, mut other_name) = (None, None);
    let mut seen = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, encoded) = pair.split_once(' ').unwrap_or((pair, ""));
        let wrong = || ApiError::invalid(HEADER, format!("the value of `{name}` is not Base64"));
        let bytes = STANDARD.decode(encoded.trim()).map_err(|_| wrong())?;
        if seen.contains(&name) {
            return Err(ApiError::invalid(HEADER, format!("`{name}` is there twice")));
        }
        seen.push(name);
        match name {
            "filename" => file_name = Some(add::utf8(&bytes, name)?),
            "name" => other_name = Some(add::utf8(&bytes, name)?),
            name if IGNORED.contains(&name) => {}
            "tags" => {
                add::utf8(&bytes, name)?.split(',').try_for_each(|tag| details.part(name, tag.as_bytes()))?
            }
            name if FIELDS.contains(&name) => details.part(name, &bytes)?,
            name => {
                let known = FIELDS.join(", ");
                return Err(ApiError::invalid(
                    HEADER,
                    format!("there is no field `{name}`; use filename, {known}"),
                ));
            }
        }
    }
    let file_name = add::shown_name(&file_name.or(other_name).unwrap_or_default());
    Ok(Said { file_name, details })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None`: refused.
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(parse(text).ok().map(|said| said.file_name).as_deref(), expected, "{text}");
    }

    #[test]
    fn the_header_has_names_with_base64() {
        check("", Some("video"));
        check("filename ZGl2ZS5tcDQ=", Some("dive.mp4"));
        check("filename ZGl2ZS5tcDQ=,title VmF1bHQ=, filetype dmlkZW8vbXA0", Some("dive.mp4"));
        check("name ZGl2ZS5tcDQ=,type", Some("dive.mp4"));
        check("filename ZGl2ZS5tcDQ=,tags YSxi,folder YS9i", Some("dive.mp4"));
        check("filename Li4vLi4vZXRjL3Bhc3N3ZA==", Some("passwd"));
        for wrong in [
            "filename ???",
            "filename ZGl2ZQ==,filename ZGl2ZQ==",
            "colour cmVk",
            "metadata e30",
            "filename /w==",
            "tags /w==",
        ] {
            check(wrong, None);
        }
    }
}
