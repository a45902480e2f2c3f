use std::sync::mpsc;

use super::*;
use crate::sample::Sampler;
use crate::text::Tokens;
use crate::{Abilities, EncodeError, Encoder, FrameSize, Input, Space};

/// An encoder that waits for a signal before each batch and reports the batch's ids.
///
/// A text's first id decides its vector, `[id]`; the constants name the exceptions.
#[derive(Clone)]
struct Gated {
    space: Space,
    seen: mpsc::Sender<Vec<u32>>,
    go: Arc<Mutex<mpsc::Receiver<()>>>,
    /// Opens what stays shut for [`IS_STUCK`]. Nothing is ever sent; it breaks when the test drops its end.
    never: Arc<Mutex<mpsc::Receiver<()>>>,
}

const PANICS: u32 = 100;
const IS_BAD: u32 = 101;
const IS_ZERO: u32 = 102;
const IS_NAN: u32 = 103;
const IS_SHORT: u32 = 104;
const FAILS: u32 = 105;
const IS_STUCK: u32 = 106;
/// Pauses once, between two signals.
const PAUSES: u32 = 107;

impl Encoder for Gated {
    fn space(&self) -> &Space {
        &self.space
    }

    fn cost(&self, _: &Input) -> usize {
        1
    }

    fn share(&self) -> Box<dyn Encoder> {
        Box::new(self.clone())
    }

    fn encode_pausing(&mut self, batch: &[Input], pause: &dyn Fn()) -> Result<Vec<Vec<f32>>, EncodeError> {
        if batch.iter().any(|input| first_id(input) == PAUSES) {
            self.seen.send(vec![PAUSES]).unwrap();
            self.go.lock().unwrap().recv().unwrap();
            pause();
        }
        self.encode(batch)
    }

    fn encode(&mut self, batch: &[Input]) -> Result<Vec<Vec<f32>>, EncodeError> {
        let ids: Vec<u32> = batch.iter().map(first_id).collect();
        self.seen.send(ids.clone()).unwrap();
        if ids.contains(&IS_STUCK) {
            let _ = self.never.lock().unwrap().recv();
        } else {
            self.go.lock().unwrap().recv().unwrap();
        }
        assert!(!ids.contains(&PANICS), "told to panic");
        if ids.contains(&IS_BAD) {
            return Err(EncodeError::BadInput("bad".into()));
        }
        if ids.contains(&FAILS) {
            return Err(EncodeError::Failed("broken".into()));
        }
        let vector = |id: u32| match id {
            IS_ZERO => vec![0.0],
            IS_NAN => vec![f32::NAN],
            IS_SHORT => Vec::new(),
            id => vec![id as f32],
        };
        Ok(ids.into_iter().map(vector).collect())
    }
}

fn first_id(input: &Input) -> u32 {
    match input {
        Input::Text(tokens) => tokens.ids[0],
        other => panic!("{other:?}"),
    }
}

/// A pool of one gated encoder, its reported batches and its signal.
struct Bench {
    pool: Pool,
    seen: mpsc::Receiver<Vec<u32>>,
    go: mpsc::Sender<()>,
    never: mpsc::Sender<()>,
}

fn space() -> Space {
    Space {
        id: "0".repeat(64),
        name: "fake-000000".to_owned(),
        model: "fake".to_owned(),
        family: "fake".to_owned(),
        dim: 1,
        sampler: Sampler::Middles { frames: 1 },
        scaling: FrameSize::ShortEdge(1).into(),
        max_text_tokens: 1,
        temporal: false,
        frame_stage: None,
        can: Abilities { text: true, frames: false, composed: false },
        composed_frames: None,
        trained_on: crate::TrainedOn::Nothing,
        precision: crate::Precision::F32,
    }
}

fn settings() -> Settings {
    // The gate makes batches slow, so the time limit must not apply.
    let bulk_time = Duration::MAX;
    let limits = Limits { inputs: 4, cost: 4 };
    Settings { limits, requests: 8, bulk_waiting: 3, bulk_every: 3, bulk_time, ..Settings::default() }
}

fn bench(settings: Settings) -> Bench {
    let (tell, seen) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let (never, shut) = mpsc::channel();
    let shared = |it| Arc::new(Mutex::new(it));
    let encoder = Gated { space: space(), seen: tell, go: shared(wait), never: shared(shut) };
    Bench { pool: Pool::of_encoders(vec![Box::new(encoder)], settings), seen, go, never }
}

fn texts(ids: &[u32]) -> Vec<Input> {
    ids.iter().map(|id| Input::Text(Tokens { ids: vec![*id] })).collect()
}

