//! The ranks of all queries of a benchmark in its whole gallery, at little more than the cost of the matrix product.
//!
//! The best relevant item of each query is scored first. The gallery is then multiplied panel by panel, and scores
//! above that one are counted while they are in the cache. So memory holds only one panel's scores of a few queries.

use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use super::product::Panel;
use super::recall::Mark;

/// Vectors that are compared by dot product. An item may have several vectors in a row, as the chunks of a long text
/// do.
///
/// Invariant: whole rows of at least one value, and at least one row per item.
#[derive(Debug, Clone)]
pub struct Vectors<'a> {
    values: &'a [f32],
    dim: usize,
    /// The end row (exclusive) of each item; `None`: one row per item.
    ends: Option<Vec<usize>>,
}

/// Vectors that cannot be compared; the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorsError {
    /// `dim` is 0, or the last row is too short.
    #[error("{values} values are not whole rows of {dim}")]
    Rows {
        /// Number of values.
        values: usize,
        /// Values of a row.
        dim: usize,
    },
    /// The items' row counts do not add up to the rows, or an item has none.
    #[error("the items need {said} rows, at least one each, but there are {rows}")]
    Things {
        /// Rows that the values make.
        rows: usize,
        /// The sum of the items' row counts.
        said: usize,
    },
    /// The vectors of queries and gallery differ in length: they come from different encoders.
    #[error("the queries have {queries} values a vector, the gallery has {gallery}")]
    Dimension {
        /// Values of a query vector.
        queries: usize,
        /// Values of a gallery vector.
        gallery: usize,
    },
}

impl<'a> Vectors<'a> {
    /// One vector per item: (items, dim).
    ///
    /// # Errors
    /// [`VectorsError::Rows`].
    pub fn new(values: &'a [f32], dim: usize) -> Result<Vectors<'a>, VectorsError> {
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return Err(VectorsError::Rows { values: values.len(), dim });
        }
        Ok(Vectors { values, dim, ends: None })
    }

    /// `counts` vectors of each item, one item after the other.
    ///
    /// # Errors
    /// [`VectorsError::Rows`] and [`VectorsError::Things`].
    pub fn grouped(values: &'a [f32], dim: usize, counts: &[usize]) -> Result<Vectors<'a>, VectorsError> {
        let vectors = Vectors::new(values, dim)?;
        let (rows, said) = (values.len() / dim, counts.iter().sum());
        if rows != said || counts.contains(&0) {
            return Err(VectorsError::Things { rows, said });
        }
        if counts.iter().all(|count| *count == 1) {
            return Ok(vectors);
        }
        let end = |end: &mut usize, count: &usize| {
            *end += count;
            Some(*end)
        };
        Ok(Vectors { ends: Some(counts.iter().scan(0, end).collect()), ..vectors })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.ends.as_ref().map_or(self.values.len() / self.dim, Vec::len)
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The rows of consecutive items.
    fn rows(&self, things: &Range<usize>) -> Range<usize> {
        let Some(ends) = &self.ends else { return things.clone() };
        let before = |thing: usize| if thing == 0 { 0 } else { ends[thing - 1] };
        before(things.start)..before(things.end)
    }

    /// The values of consecutive items.
    fn of(&self, things: &Range<usize>) -> &'a [f32] {
        let Range { start, end } = self.rows(things);
        &self.values[start * self.dim..end * self.dim]
    }

    /// The largest number of rows of one item.
    fn most(&self) -> usize {
        (0..self.len()).map(|thing| self.rows(&(thing..thing + 1)).len()).max().unwrap_or(0)
    }

    /// Splits `things`, ascending item numbers, into ranges of at most `rows` rows and at least one item.
    fn cut(&self, things: &[usize], rows: usize) -> Vec<Range<usize>> {
        let (mut ranges, mut first, mut taken) = (Vec::new(), 0, 0);
        for (at, &thing) in things.iter().enumerate() {
            let own = self.rows(&(thing..thing + 1)).len();
            if at > first && taken + own > rows {
                ranges.push(first..at);
                (first, taken) = (at, 0);
            }
            taken += own;
        }
        if first < things.len() {
            ranges.push(first..things.len());
        }
        ranges
    }
}

/// Combines the scores of an item's vectors into one; receives at least two.
pub type Join<'a> = &'a (dyn Fn(&[f32]) -> f32 + Sync);

/// The rank, from 1, of the best relevant item of every query; `None` for a query without relevant items.
///
/// Equal to [`first_right`](super::first_right) on the products of the query's vectors with the whole gallery. `right`
/// lists the relevant items of each query; numbers beyond the gallery are ignored.
///
/// Uses all processors. Memory: a second copy of the gallery, and a few megabytes per thread.
///
/// # Errors
/// [`VectorsError::Dimension`].
pub fn ranks<'r>(
    queries: &Vectors<'_>,
    gallery: &Vectors<'_>,
    right: impl Fn(usize) -> &'r [usize] + Sync,
    join: Join<'_>,
) -> Result<Vec<Option<usize>>, VectorsError> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    ranks_by(queries, gallery, &right, join, &Sizes::of(queries.len(), threads))
}

