//! Tables of .NET's limiters, and laws against a model that keeps every request.

use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;
use proxy_model::{Snapshot, TimeSpan};
use proxy_runtime::ConnectionInfo;

use super::algorithm::{Count, Standing};
use super::*;
use crate::config::LimiterKind::{Concurrency, FixedWindow, SlidingWindow, TokenBucket};
use crate::tests::{TestHead, route};

fn seconds(count: u64) -> TimeSpan {
    TimeSpan::from_secs(count)
}

/// Takes a permit at each of the times, in seconds.
fn taken(kind: LimiterKind, times: &[u64]) -> Vec<bool> {
    let start = Instant::now();
    let mut count = Count::new(kind, start);
    let at = |time: &u64| start + Duration::from_secs(*time);
    times.iter().map(|time| count.take(at(time))).collect()
}

fn words(taken: &[bool]) -> String {
    taken
        .iter()
        .map(|yes| if *yes { '+' } else { '-' })
        .collect()
}

#[test]
fn windows_and_buckets_count_as_those_of_net() {
    let fixed = FixedWindow {
        permits: 2,
        window: seconds(10),
    };
    let sliding = SlidingWindow {
        permits: 3,
        window: seconds(30),
        segments: 3,
    };
    let bucket = TokenBucket {
        tokens: 3,
        per_period: 2,
        period: seconds(10),
    };
    for (kind, times, expected) in [
        // Windows follow each other from the first request on, used or not.
        (fixed, &[0, 1, 2, 9, 10, 11, 12][..], "++--++-"),
        (fixed, &[0, 19, 19, 19, 20, 20, 20], "+++-++-"),
        // What was taken in a segment is free again a whole window later.
        (sliding, &[0, 5, 15, 25, 29, 30, 30, 31], "+++--++-"),
        (sliding, &[25, 25, 25, 35, 49, 50], "+++--+"),
        (sliding, &[0, 0, 0, 90, 90, 90, 90], "++++++-"),
        // The bucket is full at first, and never holds more than its limit.
        (bucket, &[0, 0, 0, 0, 9, 10, 10, 10], "+++--++-"),
        (bucket, &[0, 0, 0, 1000, 1000, 1000, 1000], "++++++-"),
        (bucket, &[0, 15, 20, 20, 20, 20], "+++++-"),
    ] {
        assert_eq!(words(&taken(kind, times)), expected, "{kind:?} {times:?}");
    }
}

#[test]
fn clients_hear_when_there_is_more() {
    let start = Instant::now();
    let standing = |kind, takes: u64, at: u64| {
        let mut count = Count::new(kind, start);
        for second in 0..takes {
            count.take(start + Duration::from_secs(second));
        }
        count.standing(start + Duration::from_secs(at))
    };
    let told = |left, reset: u64| Standing {
        left,
        reset: Some(Duration::from_secs(reset)),
    };
    let fixed = FixedWindow {
        permits: 5,
        window: seconds(10),
    };
    assert_eq!(standing(fixed, 2, 3), told(3, 7));
    assert_eq!(standing(fixed, 5, 12), told(5, 8));
    let sliding = SlidingWindow {
        permits: 2,
        window: seconds(30),
        segments: 3,
    };
    assert_eq!(
        standing(sliding, 2, 4),
        told(0, 26),
        "the segment that was used first"
    );
    let bucket = TokenBucket {
        tokens: 2,
        per_period: 1,
        period: seconds(10),
    };
    assert_eq!(standing(bucket, 2, 4), told(0, 6));
    let concurrency = Concurrency { permits: 2 };
    let expected = Standing {
        left: 1,
        reset: None,
    };
    assert_eq!(standing(concurrency, 1, 9), expected);
}

/// A model that keeps the time of every request that passed, in milliseconds.
struct Model {
    kind: LimiterKind,
    passed: Vec<u64>,
}

