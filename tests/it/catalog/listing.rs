//! Lists of videos: filters, orders and pages, on both databases. The oracle sorts and filters in memory.

use std::sync::Arc;

use reprise_server::catalog::{
    CatalogError, Folder, LabelChange, ListedWord, NewVideo, PlaceKey, Tags, Video, VideoFilter, VideoList,
    VideoOrder, VideoPatch, VideoPlace, VideoState, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use super::samples::{add, add_ready, space, video};
use super::{ALL, Opened, on_both};

on_both!(
    every_order_is_the_same_in_pages_of_any_size,
    words_are_found_in_all_names_of_a_video,
    states_warnings_and_times_limit_a_list,
    a_place_of_another_order_is_refused,
);

/// Titles in the order of a list.
const TITLES: [&str; 9] =
    ["ångström", "Ärger", "eclair", "Éclairs", "final 2", "Final 09", "final 10", "final 10", "zebra"];

fn words(text: &str) -> VideoList {
    VideoList { words: ListedWord::all(text).expect("few words"), ..VideoList::default() }
}

fn titled(number: usize, title: &str) -> NewVideo {
    let bytes = [700, 300, 300, 900, 100, 500, 500, 200, 800][number];
    NewVideo { title: title.to_owned(), bytes, ..video(&format!("file-{number}")) }
}

/// Reads a list page by page, and checks that pages of one size are full.
async fn read(opened: &Opened, list: &VideoList, limit: u32) -> Vec<Video> {
    let (mut all, mut after): (Vec<Video>, Option<VideoPlace>) = (Vec::new(), None);
    loop {
        let page = opened.catalog.view(ALL).videos_of(list, after.as_ref(), limit).await.unwrap();
        after = page.last().map(|last| list.order.place(last));
        let is_last = page.len() < limit as usize;
        all.extend(page);
        if is_last {
            return all;
        }
    }
}

/// Checks the titles that a list holds, in pages of every size.
async fn check(opened: &Opened, list: &VideoList, expected: &[&str]) {
    for limit in [1, 2, 4, 100] {
        let titles: Vec<String> = read(opened, list, limit).await.into_iter().map(|it| it.title).collect();
        assert_eq!(titles, expected, "{list:?}, {limit} a page");
    }
    let number = opened.catalog.view(ALL).number_of_videos(list).await.unwrap();
    assert_eq!(number, expected.len() as u64, "{list:?}");
}

async fn every_order_is_the_same_in_pages_of_any_size(opened: &Opened) {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    let mut added = Vec::new();
    for (number, place) in [4, 0, 8, 2, 6, 1, 7, 3, 5].into_iter().enumerate() {
        // The last ones are not decoded yet.
        let new = titled(place, TITLES[place]);
        if number < 6 {
            add_ready(&opened.catalog, new, 1 + place as u32 % 4, &[&tiny]).await;
        } else {
            add(&opened.catalog, new).await;
        }
        added.push(TITLES[place]);
    }
    let ordered = |order| VideoList { order, ..VideoList::default() };
    check(opened, &ordered(VideoOrder::Oldest), &added).await;
    added.reverse();
    check(opened, &ordered(VideoOrder::Newest), &added).await;
    check(opened, &ordered(VideoOrder::Title), &TITLES).await;
    let everything = read(opened, &VideoList::default(), 100).await;
    let titles = |videos: &[Video]| videos.iter().map(|it| it.title.clone()).collect::<Vec<_>>();
    for (order, key) in [
        (
            VideoOrder::Longest,
            (|it: &Video| it.facts.as_ref().map_or(-1, |facts| facts.duration_ms)) as fn(&Video) -> i64,
        ),
        (VideoOrder::Largest, |it: &Video| it.bytes),
    ] {
        let mut expected = everything.clone();
        expected.sort_by_key(|it| (-key(it), it.id));
        let expected = titles(&expected);
        check(opened, &ordered(order), &expected.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
}

async fn words_are_found_in_all_names_of_a_video(opened: &Opened) {
    let labelled = |name: &str, folder: &str, tags: &[&str]| NewVideo {
        folder: Folder::parse(folder).unwrap(),
        tags: Tags::parse(&tags.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()).unwrap(),
        ..video(name)
    };
    let (a, _) = add(&opened.catalog, labelled("Übung am Reck", "Saison 2026/Köln", &["100 %", "Été"])).await;
    let (b, _) =
        add(&opened.catalog, NewVideo { title: "don't_look".to_owned(), ..labelled("raw-file", "", &[]) })
            .await;
    for (text, expected) in [
        ("ubung", &["Übung am Reck"][..]),
        ("RECK koln", &["Übung am Reck"]),
        ("reck berlin", &[]),
        ("ete 100", &["Übung am Reck"]),
        ("0 %", &["Übung am Reck"]),
        ("t_l", &["don't_look"]),
        ("dont", &["don't_look"]),
        ("raw-file.mp4", &["don't_look"]),
        ("%", &["Übung am Reck"]),
        ("_", &["don't_look"]),
        ("\\", &[]),
        (".mp4", &["Übung am Reck", "don't_look"]),
        ("", &["Übung am Reck", "don't_look"]),
    ] {
        check(opened, &words(text), expected).await;
    }
    // A change of a name changes what is found.
    let view = opened.catalog.view(ALL);
    let patch = VideoPatch { title: Some("Boden".to_owned()), ..VideoPatch::default() };
    view.update_video(b.id, patch).await.unwrap();
    let change = LabelChange {
        videos: vec![a.id],
        folder: Some(Folder::parse("Archiv").unwrap()),
        ..LabelChange::default()
    };
    view.label_videos(&change).await.unwrap();
    check(opened, &words("look"), &[]).await;
    check(opened, &words("boden"), &["Boden"]).await;
    check(opened, &words("archiv"), &["Übung am Reck"]).await;
    check(opened, &words("saison"), &[]).await;
    let nobody = VideoFilter::parse(&json!({"field": "tags", "eq": "none"})).unwrap();
    let nothing = opened
        .catalog
        .view(&Visibility::Matching(Arc::new(nobody)))
        .videos_of(&words("archiv"), None, 9)
        .await
        .unwrap();
    assert_eq!(nothing, []);
}

async fn states_warnings_and_times_limit_a_list(opened: &Opened) {
    let tiny = space(&opened.catalog, "tiny", 4).await;
    // The sample of an ingest has a warning.
    add_ready(&opened.catalog, video("ready"), 1, &[&tiny]).await;
    add(&opened.catalog, video("pending")).await;
    let of_state = |state| VideoList { state: Some(state), ..VideoList::default() };
    check(opened, &of_state(VideoState::Ready), &["ready"]).await;
    check(opened, &of_state(VideoState::Pending), &["pending"]).await;
    check(opened, &of_state(VideoState::Failed), &[]).await;
    let with = |warned| VideoList { warned: Some(warned), ..VideoList::default() };
    check(opened, &with(true), &["ready"]).await;
    check(opened, &with(false), &["pending"]).await;
    let since = |added_since_ms| VideoList { added_since_ms: Some(added_since_ms), ..VideoList::default() };
    check(opened, &since(0), &["ready", "pending"]).await;
    check(opened, &since(i64::MAX), &[]).await;
}

async fn a_place_of_another_order_is_refused(opened: &Opened) {
    let place = VideoPlace { key: PlaceKey::Number(7), id: Uuid::nil() };
    let list = VideoList { order: VideoOrder::Title, ..VideoList::default() };
    let refused = opened.catalog.view(ALL).videos_of(&list, Some(&place), 9).await;
    assert!(matches!(refused, Err(CatalogError::Invalid(_))), "{refused:?}");
}
