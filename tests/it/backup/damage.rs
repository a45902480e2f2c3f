//! Damaged backups: named, refused, and restored without what is damaged.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{complains, prints, prints_json, shown};
use crate::faults::bed::{Bed, assert_whole, on_both, text, videos};

on_both!(a_damaged_backup_is_named_and_refused_and_the_rest_restored);

/// A backup of three videos.
struct Saved {
    folder: PathBuf,
    manifest: Value,
}

async fn a_damaged_backup_is_named_and_refused_and_the_rest_restored(bed: &Bed) {
    let saved = saved(bed).await;
    let id = text(&saved.manifest, "/videos/1/id").to_owned();
    let rows = &saved.manifest["videos"][1]["rows"];
    let middle = rows["offset"].as_u64().unwrap() + rows["length"].as_u64().unwrap() / 2;
    let media = text(&saved.manifest, "/videos/1/media/file").to_owned();
    saved.check(bed, |folder| flip(&folder.join("tables/videos.jsonl"), middle), &id, Some(2)).await;
    saved.check(bed, |folder| flip(&folder.join(&media), 1000), &id, Some(2)).await;
    saved.check(bed, |folder| fs::remove_file(folder.join(&media)).unwrap(), &id, Some(2)).await;
    let cut = |folder: &Path| {
        fs::File::options().write(true).open(folder.join(&media)).unwrap().set_len(10).unwrap();
    };
    saved.check(bed, cut, "has 10 bytes", Some(2)).await;
    saved.check(bed, |folder| flip(&folder.join("tables/secrets.jsonl"), 5), "table secrets", Some(3)).await;
    saved.check(bed, |folder| flip(&folder.join("tables/spaces.jsonl"), 5), "table spaces", None).await;
    saved.check(bed, |folder| flip(&folder.join("manifest.json"), 100), "no whole backup", None).await;
    let forget = |folder: &Path| fs::remove_file(folder.join("manifest.json")).unwrap();
    saved.check(bed, forget, "no whole backup", None).await;
}

async fn saved(bed: &Bed) -> Saved {
    let server = bed.start(&[]);
    for number in 0..3 {
        server.ingest(&bed.film(number, 2)).await;
    }
    assert!(server.stop(), "it did not stop well");
    let folder = bed.folder().join("backup");
    prints(bed, &["backup", shown(&folder)]);
    let manifest = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    Saved { folder, manifest }
}

fn flip(file: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

impl Saved {
    /// Damages a copy. The restore is refused with `named`; with `--skip-damaged` it restores `rest` videos, or is
    /// refused as well.
    async fn check(&self, bed: &Bed, damage: impl Fn(&Path), named: &str, rest: Option<usize>) {
        let target = bed.fresh().await;
        let copy = target.folder().join("copy");
        for folder in ["tables", "media", ""] {
            fs::create_dir_all(copy.join(folder)).unwrap();
            for entry in fs::read_dir(self.folder.join(folder)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    fs::copy(entry.path(), copy.join(folder).join(entry.file_name())).unwrap();
                }
            }
        }
        damage(&copy);
        let said = complains(&target, &["restore", shown(&copy)]);
        assert!(said.contains(named), "{said}");
        let skip = ["restore", "--skip-damaged", "--json", shown(&copy)];
        let Some(rest) = rest else {
            complains(&target, &skip);
            return;
        };
        // The refused restore has left the database empty.
        let report = prints_json(&target, &skip);
        assert_eq!(report["videos"], json!(rest), "{report}");
        assert!(report["skipped"][0].as_str().unwrap().contains(named), "{report}");
        let server = target.start(&[]);
        let left = videos(&server).await;
        assert_eq!(left.len(), rest, "{left:?}");
        for video in left {
            assert_whole(&server, text(&video, "/id")).await;
        }
    }
}