impl Model {
    fn take(&mut self, now: u64) -> bool {
        let millis = |span: TimeSpan| u64::try_from(span.duration().as_millis()).unwrap();
        let may_pass = match self.kind {
            FixedWindow { permits, window } => {
                let window = millis(window);
                let same = self.passed.iter().filter(|t| **t / window == now / window);
                same.count() < permits as usize
            }
            SlidingWindow {
                permits,
                window,
                segments,
            } => {
                let segment = millis(window) / u64::from(segments);
                let current = now / segment;
                let recent = |t: &&u64| **t / segment + u64::from(segments) > current;
                self.passed.iter().filter(recent).count() < permits as usize
            }
            TokenBucket {
                tokens,
                per_period,
                period,
            } => {
                // The bucket is replayed from the beginning.
                let period = millis(period);
                let mut left = u64::from(tokens);
                let mut last = 0;
                for time in self.passed.iter().chain([&now]) {
                    let added = (time / period - last / period) * u64::from(per_period);
                    left = (left + added).min(u64::from(tokens));
                    last = *time;
                    if time != &now {
                        left -= 1;
                    }
                }
                let at_once = self.passed.iter().filter(|t| **t == now).count() as u64;
                left > at_once
            }
            Concurrency { .. } => unreachable!("time changes nothing"),
        };
        if may_pass {
            self.passed.push(now);
        }
        may_pass
    }
}

