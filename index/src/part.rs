//! A part of a collection: growing rows or a sealed segment, and which of its rows are live.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::exact::Best;
use crate::plan::Width;
use crate::rows::Rows;
use crate::sealed::{Reach, Sealed, Stored};
use crate::vector::cosine;
use crate::{Filter, Hit, SpanKey};

/// A walk may compare one of this many rows, or `COMPARED_LEAST` rows if that is more. Beyond that, brute force over
/// the part is cheaper.
const COMPARED_SHARE: u32 = 2;
const COMPARED_LEAST: u32 = 8_192;
/// Up to this many listed rows are compared by their original vectors alone.
const LISTED_EXACTLY: usize = 256;
/// Vectors prefetched ahead of the comparison of listed keys.
const ROWS_AHEAD: usize = 2;

/// A snapshot of a part: cheap to clone, unchanged by later inserts and removals.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) body: Body,
    /// Ordinals of the live rows.
    pub(crate) live: Arc<RoaringBitmap>,
}

#[derive(Clone)]
pub(crate) enum Body {
    /// Rows as inserted: few enough for brute force.
    Growing(Rows),
    /// An immutable segment.
    Sealed(Arc<Sealed>),
}

impl Part {
    pub(crate) fn growing(dimension: usize) -> Part {
        Part { body: Body::Growing(Rows::new(dimension)), live: Arc::default() }
    }

    pub(crate) fn sealed(sealed: Sealed) -> Part {
        let live = Arc::new(RoaringBitmap::from_iter(0..sealed.len()));
        Part { body: Body::Sealed(Arc::new(sealed)), live }
    }

    /// The file of its segment.
    pub(crate) fn stored(&self) -> Option<Stored> {
        match &self.body {
            Body::Growing(_) => None,
            Body::Sealed(sealed) => sealed.stored(),
        }
    }

    /// Number of rows, live or dead.
    pub(crate) fn len(&self) -> u32 {
        match &self.body {
            Body::Growing(rows) => rows.len(),
            Body::Sealed(sealed) => sealed.len(),
        }
    }

    pub(crate) fn dead(&self) -> u64 {
        u64::from(self.len()) - self.live.len()
    }

    pub(crate) fn key(&self, row: u32) -> SpanKey {
        match &self.body {
            Body::Growing(rows) => rows.key(row),
            Body::Sealed(sealed) => sealed.key(row),
        }
    }

    /// The keys of the live rows.
    pub(crate) fn live_keys(&self) -> RoaringTreemap {
        match &self.body {
            Body::Growing(rows) => self.live.iter().map(|row| rows.key(row)).collect(),
            Body::Sealed(sealed) => sealed.live_keys(&self.live),
        }
    }

    /// `None` if it cannot be read.
    pub(crate) fn vector(&self, row: u32) -> Option<&[f32]> {
        match &self.body {
            Body::Growing(rows) => Some(rows.vector(row)),
            Body::Sealed(sealed) => sealed.vector(row),
        }
    }