type Call = tokio::task::JoinHandle<Result<Vec<Vec<f32>>, EncodeError>>;

impl Bench {
    fn query(&self, ids: &[u32]) -> Call {
        let (pool, inputs) = (self.pool.clone(), texts(ids));
        let permit = pool.admit().unwrap();
        tokio::spawn(async move { pool.encode(permit, inputs).await })
    }

    fn bulk(&self, ids: &[u32]) -> Call {
        let (pool, inputs) = (self.pool.clone(), texts(ids));
        tokio::spawn(async move { pool.encode_bulk(inputs).await })
    }

    /// Waits until the queue holds these inputs.
    async fn until_waiting(&self, interactive: usize, bulk: usize) {
        while self.pool.waiting() != (interactive, bulk) {
            tokio::task::yield_now().await;
        }
    }

    fn next_batch(&self) -> Vec<u32> {
        self.seen.recv().unwrap()
    }

    /// Abandons the running batch, as if its limit were long over.
    fn abandon(&self) {
        watch::replace_stuck(&self.pool.handle.shared, Instant::now() + Duration::from_secs(3600));
    }

    fn open(&self, batches: usize) {
        (0..batches).for_each(|_| self.go.send(()).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_arrive_while_the_encoder_is_busy_share_a_batch() {
    let bench = bench(settings());
    let first = bench.query(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    let (second, third) = (bench.query(&[2, 3]), bench.query(&[4]));
    bench.until_waiting(3, 0).await;
    bench.open(2);
    assert_eq!(first.await.unwrap().unwrap(), [[1.0]]);
    assert_eq!(second.await.unwrap().unwrap(), [[2.0], [3.0]]);
    assert_eq!(third.await.unwrap().unwrap(), [[4.0]]);
    assert_eq!(bench.next_batch().len(), 3);
    let stats = bench.pool.stats();
    assert_eq!((stats.batches, stats.inputs, stats.failed), (2, 4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_passes_a_bulk_batch_that_pauses() {
    let bench = bench(settings());
    let bulk = bench.bulk(&[PAUSES]);
    assert_eq!(bench.next_batch(), [PAUSES]);
    let query = bench.query(&[1, 2]);
    bench.until_waiting(2, 0).await;
    bench.open(1);
    assert_eq!(bench.next_batch(), [1, 2], "the bulk batch is not over");
    bench.open(1);
    assert_eq!(query.await.unwrap().unwrap(), [[1.0], [2.0]]);
    assert!(!bulk.is_finished());
    assert_eq!(bench.next_batch(), [PAUSES]);
    bench.open(1);
    assert_eq!(bulk.await.unwrap().unwrap(), [[PAUSES as f32]]);
    let stats = bench.pool.stats();
    assert_eq!((stats.batches, stats.inputs, stats.failed), (2, 3, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_gets_stuck_in_a_pause_is_answered_with_the_bulk_batch() {
    let bench = bench(settings());
    let bulk = bench.bulk(&[PAUSES]);
    assert_eq!(bench.next_batch(), [PAUSES]);
    let query = bench.query(&[IS_STUCK]);
    bench.until_waiting(1, 0).await;
    bench.open(1);
    assert_eq!(bench.next_batch(), [IS_STUCK]);
    bench.abandon();
    for call in [query, bulk] {
        assert!(matches!(call.await.unwrap(), Err(EncodeError::Stuck { .. })));
    }
    // Another worker has the thread's place.
    let next = bench.query(&[3]);
    assert_eq!(bench.next_batch(), [3]);
    bench.open(1);
    assert_eq!(next.await.unwrap().unwrap(), [[3.0]]);
    drop(bench.never);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_says_so_at_once() {
    let bench = bench(Settings { requests: 1, ..settings() });
    let permit = bench.pool.admit().unwrap();
    assert!(matches!(bench.pool.admit(), Err(EncodeError::Overloaded { capacity: 1 })));
    drop(permit);
    assert!(bench.pool.admit().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_hangs_up_keeps_its_place_until_the_batch_ends() {
    let bench = bench(Settings { requests: 1, ..settings() });
    let call = bench.query(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert!(bench.pool.admit().is_err());
    bench.open(1);
    while bench.pool.admit().is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_leaves_the_queue_with_its_caller() {
    let bench = bench(settings());
    let first = bench.query(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    let gone = bench.query(&[2]);
    bench.until_waiting(1, 0).await;
    let last = bench.query(&[3]);
    bench.until_waiting(2, 0).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    bench.open(2);
    assert_eq!(last.await.unwrap().unwrap(), [[3.0]]);
    assert_eq!(first.await.unwrap().unwrap(), [[1.0]]);
    assert_eq!(bench.next_batch(), [3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_overtake_bulk_but_every_third_batch_is_bulk() {
    let bench = bench(Settings { limits: Limits { inputs: 1, cost: 1 }, ..settings() });
    let first = bench.query(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    let bulk = bench.bulk(&[50, 51]);
    bench.until_waiting(0, 2).await;
    let queries = bench.query(&[2, 3, 4, 5, 6]);
    bench.until_waiting(5, 2).await;
    bench.open(8);
    let order: Vec<u32> = (0..7).flat_map(|_| bench.next_batch()).collect();
    assert_eq!(order, [2, 3, 50, 4, 5, 51, 6]);
    assert_eq!(bulk.await.unwrap().unwrap(), [[50.0], [51.0]]);
    assert_eq!(queries.await.unwrap().unwrap().len(), 5);
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_batch_is_no_larger_than_what_is_done_in_time() {
    let bench = bench(Settings { bulk_waiting: 8, bulk_time: Duration::ZERO, ..settings() });
    let first = bench.bulk(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    let bulk = bench.bulk(&[2, 3, 4]);
    bench.until_waiting(0, 3).await;
    let queries = bench.query(&[10, 11, 12]);
    bench.until_waiting(3, 3).await;
    bench.open(5);
    let batches: Vec<Vec<u32>> = (0..4).map(|_| bench.next_batch()).collect();
    assert_eq!(batches, [vec![10, 11, 12], vec![2], vec![3], vec![4]], "queries share a batch all the same");
    assert!(first.await.unwrap().is_ok() && bulk.await.unwrap().is_ok() && queries.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_bulk_leaves_the_queue_with_its_caller_and_makes_room() {
    let bench = bench(settings());
    let running = bench.bulk(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    // More inputs than the queue has room for: the call waits to queue the rest.
    let gone = bench.bulk(&[2, 3, 4, 5, 6]);
    bench.until_waiting(0, 3).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let last = bench.bulk(&[7, 8]);
    bench.open(2);
    assert_eq!(bench.next_batch()[0], 7);
    bench.open(1);
    assert_eq!(last.await.unwrap().unwrap(), [[7.0], [8.0]]);
    assert!(running.await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_work_waits_for_room() {
    let bench = bench(Settings { limits: Limits { inputs: 1, cost: 1 }, ..settings() });
    let bulk = bench.bulk(&[1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(bench.next_batch(), [1]);
    bench.until_waiting(0, 3).await;
    for expected in 2..=7 {
        bench.open(1);
        assert_eq!(bench.next_batch(), [expected]);
        assert!(bench.pool.waiting().1 <= 3);
    }
    bench.open(1);
    assert_eq!(bulk.await.unwrap().unwrap().len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_batch_and_the_worker_lives() {
    let bench = bench(settings());
    bench.open(2);
    let error = bench.query(&[1, PANICS]).await.unwrap().unwrap_err();
    assert!(
        matches!(&error, EncodeError::Failed(why) if why.to_string().contains("told to panic")),
        "{error}"
    );
    assert_eq!(bench.query(&[2]).await.unwrap().unwrap(), [[2.0]]);
    assert!(bench.pool.alive());
}

/// Encodes `bad` in one batch with a good input, which must succeed.
#[track_caller]
fn check(bad: u32, is_expected: fn(&EncodeError) -> bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let bench = bench(settings());
        let busy = bench.query(&[1]);
        assert_eq!(bench.next_batch(), [1]);
        let (bad, good) = (bench.query(&[bad]), bench.query(&[2]));
        bench.until_waiting(2, 0).await;
        bench.open(4);
        let error = bad.await.unwrap().unwrap_err();
        assert!(is_expected(&error), "{error}");
        assert_eq!(good.await.unwrap().unwrap(), [[2.0]]);
        assert!(busy.await.unwrap().is_ok());
        assert_eq!(bench.pool.stats().failed, 1);
    });
}

#[test]
fn a_bad_input_fails_alone() {
    check(IS_BAD, |error| matches!(error, EncodeError::BadInput(_)));
}

#[test]
fn a_vector_of_norm_0_is_its_inputs_fault() {
    check(IS_ZERO, |error| matches!(error, EncodeError::BadInput(_)));
}

#[test]
fn a_vector_that_is_not_finite_is_a_failure() {
    check(IS_NAN, |error| matches!(error, EncodeError::Failed(_)));
}

#[test]
fn a_vector_of_another_dimension_is_a_failure() {
    check(IS_SHORT, |error| matches!(error, EncodeError::Failed(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_device_fails_the_whole_batch_without_a_retry() {
    let bench = bench(settings());
    bench.open(1);
    let error = bench.query(&[1, FAILS]).await.unwrap().unwrap_err();
    assert!(matches!(error, EncodeError::Failed(_)), "{error}");
    assert_eq!(bench.pool.stats().batches, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn close_finishes_the_queue_and_takes_nothing_new() {
    let bench = bench(settings());
    let first = bench.query(&[1]);
    assert_eq!(bench.next_batch(), [1]);
    let (query, bulk) = (bench.query(&[2]), bench.bulk(&[3]));
    bench.until_waiting(1, 1).await;
    bench.open(3);
    let closing = bench.pool.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    for call in [first, query, bulk] {
        assert_eq!(call.await.unwrap().unwrap().len(), 1);
    }
    assert!(!bench.pool.alive());
    assert!(matches!(bench.pool.admit(), Err(EncodeError::Closed)));
    assert!(matches!(bench.pool.encode_bulk(texts(&[4])).await, Err(EncodeError::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_dropped_without_close_ends_its_threads() {
    let Bench { pool, seen, go, .. } = bench(settings());
    drop(pool);
    // The channel breaks when the thread drops its encoder.
    assert!(tokio::task::spawn_blocking(move || seen.recv()).await.unwrap().is_err());
    drop(go);
}

#[tokio::test]
async fn a_pool_without_encoders_is_closed() {
    let pool = Pool::of_encoders(Vec::new(), settings());
    assert!(!pool.alive());
    assert!(matches!(pool.admit(), Err(EncodeError::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_observer_sees_every_batch_before_its_callers_do() {
    let bench = bench(settings());
    let (tell, reports) = mpsc::channel();
    assert!(bench.pool.observe(move |report| drop(tell.send(report.clone()))));
    assert!(!bench.pool.observe(|_| ()));
    bench.open(1);
    bench.bulk(&[1]).await.unwrap().unwrap();
    let report = reports.try_recv().unwrap();
    assert_eq!((report.lane, report.waited.len(), report.failed), (Lane::Bulk, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_of_a_stuck_batch_get_an_error_and_another_worker_goes_on() {
    let bench = bench(settings());
    let stuck = bench.query(&[IS_STUCK]);
    assert_eq!(bench.next_batch(), [IS_STUCK]);
    let next = bench.query(&[2]);
    bench.until_waiting(1, 0).await;
    bench.open(1);
    watch::replace_stuck(&bench.pool.handle.shared, Instant::now());
    assert_eq!(bench.pool.abandoned(), 0, "it still has time");
    bench.abandon();
    let error = stuck.await.unwrap().unwrap_err();
    assert!(matches!(error, EncodeError::Stuck { seconds: 120 }), "{error}");
    assert_eq!(next.await.unwrap().unwrap(), [[2.0]]);
    assert_eq!((bench.pool.abandoned(), bench.pool.alive()), (1, true));
    // The abandoned thread comes back: nobody hears of it, and nothing is counted twice.
    drop(bench.never);
    bench.go.send(()).unwrap();
    let permit = bench.pool.admit().unwrap();
    assert_eq!(bench.pool.encode(permit, texts(&[3])).await.unwrap(), [[3.0]]);
    assert_eq!(bench.pool.stats().batches, 3);
    let closing = bench.pool.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    assert!(!bench.pool.alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_whose_workers_all_stay_stuck_closes() {
    let bench = bench(settings());
    for abandoned in 0..=MOST_REPLACED {
        assert_eq!((bench.pool.abandoned(), bench.pool.alive()), (abandoned, true));
        let stuck = bench.query(&[IS_STUCK]);
        assert_eq!(bench.next_batch(), [IS_STUCK]);
        bench.abandon();
        assert!(matches!(stuck.await.unwrap(), Err(EncodeError::Stuck { .. })));
    }
    assert!(!bench.pool.alive());
    assert!(matches!(bench.pool.admit(), Err(EncodeError::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watch_notices_by_itself() {
    let bench = bench(Settings { stuck_after: Duration::from_millis(1), ..settings() });
    let error = bench.bulk(&[IS_STUCK]).await.unwrap().unwrap_err();
    assert!(matches!(error, EncodeError::Stuck { .. }), "{error}");
}

#[tokio::test]
async fn the_cost_of_an_input_is_known_without_a_place_in_the_queue() {
    let bench = bench(settings());
    let busy = bench.query(&[1]);
    tokio::task::yield_now().await;
    assert_eq!(bench.next_batch(), [1]);
    assert_eq!(bench.pool.cost(&texts(&[2])[0]), Some(1));
    bench.open(1);
    assert!(busy.await.unwrap().is_ok());
    bench.pool.close();
    assert_eq!(bench.pool.cost(&texts(&[2])[0]), None);
}