/// The number of threads and the sizes of their units of work.
#[derive(Clone, Copy)]
struct Sizes {
    threads: usize,
    /// Vectors in a panel: the size of the product's tile with AVX-512. With 96, the product took 1.3 times as long.
    panel: usize,
    /// Queries multiplied with a panel at once: their vectors and scores stay in the cache beside the panel.
    part: usize,
    /// Queries that a thread takes at once: the gallery is read from memory once for all of them.
    task: usize,
}

impl Sizes {
    fn of(queries: usize, threads: usize) -> Sizes {
        let part = 64;
        // Several tasks per thread, so that no thread waits long for the last one.
        let task = queries.div_ceil(4 * threads).next_multiple_of(part).min(2_048);
        Sizes { threads, panel: 48, part, task }
    }
}

fn ranks_by<'r>(
    queries: &Vectors<'_>,
    gallery: &Vectors<'_>,
    right: &(dyn Fn(usize) -> &'r [usize] + Sync),
    join: Join<'_>,
    sizes: &Sizes,
) -> Result<Vec<Option<usize>>, VectorsError> {
    if queries.dim != gallery.dim {
        return Err(VectorsError::Dimension { queries: queries.dim, gallery: gallery.dim });
    }
    let search = Search::new(queries, gallery, right, join, sizes);
    let mut ranks = vec![None; queries.len()];
    let tasks = Mutex::new(ranks.chunks_mut(sizes.task.max(1)).enumerate());
    let work = || {
        loop {
            // The lock is released before the work begins.
            let task = tasks.lock().ok().and_then(|mut tasks| tasks.next());
            let Some((number, ranks)) = task else { return };
            search.run(number * sizes.task.max(1), ranks);
        }
    };
    thread::scope(|scope| {
        (1..sizes.threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    Ok(ranks)
}

/// The inputs that all threads share.
struct Search<'a, 'r> {
    queries: &'a Vectors<'a>,
    gallery: &'a Vectors<'a>,
    right: &'a (dyn Fn(usize) -> &'r [usize] + Sync),
    join: Join<'a>,
    width: usize,
    part: usize,
    panels: Vec<(Range<usize>, Panel)>,
}

/// A query whose rank is being computed.
struct PendingQuery {
    query: usize,
    /// Ascending, distinct, all within the gallery.
    right: Vec<usize>,
    mark: Option<Mark>,
    beaten_by: usize,
}

impl<'a, 'r> Search<'a, 'r> {
    fn new(
        queries: &'a Vectors<'a>,
        gallery: &'a Vectors<'a>,
        right: &'a (dyn Fn(usize) -> &'r [usize] + Sync),
        join: Join<'a>,
        sizes: &Sizes,
    ) -> Search<'a, 'r> {
        let rows = gallery.values.len() / gallery.dim;
        let width = sizes.panel.min(rows).max(gallery.most()).next_multiple_of(16);
        let mut search =
            Search { queries, gallery, right, join, width, part: sizes.part, panels: Vec::new() };
        let things: Vec<usize> = (0..gallery.len()).collect();
        let ranges = gallery.cut(&things, width).into_iter();
        search.panels = ranges.map(|range| (range.clone(), search.panel(&things[range]))).collect();
        search
    }

    /// The panel of some gallery items, which must have at most `width` rows.
    fn panel(&self, things: &[usize]) -> Panel {
        let rows = |&thing: &usize| self.gallery.of(&(thing..thing + 1)).chunks_exact(self.gallery.dim);
        Panel::new(&things.iter().flat_map(rows).collect::<Vec<_>>(), self.gallery.dim, self.width)
    }

    /// Computes the ranks of the queries from `first` on.
    fn run(&self, first: usize, ranks: &mut [Option<usize>]) {
        let mut open: Vec<PendingQuery> =
            (first..first + ranks.len()).map(|query| self.open(query)).collect();
        let numbers: Vec<usize> = open.iter().map(|it| it.query).collect();
        let parts = self.queries.cut(&numbers, self.part);
        let mut scratch = Scratch::default();
        for part in &parts {
            self.mark(&mut open[part.clone()], &mut scratch);
        }
        for (things, panel) in &self.panels {
            for part in &parts {
                self.count(&mut open[part.clone()], things, panel, &mut scratch);
            }
        }
        for (rank, open) in ranks.iter_mut().zip(open) {
            *rank = open.mark.map(|_| 1 + open.beaten_by);
        }
    }

    fn open(&self, query: usize) -> PendingQuery {
        let known = (self.right)(query).iter().copied().filter(|thing| *thing < self.gallery.len());
        let mut right: Vec<usize> = known.collect();
        right.sort_unstable();
        right.dedup();
        PendingQuery { query, right, mark: None, beaten_by: 0 }
    }

    /// Scores the relevant items of each query.
    fn mark(&self, part: &mut [PendingQuery], scratch: &mut Scratch) {
        let mut wanted: Vec<usize> = part.iter().flat_map(|open| open.right.iter().copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        for range in self.gallery.cut(&wanted, self.width) {
            let things = &wanted[range];
            let panel = self.panel(things);
            let rows = |at: usize| self.gallery.rows(&(things[at]..things[at] + 1)).len();
            let each = (0..things.len()).map(rows);
            self.each_line(part, &panel, each, scratch, &|open, line| {
                for thing in &open.right {
                    if let Some(&score) = things.binary_search(thing).ok().and_then(|at| line.get(at)) {
                        let mark = Mark::new(*thing, score);
                        open.mark = Some(open.mark.map_or(mark, |best| best.better(mark)));
                    }
                }
            });
        }
    }

    /// Counts the panel's items that rank before the best relevant item of each query.
    fn count(&self, part: &mut [PendingQuery], things: &Range<usize>, panel: &Panel, scratch: &mut Scratch) {
        let each = things.clone().map(|thing| self.gallery.rows(&(thing..thing + 1)).len());
        self.each_line(part, panel, each, scratch, &|open, line| {
            let Some(mark) = open.mark else { return };
            let beaten_by = mark.beaten_by(line, things.start);
            // Relevant items are never counted: none of them ranks before the best one.
            let begin = open.right.partition_point(|thing| *thing < things.start);
            let here = open.right[begin..].iter().take_while(|thing| **thing < things.end);
            let right: usize = here
                .map(|thing| mark.beaten_by(&line[thing - things.start..=thing - things.start], *thing))
                .sum();
            open.beaten_by += beaten_by - right;
        });
    }

    /// Calls back with each query's scores of all items of a panel; every item has `each` rows.
    fn each_line(
        &self,
        part: &mut [PendingQuery],
        panel: &Panel,
        each: impl Iterator<Item = usize> + Clone,
        scratch: &mut Scratch,
        show: &dyn Fn(&mut PendingQuery, &[f32]),
    ) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { return };
        let asked = first.query..last.query + 1;
        let offset = self.queries.rows(&asked).start;
        let scores = panel.scores(self.queries.of(&asked), &mut scratch.scores);
        let (joined, several) = (&mut scratch.joined, &mut scratch.several);
        let simple = self.gallery.ends.is_none();
        let count = each.clone().count();
        for open in part {
            let rows = self.queries.rows(&(open.query..open.query + 1));
            let own = &scores[(rows.start - offset) * self.width..(rows.end - offset) * self.width];
            if simple && rows.len() == 1 {
                show(open, &own[..count]);
                continue;
            }
            joined.clear();
            let mut begin = 0;
            for rows in each.clone() {
                several.clear();
                several.extend(own.chunks_exact(self.width).map(|line| self.one(&line[begin..begin + rows])));
                joined.push(self.one(several));
                begin += rows;
            }
            show(open, joined);
        }
    }

    /// Combines an item's scores into one.
    fn one(&self, scores: &[f32]) -> f32 {
        match scores {
            [only] => *only,
            several => (self.join)(several),
        }
    }
}

/// Buffers that a thread reuses.
#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    joined: Vec<f32>,
    several: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::first_right;
    use super::*;

    const SMALL: Sizes = Sizes { threads: 1, panel: 16, part: 3, task: 7 };

    fn best(scores: &[f32]) -> f32 {
        scores.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// Computes all scores, then [`first_right`].
    fn simply(queries: &Vectors<'_>, gallery: &Vectors<'_>, right: &[Vec<usize>]) -> Vec<Option<usize>> {
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let of = |vectors: &Vectors<'_>, thing: usize| -> Vec<Vec<f32>> {
            vectors.of(&(thing..thing + 1)).chunks(vectors.dim).map(<[f32]>::to_vec).collect()
        };
        let score = |query: usize, thing: usize| {
            let rows = of(gallery, thing);
            let windows = of(queries, query);
            let each = windows
                .iter()
                .map(|window| best(&rows.iter().map(|row| product(window, row)).collect::<Vec<_>>()));
            best(&each.collect::<Vec<_>>())
        };
        (0..queries.len())
            .map(|query| {
                let scores: Vec<f32> = (0..gallery.len()).map(|thing| score(query, thing)).collect();
                first_right(&scores, &right[query])
            })
            .collect()
    }

    #[track_caller]
    fn check(queries: &Vectors<'_>, gallery: &Vectors<'_>, right: &[Vec<usize>]) {
        let expected = simply(queries, gallery, right);
        let right = |query: usize| &right[query][..];
        for threads in [1, 3] {
            let sizes = Sizes { threads, ..SMALL };
            assert_eq!(ranks_by(queries, gallery, &right, &best, &sizes).unwrap(), expected);
        }
        assert_eq!(ranks(queries, gallery, right, &best).unwrap(), expected);
    }

    /// Integer vectors: their products are exact in any order of summation. Few distinct values, so that many scores
    /// tie.
    fn things(most: usize) -> impl Strategy<Value = (Vec<f32>, Vec<usize>)> {
        let counts = prop_oneof![
            prop::collection::vec(Just(1_usize), 0..most),
            prop::collection::vec(1_usize..5, 0..most / 2)
        ];
        counts.prop_flat_map(|counts| {
            let values = 3 * counts.iter().sum::<usize>();
            (prop::collection::vec((-2_i8..3).prop_map(f32::from), values), Just(counts))
        })
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_all_scores(
            queries in things(40),
            gallery in things(80),
            right in prop::collection::vec(prop::collection::vec(0_usize..90, 0..4), 40),
        ) {
            let queries = Vectors::grouped(&queries.0, 3, &queries.1).unwrap();
            let gallery = Vectors::grouped(&gallery.0, 3, &gallery.1).unwrap();
            check(&queries, &gallery, &right);
        }
    }

    /// Pseudo-random values of many digits, equal in every run.
    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let value =
            |at: u32| (at ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(13).wrapping_mul(0x85eb_ca6b) as i32;
        (0..count as u32).map(|at| value(at) as f32 / (1_u32 << 31) as f32).collect()
    }

    #[test]
    fn equal_vectors_tie_wherever_they_stand() {
        for (dim, rows) in [(768, 700), (100, 257), (513, 20), (1, 40)] {
            let mut gallery = noise(dim * rows, 1 << 30);
            let queries = noise(dim * 5, 1 << 29);
            // The last vector also stands at the start and in the middle.
            let last = gallery[(rows - 1) * dim..].to_vec();
            for row in [0, rows / 2] {
                gallery[row * dim..(row + 1) * dim].copy_from_slice(&last);
            }
            let vectors = |values| Vectors::new(values, dim).unwrap();
            let rank_of = |row: usize| {
                let right = [row];
                ranks(&vectors(&queries), &vectors(&gallery), |_| &right, &best).unwrap()
            };
            let first: Vec<usize> = rank_of(0).into_iter().flatten().collect();
            assert_eq!(first.len(), 5);
            for (row, later) in [(rows / 2, 1), (rows - 1, 2)] {
                let expected: Vec<_> = first.iter().map(|rank| Some(rank + later)).collect();
                assert_eq!(rank_of(row), expected, "{dim} values, row {row}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_never_found_early() {
        let gallery = [1.0, f32::NAN, 3.0, f32::INFINITY, 2.0, f32::NEG_INFINITY];
        let queries = [1.0, f32::NAN, -1.0];
        let vectors = |values| Vectors::new(values, 1).unwrap();
        for right in 0..6 {
            let right = vec![vec![right]; 3];
            check(&vectors(&queries), &vectors(&gallery), &right);
        }
    }

    #[test]
    fn nothing_to_ask_or_to_find_gives_nothing() {
        let one = Vectors::new(&[1.0, 2.0], 2).unwrap();
        let none = Vectors::new(&[], 2).unwrap();
        assert_eq!(ranks(&none, &one, |_| &[0], &best), Ok(vec![]));
        assert_eq!(ranks(&one, &none, |_| &[0], &best), Ok(vec![None]));
        assert!(none.is_empty() && !one.is_empty());
    }

    #[track_caller]
    fn refused(vectors: Result<Vectors<'_>, VectorsError>, expected: VectorsError) {
        assert_eq!(vectors.unwrap_err(), expected);
    }

    #[test]
    fn what_makes_no_rows_or_things_is_refused() {
        refused(Vectors::new(&[1.0; 3], 2), VectorsError::Rows { values: 3, dim: 2 });
        refused(Vectors::new(&[], 0), VectorsError::Rows { values: 0, dim: 0 });
        refused(Vectors::grouped(&[1.0; 4], 2, &[1]), VectorsError::Things { rows: 2, said: 1 });
        refused(Vectors::grouped(&[1.0; 4], 2, &[2, 0]), VectorsError::Things { rows: 2, said: 2 });
        let (two, three) = (Vectors::new(&[1.0; 2], 2).unwrap(), Vectors::new(&[1.0; 3], 3).unwrap());
        let error = ranks(&two, &three, |_| &[], &best).unwrap_err();
        assert_eq!(error, VectorsError::Dimension { queries: 2, gallery: 3 });
    }
}