    /// Bytes of memory, including mapped ones.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.body {
            Body::Growing(rows) => rows.bytes(),
            Body::Sealed(sealed) => sealed.bytes(),
        }
    }

    /// Bytes of the budget that a segment takes.
    pub(crate) fn taken(&self) -> u64 {
        match &self.body {
            Body::Growing(_) => 0,
            Body::Sealed(sealed) => sealed.taken(),
        }
    }

    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.body, Body::Sealed(_))
    }

    /// Whether listed rows are compared by their signs first. Growing rows are few.
    pub(crate) fn compares_signs(&self) -> bool {
        match &self.body {
            Body::Growing(_) => true,
            Body::Sealed(sealed) => sealed.has_signs(),
        }
    }

    /// Verifies the unread blocks of a segment's vectors.
    pub(crate) fn verify(&self) {
        if let Body::Sealed(sealed) = &self.body {
            sealed.verify();
        }
    }

    /// Live rows that pass the filter and whose vectors cannot be read.
    pub(crate) fn unreadable(&self, filter: &Filter) -> Vec<SpanKey> {
        let Body::Sealed(sealed) = &self.body else { return Vec::new() };
        let rows = sealed.unreadable() & self.live.as_ref();
        rows.iter().map(|row| self.key(row)).filter(|&key| filter.lets_through(key)).collect()
    }

    /// Brute force over the live rows that pass the filter.
    pub(crate) fn scan(&self, query: &[f32], filter: &Filter, best: &mut Best) {
        match &filter.only {
            None => self.compare(query, self.live.iter(), best),
            Some(only) => {
                self.compare(query, self.live.iter().filter(|&row| only.contains(self.key(row))), best);
            }
        }
    }

    /// Offers about the best `k` of the live rows of `keys`. A segment looks each key up and compares the codes of many.
    /// Returns whether every original vector was compared.
    pub(crate) fn scan_listed(
        &self,
        query: &[f32],
        keys: &RoaringTreemap,
        k: usize,
        best: &mut Best,
    ) -> bool {
        let sealed = match &self.body {
            Body::Sealed(sealed) => sealed,
            Body::Growing(rows) => {
                let listed = self.live.iter().filter(|&row| keys.contains(rows.key(row)));
                self.compare(query, listed, best);
                return true;
            }
        };
        let mut rows = sealed.find_all(keys);
        if self.dead() > 0 {
            rows.retain(|&row| self.live.contains(row));
        }
        if rows.len() > LISTED_EXACTLY {
            sealed.search_listed(query, rows, k, best);
            return false;
        }
        for (at, &row) in rows.iter().enumerate() {
            if let Some(&ahead) = rows.get(at + ROWS_AHEAD) {
                sealed.prefetch(ahead);
            }
            self.compare(query, std::iter::once(row), best);
        }
        true
    }

    fn compare(&self, query: &[f32], rows: impl Iterator<Item = u32>, best: &mut Best) {
        for row in rows {
            if let Some(vector) = self.vector(row) {
                best.offer(Hit { key: self.key(row), score: cosine(query, vector) });
            }
        }
    }

    /// Offers approximately the best `k`, by a walk if there is a graph and it saves time. Returns whether every row
    /// was compared.
    pub(crate) fn walk(
        &self,
        query: &[f32],
        k: usize,
        width: Width,
        filter: &Filter,
        best: &mut Best,
    ) -> bool {
        let is_walked = self.walk_graph(query, k, width, filter, best);
        if !is_walked {
            self.scan(query, filter, best);
        }
        !is_walked
    }

    /// Like [`Part::walk`], but offers no hits without a graph. Returns whether it walked the graph.
    fn walk_graph(&self, query: &[f32], k: usize, width: Width, filter: &Filter, best: &mut Best) -> bool {
        let Body::Sealed(sealed) = &self.body else { return false };
        let most = (self.len() / COMPARED_SHARE).max(COMPARED_LEAST) as usize;
        let reach = Reach { width, most };
        let is_live = |row: u32| self.live.contains(row);
        match (&filter.only, self.dead()) {
            (None, 0) => sealed.search(query, reach, None, k, best),
            (None, _) => sealed.search(query, reach, Some(&is_live), k, best),
            (Some(only), 0) => {
                let is_member = membership(only);
                sealed.search(query, reach, Some(&|row| is_member(sealed.key(row))), k, best)
            }
            (Some(only), _) => {
                let is_member = membership(only);
                let accept = |row| is_live(row) && is_member(sealed.key(row));
                sealed.search(query, reach, Some(&accept), k, best)
            }
        }
    }
}

/// Whether a key is in the set. A walk asks this thousands of times; most sets lie within one range of 2^32 keys, which is
/// then found once.
fn membership(only: &RoaringTreemap) -> impl Fn(SpanKey) -> bool + '_ {
    let mut ranges = only.bitmaps();
    let sole = ranges.next().filter(|_| ranges.next().is_none());
    move |key| match sole {
        Some((high, keys)) => u64::from(high) == key >> 32 && keys.contains(key as u32),
        None => only.contains(key),
    }
}
