//! A library of drawn dives and gymnastics elements, and three example queries with answers in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;
use uuid::Uuid;

use crate::step::Step;
use reprise_research::synth::{self, Settings, Split};
use reprise_server::app::Example;
use reprise_server::catalog::{Catalog, Visibility};

/// Seed of the library.
const SEED: u64 = 2026;
const CLIPS: usize = 180;
const BROADCASTS: usize = 3;
/// Number of labels. Several clips show each: a query for similar clips needs other clips of its label.
const LABELS: usize = 30;
/// Routines per broadcast; they last several minutes.
const ROUTINES: usize = 30;

/// Folders of videos in the rendered library. Its CSV tables lie beside these folders.
pub(crate) const VIDEOS: [&str; 2] = ["clips", "broadcasts"];

fn settings() -> Settings {
    Settings {
        clips: CLIPS,
        labels: LABELS,
        broadcasts: BROADCASTS,
        routines: ROUTINES,
        triplets: 40,
        ..Settings::new(SEED, Split::Test)
    }
}

/// Renders the library, unless an earlier run did. Returns its folder.
pub(crate) async fn render(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = data_dir.join("sports");
    let root = folder.clone();
    tokio::task::spawn_blocking(move || if is_rendered(&root) { Ok(()) } else { draw(&root) })
        .await?
        .with_context(|| format!("rendering {}", folder.display()))?;
    Ok(folder)
}

/// Whether the library is complete and current. The plan is written last and names its generator.
fn is_rendered(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct PlanFile {
        generator: u32,
        seed: u64,
    }
    let plan = std::fs::read(folder.join("plan.json")).ok();
    let plan = plan.and_then(|bytes| serde_json::from_slice::<PlanFile>(&bytes).ok());
    plan.is_some_and(|it| (it.generator, it.seed) == (synth::GENERATOR, SEED))
}

fn draw(folder: &Path) -> anyhow::Result<()> {
    let step = Step::begin("rendering", "frames")?;
    synth::generate(folder, &settings(), &|done, all| step.set(done, all))?;
    step.end(&format!("rendered {} videos", CLIPS + BROADCASTS))?;
    Ok(())
}

/// A composed, a text and a clip query, as links of the page.
///
/// # Errors
/// The folder's tables can't be read, or the catalog lacks a clip.
pub(crate) async fn examples(catalog: &Catalog, folder: &Path) -> anyhow::Result<Vec<Example>> {
    let stored = stored(catalog).await?;
    let clip = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        stored.get(name).copied().with_context(|| format!("{name} is not in the library"))
    };
    let [query, change] = first(&folder.join("triplets.csv"), ["query_video", "modification"], |_| true)?;
    let [alike, label] = first(&folder.join("labels.csv"), ["video", "label"], |_| true)?;
    let is_shown = |row: &Row| row.get("label") == Some(&label);
    let [text] = first(&folder.join("descriptions.csv"), ["text"], is_shown)?;
    let (query, alike) = (clip(&query)?, clip(&alike)?);
    Ok(vec![
        link(format!("a clip, but “{change}”"), &with_clip(query, Some(&change)))?,
        link(format!("“{text}”"), &[("q", text)])?,
        link("more like a clip".to_owned(), &with_clip(alike, None))?,
    ])
}

/// A video of the catalog.
#[derive(Clone, Copy)]
struct StoredVideo {
    id: Uuid,
    duration_ms: i64,
}

/// Videos of the catalog by file name.
async fn stored(catalog: &Catalog) -> anyhow::Result<HashMap<String, StoredVideo>> {
    let mut stored = HashMap::new();
    let mut after = None;
    loop {
        let videos = catalog.view(&Visibility::All).videos(after, 1000).await?;
        let Some(last) = videos.last().map(|video| video.id) else { return Ok(stored) };
        after = Some(last);
        let known = videos.into_iter().filter_map(|it| {
            Some((it.file_name, StoredVideo { id: it.id, duration_ms: it.facts?.duration_ms }))
        });
        stored.extend(known);
    }
}

/// A row of a table: values by column name.
type Row = HashMap<String, String>;

/// The given columns of the first row that is `wanted`.
fn first<const N: usize>(
    path: &Path,
    columns: [&str; N],
    wanted: impl Fn(&Row) -> bool,
) -> anyhow::Result<[String; N]> {
    let mut table = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    let mut rows = table.deserialize().filter(|row| row.as_ref().map_or(true, &wanted));
    let mut row: Row = rows.next().with_context(|| format!("{} has no such row", path.display()))??;
    let lacking = columns.iter().find(|name| !row.contains_key(**name));
    ensure!(lacking.is_none(), "{} has no column {}", path.display(), lacking.unwrap_or(&""));
    Ok(columns.map(|name| row.remove(name).unwrap_or_default()))
}

fn with_clip(video: StoredVideo, change: Option<&str>) -> Vec<(&'static str, String)> {
    let end = video.duration_ms as f64 / 1000.0;
    let mut query = vec![("clip", video.id.to_string()), ("start", "0".to_owned()), ("end", end.to_string())];
    query.extend(change.map(|change| ("mod", change.to_owned())));
    query
}

fn link(title: String, query: &[(&'static str, String)]) -> anyhow::Result<Example> {
    let url = reqwest::Url::parse_with_params("http://page/", query)?;
    Ok(Example { title, href: format!("/?{}", url.query().unwrap_or_default()) })
}
