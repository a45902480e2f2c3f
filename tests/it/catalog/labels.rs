//! Tags and folders: written, counted, filtered by, and changed for many videos at once, on both databases.

use std::sync::Arc;

use reprise_server::catalog::{
    CatalogError, Filter, Folder, LabelChange, Labelled, MOST_TAGS, NewVideo, Tag, Tags, VideoFilter,
    VideoList, VideoPatch, Visibility,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::samples::{add, add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    a_video_keeps_the_spelling_of_its_tags_and_folder,
    lists_and_filters_compare_without_case,
    tags_and_folders_are_counted_over_visible_videos,
    folders_are_listed_page_by_page,
    many_videos_change_together_or_not_at_all,
    a_key_of_a_folder_moves_nothing_out_of_it,
);

fn tags(texts: &[&str]) -> Tags {
    Tags::parse(&texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn folder(path: &str) -> Folder {
    Folder::parse(path).unwrap()
}

fn labelled(name: &str, in_folder: &str, with: &[&str]) -> NewVideo {
    NewVideo { tags: tags(with), folder: folder(in_folder), ..video(name) }
}

async fn a_video_keeps_the_spelling_of_its_tags_and_folder(opened: &Opened) {
    let view = opened.catalog.view(ALL);
    let new = labelled("a", "Season 2026/Finals", &["vault", "Été", "VAULT", "it's 100 %"]);
    let (stored, _) = add(&opened.catalog, new).await;
    assert_eq!(stored.tags, ["it's 100 %", "vault", "Été"]);
    assert_eq!(stored.folder.as_deref(), Some("Season 2026/Finals"));
    let patch = VideoPatch { tags: Some(tags(&["B", "a"])), ..VideoPatch::default() };
    let changed = view.update_video(stored.id, patch).await.unwrap().unwrap();
    assert_eq!((changed.tags, &changed.folder), (vec!["a".to_owned(), "B".to_owned()], &stored.folder));
    let none =
        VideoPatch { tags: Some(Tags::default()), folder: Some(Folder::default()), ..VideoPatch::default() };
    let changed = view.update_video(stored.id, none).await.unwrap().unwrap();
    assert_eq!((changed.tags.len(), changed.folder), (0, None));
}

/// Checks the titles that a list and the same filter select.
async fn check(opened: &Opened, list: &VideoList, filter: &Value, expected: &[&str]) {
    let view = opened.catalog.view(ALL);
    let listed = view.videos_of(list, None, 100).await.unwrap();
    let titles: Vec<&str> = listed.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(titles, expected, "{list:?}");
    let visibility = Visibility::Matching(Arc::new(VideoFilter::parse(filter).unwrap()));
    let seen = opened.catalog.view(&visibility).videos(None, 100).await.unwrap();
    assert_eq!(seen, listed, "{filter}");
    let found = view.videos_matching(Some(&Filter::parse(filter).unwrap())).await.unwrap();
    assert_eq!(found.len(), expected.len(), "{filter}");
}

async fn lists_and_filters_compare_without_case(opened: &Opened) {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    for (name, path, with) in [
        ("a", "", &["dive", "Final"][..]),
        ("b", "Season", &["Dive"]),
        ("c", "season/finals", &[]),
        ("d", "Season 2/finals", &["diver"]),
        ("e", "season/Finals/day 1", &["final", "dive"]),
    ] {
        add_ready(&opened.catalog, labelled(name, path, with), 1, &[&tiny]).await;
    }
    let of_tags = |texts: &[&str]| VideoList { tags: tags(texts), ..VideoList::default() };
    let within = |path: &str, only_itself: bool| VideoList {
        folder: Some(folder(path)),
        only_itself,
        ..VideoList::default()
    };
    let test = |field: &str, operator: &str, value: Value| json!({"field": field, operator: value});
    check(opened, &of_tags(&["DIVE"]), &test("tags", "eq", json!("DIVE")), &["a", "b", "e"]).await;
    let both = json!({"all": [test("tags", "eq", json!("dive")), test("tags", "eq", json!("FINAL"))]});
    check(opened, &of_tags(&["final", "dive"]), &both, &["a", "e"]).await;
    check(opened, &of_tags(&["none"]), &test("tags", "in", json!([])), &[]).await;
    check(opened, &within("season", false), &test("folder", "under", json!("Season")), &["b", "c", "e"])
        .await;
    check(opened, &within("SEASON", true), &test("folder", "eq", json!("season")), &["b"]).await;
    check(
        opened,
        &within("season/FINALS", false),
        &test("folder", "under", json!("season/finals")),
        &["c", "e"],
    )
    .await;
    check(opened, &within("", true), &test("folder", "exists", json!(false)), &["a"]).await;
    let all = ["a", "b", "c", "d", "e"];
    check(opened, &within("", false), &test("folder", "under", json!("")), &all).await;
    let some = |filter: Value| async move { check_filter(opened, &filter).await };
    assert_eq!(some(test("tags", "exists", json!(false))).await, ["c"]);
    assert_eq!(some(test("tags", "in", json!(["diver", "FINAL"]))).await, ["a", "d", "e"]);
    assert_eq!(some(test("folder", "in", json!(["SEASON", "season 2/finals"]))).await, ["b", "d"]);
    assert_eq!(some(json!({"not": test("folder", "exists", json!(true))})).await, ["a"]);
    assert_eq!(some(json!({"not": test("tags", "eq", json!("dive"))})).await, ["c", "d"]);
}

async fn check_filter(opened: &Opened, filter: &Value) -> Vec<String> {
    let visibility = Visibility::Matching(Arc::new(VideoFilter::parse(filter).unwrap()));
    let seen = opened.catalog.view(&visibility).videos(None, 100).await.unwrap();
    seen.into_iter().map(|it| it.title).collect()
}

async fn tags_and_folders_are_counted_over_visible_videos(opened: &Opened) {
    let catalog = &*opened.catalog;
    add(catalog, labelled("a", "x/y", &["Dive", "vault"])).await;
    add(catalog, labelled("b", "X", &["dive"])).await;
    let (gone, _) = add(catalog, labelled("c", "x/z", &["dive", "gone"])).await;
    add(catalog, NewVideo { metadata: json!({"team": "b"}), ..labelled("d", "secret/x", &["secret"]) }).await;
    let view = catalog.view(ALL);
    view.delete_video(gone.id).await.unwrap().unwrap();
    let not_b = json!({"not": {"field": "metadata.team", "eq": "b"}});
    let visibility = Visibility::Matching(Arc::new(VideoFilter::parse(&not_b).unwrap()));
    for (view, secret) in [(view, true), (catalog.view(&visibility), false)] {
        let mut expected = vec![("dive", 2), ("secret", 1), ("vault", 1)];
        expected.retain(|it| secret || it.0 != "secret");
        let counts = view.tag_counts(None, None, 10).await.unwrap();
        let shown: Vec<_> = counts.iter().map(|it| (it.tag.to_lowercase(), it.videos)).collect();
        let shown: Vec<_> = shown.iter().map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(shown, expected);
        let rest = view.tag_counts(None, Some(&counts[0].key), 10).await.unwrap();
        assert_eq!(rest, counts[1..]);
        let some = view.tag_counts(Some(&Tag::parse("VA").unwrap()), None, 10).await.unwrap();
        assert_eq!(some.len(), 1, "{some:?}");
        let folders = view.folder_counts(&Folder::default(), None, 10).await.unwrap();
        assert_eq!(folders.len(), if secret { 2 } else { 1 }, "{folders:?}");
        let x = folders.last().unwrap();
        assert_eq!((x.folder.key(), x.videos, x.total, x.has_folders), (&b"x"[..], 1, 2, true));
        assert_eq!(view.videos_in_folder(&folder("x/y")).await.unwrap(), 1);
    }
}

async fn folders_are_listed_page_by_page(opened: &Opened) {
    let catalog = &*opened.catalog;
    for (number, path) in ["a", "a b", "a/c/d", "a/c/e", "a-b/x", "b/c", "B", ""].into_iter().enumerate() {
        add(catalog, labelled(&number.to_string(), path, &[])).await;
    }
    let view = catalog.view(ALL);
    let mut listed = Vec::new();
    loop {
        let after = listed.last().map(|it: &reprise_server::catalog::FolderCount| it.folder.key().to_vec());
        let page = view.folder_counts(&Folder::default(), after.as_deref(), 1).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    let shown: Vec<_> =
        listed.iter().map(|it| (it.folder.path().to_lowercase(), it.videos, it.total)).collect();
    let expected = [("a", 1, 3), ("a b", 1, 1), ("a-b", 0, 1), ("b", 1, 2)];
    assert_eq!(shown, expected.map(|it| (it.0.to_owned(), it.1, it.2)));
    let inner = view.folder_counts(&folder("A"), None, 10).await.unwrap();
    assert_eq!((inner.len(), inner[0].folder.path(), inner[0].total), (1, "a/c", 2));
    assert!(view.folder_counts(&folder("A"), Some(b"a\x01c"), 10).await.unwrap().is_empty());
    assert!(view.folder_counts(&folder("none"), None, 10).await.unwrap().is_empty());
    assert!(view.folder_counts(&folder("b"), Some(b"a"), 10).await.unwrap().len() == 1);
}

async fn many_videos_change_together_or_not_at_all(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (one, _) = add(catalog, labelled("a", "old", &["x", "keep"])).await;
    let (two, _) = add(catalog, labelled("b", "", &["X"])).await;
    let view = catalog.view(ALL);
    let change = LabelChange {
        videos: vec![two.id, one.id, two.id],
        add: tags(&["New", "KEEP"]),
        remove: tags(&["x"]),
        folder: Some(folder("new")),
    };
    let mut before = Vec::new();
    for _ in 0..2 {
        let Labelled::Done(videos) = view.label_videos(&change).await.unwrap() else { panic!("refused") };
        assert_eq!(videos.iter().map(|it| it.id).collect::<Vec<_>>(), [one.id, two.id]);
        assert!(videos.iter().all(|it| it.tags == ["KEEP", "New"] && it.folder.as_deref() == Some("new")));
        before = videos;
    }
    let missing = Uuid::now_v7();
    let wrong = LabelChange {
        videos: vec![one.id, missing],
        folder: Some(folder("elsewhere")),
        ..LabelChange::default()
    };
    assert_eq!(view.label_videos(&wrong).await.unwrap(), Labelled::Missing(missing));
    let many: Vec<String> = (0..MOST_TAGS).map(|it| format!("tag {it}")).collect();
    let wrong = LabelChange { add: Tags::parse(&many).unwrap(), ..wrong };
    let wrong = LabelChange { videos: vec![one.id], ..wrong };
    assert_eq!(view.label_videos(&wrong).await.unwrap(), Labelled::TooManyTags(one.id));
    assert_eq!(view.videos(None, 9).await.unwrap(), before, "a refused change changes nothing");
}

async fn a_key_of_a_folder_moves_nothing_out_of_it(opened: &Opened) {
    let catalog = &*opened.catalog;
    let filter = json!({"any": [{"field": "folder", "under": "Team A"}, {"field": "tags", "eq": "shared"}]});
    let visibility = Visibility::Matching(Arc::new(VideoFilter::parse(&filter).unwrap()));
    let view = catalog.view(&visibility);
    let refused = view.add_video(labelled("x", "team b", &[]), None).await;
    assert!(matches!(refused, Err(CatalogError::Outside)), "{refused:?}");
    let (theirs, _) = add(catalog, labelled("b", "team b", &[])).await;
    let (shared, _) = add(catalog, labelled("s", "", &["shared"])).await;
    view.add_video(labelled("a", "team a/x", &[]), None).await.unwrap();
    let mine = view.videos(None, 9).await.unwrap();
    assert_eq!(mine.iter().map(|it| it.title.as_str()).collect::<Vec<_>>(), ["s", "a"]);
    let moved = |videos: &[Uuid], to: &str| LabelChange {
        videos: videos.to_vec(),
        folder: Some(folder(to)),
        ..LabelChange::default()
    };
    let id = mine[1].id;
    let refused = view.label_videos(&moved(&[shared.id, id], "team b")).await;
    assert!(matches!(refused, Err(CatalogError::Outside)), "{refused:?}");
    let patch = VideoPatch { folder: Some(Folder::default()), ..VideoPatch::default() };
    let refused = view.update_video(id, patch).await;
    assert!(matches!(refused, Err(CatalogError::Outside)), "{refused:?}");
    assert_eq!(
        view.label_videos(&moved(&[theirs.id], "team a")).await.unwrap(),
        Labelled::Missing(theirs.id)
    );
    let done = view.label_videos(&moved(&[shared.id, id], "TEAM A/y")).await.unwrap();
    assert!(matches!(done, Labelled::Done(videos) if videos.len() == 2));
}