fn kinds() -> impl Strategy<Value = LimiterKind> {
    prop_oneof![
        (1..6_u32, 1..20_u64).prop_map(|(permits, window)| FixedWindow {
            permits,
            window: TimeSpan::from_millis(window * 10),
        }),
        (1..6_u32, 1..6_u32, 1..10_u64).prop_map(|(permits, segments, segment)| SlidingWindow {
            permits,
            window: TimeSpan::from_millis(segment * 10 * u64::from(segments)),
            segments,
        }),
        (1..8_u32, 1..5_u32, 1..20_u64).prop_map(|(tokens, per_period, period)| TokenBucket {
            tokens,
            per_period,
            period: TimeSpan::from_millis(period * 10),
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_agree_with_a_model_that_keeps_every_request(
        kind in kinds(),
        waits in prop::collection::vec(prop_oneof![Just(0_u64), 0..15_u64, 0..400_u64], 1..80),
    ) {
        let start = Instant::now();
        let mut count = Count::new(kind, start);
        let mut model = Model { kind, passed: Vec::new() };
        let mut now = 0;
        for wait in waits {
            now += wait;
            let at = start + Duration::from_millis(now);
            let told = count.standing(at);
            let expected = model.take(now);
            prop_assert_eq!(count.take(at), expected, "{:?} at {}", kind, now);
            prop_assert_eq!(told.left > 0, expected);
            if !expected {
                // What clients hear is when there is one again, and not before.
                let reset = told.reset.unwrap();
                let early = Duration::from_nanos(1);
                prop_assert!(!count.clone().take(at + reset - early));
                prop_assert!(count.clone().take(at + reset));
            }
        }
    }
}

fn limiter(
    kind: LimiterKind,
    by: PartitionBy,
    change: impl Fn(&mut RateLimiterConfig),
) -> RateLimiter {
    let mut config = RateLimiterConfig {
        kind,
        queue_limit: 0,
        queue_order: QueueOrder::OldestFirst,
        partition_by: by,
        max_partitions: 10_000,
        status: 429,
        fields: true,
        shared: None,
    };
    change(&mut config);
    RateLimiter::new(&"few".into(), &config).unwrap()
}

fn one_each_minute() -> LimiterKind {
    FixedWindow {
        permits: 1,
        window: seconds(60),
    }
}

/// Returns true if a request passes at once.
fn passes(limiter: &RateLimiter, head: &mut TestHead, client: &str) -> bool {
    static ROUTE: LazyLock<Snapshot> = LazyLock::new(route);
    let route = &*ROUTE;
    let connection = match client {
        "" => ConnectionInfo::default(),
        client => ConnectionInfo::new(format!("{client}:80").parse().unwrap()),
    };
    let visit = Visit {
        route: &route.routes()[0],
        connection,
        now: Instant::now(),
        claims: head.claims.clone(),
    };
    match limiter.check(head, &visit) {
        Outcome::Pass(permit) => {
            assert!(permit.is_none(), "only concurrency holds permits");
            true
        }
        Outcome::Reject(answer) => {
            assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
            false
        }
        _ => panic!("nobody waits"),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_divided_by_what_the_policy_says() {
    let get = |path: &str| TestHead::get(path, &[]);
    let with = |key: &str| TestHead::get("/t/x", &[("x-key", key)]);
    let by_address = limiter(one_each_minute(), PartitionBy::Address, |_| {});
    for (client, expected) in [
        ("192.0.2.1", true),
        ("192.0.2.1", false),
        ("192.0.2.2", true),
        // The same client over a socket of IPv6.
        ("[::ffff:192.0.2.2]", false),
        // One network of IPv6 is one client.
        ("[2001:db8::1]", true),
        ("[2001:db8::2]", false),
        ("[2001:db8:0:1::1]", true),
        // Without an address there is one limit together.
        ("", true),
        ("", false),
    ] {
        assert_eq!(
            passes(&by_address, &mut get("/t/x"), client),
            expected,
            "{client}"
        );
    }
    let by_header = limiter(
        one_each_minute(),
        PartitionBy::Header("x-key".into()),
        |_| {},
    );
    for (mut head, expected) in [
        (with("a"), true),
        (with("a"), false),
        (with("b"), true),
        (get("/t/x"), true),
        (get("/t/x"), false),
    ] {
        assert_eq!(passes(&by_header, &mut head, "192.0.2.1"), expected);
    }
    let by_value = limiter(
        one_each_minute(),
        PartitionBy::RouteValue("tenant".into()),
        |_| {},
    );
    for (path, expected) in [("/t/a", true), ("/t/a", false), ("/t/b", true)] {
        assert_eq!(passes(&by_value, &mut get(path), ""), expected, "{path}");
    }
    let by_claim = limiter(one_each_minute(), PartitionBy::Claim("name".into()), |_| {});
    for (user, expected) in [("ann", true), ("ann", false), ("bob", true)] {
        let mut head = get("/t/x");
        head.claims = Some(Arc::new([("name".to_owned(), user.to_owned())].into()));
        assert_eq!(passes(&by_claim, &mut head, ""), expected, "{user}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_client_makes_the_partitions_grow_without_bound() {
    for most in [3, 5_000] {
        let by = PartitionBy::Header("x-key".into());
        let limiter = limiter(one_each_minute(), by, |config| config.max_partitions = most);
        let mut passed = 0;
        for key in 0..3 * u64::from(most) {
            let mut head = TestHead::get("/t/x", &[("x-key", &key.to_string())]);
            passed += u64::from(passes(&limiter, &mut head, ""));
        }
        let kept = limiter.partitions.len() as u64;
        assert_eq!(kept, u64::from(most), "all of them are used, and no more");
        // Those without room have one limit together.
        assert_eq!(passed, kept + 1, "{most}");

        // A minute later all permits are free, so there is room for others.
        tokio::time::advance(Duration::from_secs(61)).await;
        for key in ["new", "newer"] {
            let mut head = TestHead::get("/t/x", &[("x-key", key)]);
            assert!(passes(&limiter, &mut head, ""), "{key}");
            assert!(!passes(&limiter, &mut head, ""), "{key} is counted");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn responses_say_what_is_left() {
    let kind = FixedWindow {
        permits: 2,
        window: seconds(60),
    };
    let limiter = limiter(kind, PartitionBy::None, |_| {});
    let mut head = TestHead::get("/t/x", &[]);
    assert!(passes(&limiter, &mut head, ""));
    tokio::time::advance(Duration::from_millis(500)).await;
    assert!(passes(&limiter, &mut head, ""));
    assert_eq!(
        head.response,
        [
            "+ratelimit-policy: \"few\";q=2;w=60",
            "+ratelimit: \"few\";r=1;t=60",
            "+ratelimit-policy: \"few\";q=2;w=60",
            "+ratelimit: \"few\";r=0;t=60",
        ]
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    let route = route();
    let visit = Visit {
        route: &route.routes()[0],
        connection: ConnectionInfo::default(),
        now: Instant::now(),
        claims: None,
    };
    let Outcome::Reject(answer) = limiter.check(&mut head, &visit) else {
        panic!("the limit is reached");
    };
    let response = answer.into_response();
    let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    // 49.5 s, so many whole seconds that they have passed by then.
    assert_eq!(field("retry-after"), "50");
    assert_eq!(field("ratelimit-policy"), "\"few\";q=2;w=60");
    assert_eq!(field("ratelimit"), "\"few\";r=0;t=50");
}

/// Requests in a queue: whether each has passed, by the order in which they came.
async fn queued(order: QueueOrder, limit: u32, requests: usize) -> Vec<Option<bool>> {
    let kind = Concurrency { permits: 1 };
    let partition = Arc::new(Partition::new(kind, Instant::now()));
    let Taken::Yes(_) = partition.take((limit, order), Instant::now()) else {
        panic!("the first passes");
    };
    let mut places = Vec::new();
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..requests {
        match partition.take((limit, order), Instant::now()) {
            Taken::Wait(place) => {
                let told = told.clone();
                places.push(tokio::spawn(async move {
                    let passed = place.wait().await;
                    let _ = told.send((number, passed));
                }));
            }
            Taken::No(_) => told.send((number, false)).unwrap(),
            Taken::Yes(_) => panic!("the permit is taken"),
        }
        tokio::task::yield_now().await;
    }
    // One permit is free again.
    partition.give_back(order, Instant::now());
    let mut outcomes = vec![None; requests];
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    while let Ok((number, passed)) = answers.try_recv() {
        outcomes[number] = Some(passed);
    }
    for place in places {
        place.abort();
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_pass_in_the_order_of_the_policy() {
    let (yes, no, waits) = (Some(true), Some(false), None);
    let oldest = queued(QueueOrder::OldestFirst, 2, 3).await;
    assert_eq!(oldest, [yes, waits, no], "the queue is full for the newest");
    let newest = queued(QueueOrder::NewestFirst, 2, 3).await;
    assert_eq!(newest, [no, waits, yes], "the oldest makes room");
}

#[tokio::test(start_paused = true)]
async fn time_lets_those_pass_that_wait_for_a_window() {
    let partition = Arc::new(Partition::new(one_each_minute(), Instant::now()));
    let queue = (5, QueueOrder::OldestFirst);
    let started = Instant::now();
    assert!(matches!(partition.take(queue, started), Taken::Yes(_)));
    let mut waits = Vec::new();
    for _ in 0..3 {
        let Taken::Wait(place) = partition.take(queue, Instant::now()) else {
            panic!("the window is used up");
        };
        waits.push(tokio::spawn(async move {
            assert!(place.wait().await);
            started.elapsed().as_secs()
        }));
    }
    let mut passed = Vec::new();
    for wait in waits {
        passed.push(wait.await.unwrap());
    }
    assert_eq!(passed, [60, 120, 180]);
}

/// Clients that go away while they wait must not keep a permit from others.
#[tokio::test(start_paused = true)]
async fn a_permit_that_comes_too_late_goes_to_the_next() {
    let order = QueueOrder::OldestFirst;
    let kind = Concurrency { permits: 1 };
    let partition = Arc::new(Partition::new(kind, Instant::now()));
    assert!(matches!(
        partition.take((5, order), Instant::now()),
        Taken::Yes(_)
    ));
    let place = || match partition.take((5, order), Instant::now()) {
        Taken::Wait(place) => place,
        other => panic!("{other:?}"),
    };
    let (gone, told_and_gone, waits) = (place(), place(), place());
    drop(gone);
    // The second is told, and goes before it hears of it.
    partition.give_back(order, Instant::now());
    drop(told_and_gone);
    assert!(waits.wait().await);
    // The permit that it has is the only one.
    assert!(matches!(
        partition.take((0, order), Instant::now()),
        Taken::No(_)
    ));
    partition.give_back(order, Instant::now());
    assert!(matches!(
        partition.take((0, order), Instant::now()),
        Taken::Yes(_)
    ));
}
