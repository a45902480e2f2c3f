//! Models added to a running server, and query kinds moved to them.

use reprise_server::catalog::{Activation, CatalogError};
use reprise_server::terms::QueryKind;

use super::samples::{add_ready, space, video};
use super::{Opened, on_both};

on_both!(
    an_added_space_is_known_as_such_until_it_is_forgotten,
    the_last_move_of_a_kind_counts,
    a_kind_goes_to_a_space_that_is_there,
);

async fn an_added_space_is_known_as_such_until_it_is_forgotten(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    assert!(!tiny.added && !other.added);
    catalog.keep_space(other.key).await.unwrap();
    // A second registration changes nothing.
    assert!(space(catalog, "other", 3).await.added);
    add_ready(catalog, video("a"), 2, &[&other]).await;
    let added = async || catalog.spaces().await.unwrap().into_iter().map(|it| (it.added, it.vectors));
    assert!(added().await.eq([(false, 0), (true, 3)]));
    catalog.forget_added().await.unwrap();
    assert!(added().await.eq([(false, 0), (false, 3)]), "the vectors stay");
}

async fn the_last_move_of_a_kind_counts(opened: &Opened) {
    let catalog = &*opened.catalog;
    let (tiny, other) = (space(catalog, "tiny", 4).await, space(catalog, "other", 3).await);
    let moved =
        |kind, space, named: Option<&str>| Activation { kind, space, named: named.map(str::to_owned) };
    assert_eq!(catalog.activations().await.unwrap(), []);
    catalog.activate(&[]).await.unwrap();
    let first = [moved(QueryKind::Text, tiny.key, Some("x")), moved(QueryKind::Clip, tiny.key, None)];
    catalog.activate(&first).await.unwrap();
    catalog.activate(&[moved(QueryKind::Text, other.key, None)]).await.unwrap();
    let expected = [moved(QueryKind::Clip, tiny.key, None), moved(QueryKind::Text, other.key, None)];
    assert_eq!(catalog.activations().await.unwrap(), expected);
    catalog.forget_added().await.unwrap();
    assert_eq!(catalog.activations().await.unwrap(), []);
}

async fn a_kind_goes_to_a_space_that_is_there(opened: &Opened) {
    let catalog = &*opened.catalog;
    let tiny = space(catalog, "tiny", 4).await;
    let moved = |kind, space| Activation { kind, space, named: None };
    let both = [moved(QueryKind::Text, tiny.key), moved(QueryKind::Clip, tiny.key + 1)];
    assert!(matches!(catalog.activate(&both).await, Err(CatalogError::Database(_))));
    assert_eq!(catalog.activations().await.unwrap(), [], "all or none");
}
