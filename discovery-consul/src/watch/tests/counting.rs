//! Tests of the number of calls for each change.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::*;
use crate::testing::Fault;
use HealthStatus::{Critical, Passing};

/// No timer of its own is the cause of anything here.
fn options() -> WatchOptions {
    WatchOptions::default().with_reread(Duration::from_secs(1_000_000))
}

#[tokio::test(start_paused = true)]
async fn a_thousand_services_are_found_over_few_connections() {
    let consul = consul_with(1000);
    let watched = Watched::start(&consul, options()).await;
    assert_eq!(watched.instances("sas"), 3000);
    assert_eq!(
        consul.count("health/service/"),
        1001,
        "each once, and Consul's own"
    );
    let most = consul.most_in_flight();
    assert!(most <= 2 + 8, "{most}");
}

#[tokio::test(start_paused = true)]
async fn a_flip_costs_one_read_and_shows_at_once() {
    let consul = consul_with(100);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(5).await;
    let (before, started) = (consul.count("health/service/"), Instant::now());
    consul.set_check("sas", "s0007-1", Critical);
    let now = [
        ("s0007-0", Passing),
        ("s0007-1", Critical),
        ("s0007-2", Passing),
    ];
    watched.has("sas", "s0007", &now).await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    watched.pass(20).await;
    assert_eq!(watched.reads_since(before), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_instance_with_a_check_and_one_that_goes_cost_one_read_each() {
    let consul = consul_with(100);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(5).await;
    let before = consul.count("health/service/");
    // The index of the list moves too, without a change: the check explains it.
    consul.register("sas", "n9", checked("s0007", "s0007-9", 80));
    watched.pass(20).await;
    assert_eq!(watched.instances("sas"), 301);
    assert_eq!(watched.reads_since(before), 1);
    consul.deregister("sas", "n9", "s0007-9");
    watched.pass(20).await;
    assert_eq!(watched.instances("sas"), 300);
    assert_eq!(watched.reads_since(before), 2);
    let now = [
        ("s0007-0", Passing),
        ("s0007-1", Passing),
        ("s0007-2", Passing),
    ];
    watched.has("sas", "s0007", &now).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_tag_and_a_new_service_cost_one_read_each() {
    let consul = consul_with(10);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(5).await;
    let before = consul.count("health/service/");
    consul.register(
        "sas",
        "n0",
        checked("s0003", "s0003-0", 80).with_tag("blue"),
    );
    watched
        .when("the tag", |state| {
            let service = &state.datacenters[0].services["s0003"];
            service.instances[0].tags == ["blue"]
        })
        .await;
    watched.pass(20).await;
    let cost_of_tag = watched.reads_since(before);
    // Both responses show it, and the second may come when the first is read already.
    assert!((1..=2).contains(&cost_of_tag), "{cost_of_tag}");
    consul.register("sas", "n0", ServiceDefinition::new("fresh", 80));
    watched.has("sas", "fresh", &[("fresh", Passing)]).await;
    watched.pass(20).await;
    assert_eq!(watched.reads_since(before), cost_of_tag + 1);
}

#[tokio::test(start_paused = true)]
async fn another_port_shows_in_neither_answer_and_costs_a_read_of_everything() {
    let consul = consul_with(10);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    let (before, started) = (consul.count("health/service/"), Instant::now());
    consul.register("sas", "n0", checked("s0003", "s0003-0", 81));
    watched
        .when("the port", |state| {
            state.datacenters[0].services["s0003"].instances[0].port == 81
        })
        .await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
    watched.pass(20).await;
    assert_eq!(
        watched.reads_since(before),
        11,
        "once, though both answers have moved"
    );
}

#[tokio::test(start_paused = true)]
async fn an_instance_without_a_check_is_found_by_reading_everything_but_seldom() {
    let consul = consul_with(10);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    let before = consul.count("health/service/");
    let bare = |nth: u16| ServiceDefinition::new("s0003", nth).with_id(format!("bare-{nth}"));
    consul.register("sas", "n0", bare(1));
    watched
        .when("the first", |state| {
            state.datacenters[0].services["s0003"].instances.len() == 4
        })
        .await;
    assert_eq!(watched.reads_since(before), 11);
    // More of them in a row: no more than every five seconds.
    let started = Instant::now();
    for nth in 2..12 {
        consul.register("sas", "n0", bare(nth));
        watched.pass(1).await;
    }
    watched.pass(20).await;
    assert_eq!(watched.instances("sas"), 30 + 11);
    let resyncs = watched.reads_since(before) / 11;
    assert!(
        (3..=5).contains(&resyncs),
        "{resyncs} in {:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_in_maintenance_costs_a_read_of_each_service_on_it() {
    let consul = consul_with(10);
    consul.register("sas", "lonely", ServiceDefinition::new("bare", 80));
    consul.register("sas", "other", checked("other", "other", 80));
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(20).await;
    let before = consul.count("health/service/");
    consul.set_node_maintenance("sas", "n0", true);
    let now = [
        ("s0003-0", HealthStatus::Maintenance),
        ("s0003-1", Passing),
        ("s0003-2", Passing),
    ];
    watched.has("sas", "s0003", &now).await;
    watched.pass(20).await;
    assert_eq!(watched.reads_since(before), 10);
    // Also of those that have no check of their own.
    consul.set_node_maintenance("sas", "lonely", true);
    watched
        .has("sas", "bare", &[("bare", HealthStatus::Maintenance)])
        .await;
    watched.pass(20).await;
    assert_eq!(watched.reads_since(before), 11);
}

#[tokio::test(start_paused = true)]
async fn flapping_is_read_at_a_bounded_rate_and_ends_right() {
    let consul = consul_with(10);
    let mut watched = Watched::start(&consul, options()).await;
    watched.pass(5).await;
    let before = consul.requests().len();
    for nth in 0..200 {
        let status = if nth % 2 == 0 { Critical } else { Passing };
        consul.set_check("sas", "s0003-1", status);
        sleep(Duration::from_millis(50)).await;
    }
    let now = [
        ("s0003-0", Passing),
        ("s0003-1", Passing),
        ("s0003-2", Passing),
    ];
    watched.pass(2).await;
    watched.has("sas", "s0003", &now).await;
    let requests = consul.requests().len() - before;
    // Four queries a second, and a read for each.
    assert!(requests <= 2 * (4 * 12 + 3), "{requests}");
}

#[tokio::test(start_paused = true)]
async fn silence_costs_two_requests_per_wait_and_a_slow_read_of_everything() {
    let consul = consul_with(30);
    let watched = Watched::start(&consul, WatchOptions::default()).await;
    let lists = || consul.count("catalog/services") + consul.count("health/state");
    let (reads, queries) = (consul.count("health/service/"), lists());
    watched.pass(600).await;
    let queries = lists() - queries;
    assert!((36..=42).contains(&queries), "{queries}");
    // 31 services, each every 60 to 120 s.
    let reads = watched.reads_since(reads);
    assert!((31 * 5..=31 * 10).contains(&reads), "{reads}");
    let most = consul.most_in_flight();
    assert!(most <= 10, "{most}");
}

/// The cost of the planned size: each service is read once at the beginning, each change costs one read,
/// and without changes each service is read about every 90 s, over ten connections.
#[tokio::test(start_paused = true)]
async fn five_thousand_services_cost_what_is_planned() {
    let consul = consul_with(5000);
    let mut watched = Watched::start(&consul, WatchOptions::default()).await;
    assert_eq!(watched.instances("sas"), 15_000);
    assert_eq!(consul.count("health/service/"), 5001);
    assert!(consul.count("catalog/services") + consul.count("health/state") <= 4);
    let (before, started) = (consul.count("health/service/"), Instant::now());
    consul.set_check("sas", "s4321-1", Critical);
    let now = [
        ("s4321-0", Passing),
        ("s4321-1", Critical),
        ("s4321-2", Passing),
    ];
    watched.has("sas", "s4321", &now).await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(watched.reads_since(before), 1);
    watched.pass(120).await;
    let reads = watched.reads_since(before);
    assert!((5001..=5001 * 2).contains(&reads), "{reads}");
    let most = consul.most_in_flight();
    assert!(most <= 10, "{most}");
}

/// A quiet Consul gets as many requests in one minute as in another, and no more than each service at its earliest.
#[tokio::test(start_paused = true)]
async fn five_hundred_services_cost_a_bounded_number_of_requests_a_minute() {
    const SERVICES: usize = 501;
    let consul = consul_with(SERVICES - 1);
    let watched = Watched::start(&consul, WatchOptions::default()).await;
    let mut minutes = Vec::new();
    for _ in 0..15 {
        let before = consul.requests().len();
        watched.pass(60).await;
        minutes.push(consul.requests().len() - before);
    }
    // The first reads were all at once, and so are those that follow them, within a minute.
    let most = SERVICES * 60 / 54 + 10;
    assert!(minutes.iter().all(|&minute| minute <= most), "{minutes:?}");
    // Each is read every 54 to 88 s.
    let all: usize = minutes.iter().sum();
    let (least, most) = (SERVICES * 15 * 60 / 88, SERVICES * 15 * 60 / 54 + 150);
    assert!((least..=most).contains(&all), "{all}: {minutes:?}");
    // They spread by and by.
    let late = &minutes[10..];
    let mean = late.iter().sum::<usize>() / late.len();
    let is_even = |&minute: &usize| minute * 10 <= mean * 13 && minute * 13 >= mean * 10;
    assert!(late.iter().all(is_even), "{minutes:?}");
}

/// The times between two reads of each service, from the request with this number until now.
fn gaps(consul: &FakeConsul, first: usize) -> BTreeMap<String, Vec<Duration>> {
    let mut reads = BTreeMap::<_, Vec<_>>::new();
    for request in consul.requests().split_off(first) {
        if let Some(service) = request.path.strip_prefix("health/service/") {
            let times = reads.entry(service.to_owned()).or_default();
            times.push(request.at);
        }
    }
    let gaps = |mut times: Vec<Instant>| {
        times.push(Instant::now());
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let each = reads.into_iter();
    each.map(|(service, times)| (service, gaps(times)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_single_service_is_read_again_within_its_time() {
    let consul = consul_with(200);
    let watched = Watched::start(&consul, WatchOptions::default()).await;
    watched.pass(900).await;
    let mut gaps = gaps(&consul, 0);
    // One without instances is read after a change.
    gaps.remove("consul");
    assert_eq!(gaps.len(), 200);
    let limit = Duration::from_secs(90);
    for (service, gaps) in gaps {
        assert!(gaps.len() >= 10, "{service}: {gaps:?}");
        assert!(gaps.iter().all(|gap| *gap <= limit), "{service}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_service_that_cannot_be_read_is_tried_again_within_its_time() {
    const BROKEN: [&str; 3] = ["s0001", "s0002", "s0003"];
    // Half a second, then twice as long each time, up to 30 s: the default. Then services that are read more often.
    for (reread, longest) in [(90, 30.0), (10, 10.0)] {
        let consul = consul_with(50);
        let options = WatchOptions::default().with_reread(Duration::from_secs(reread));
        let mut watched = Watched::start(&consul, options).await;
        let first = consul.requests().len();
        for service in BROKEN {
            let path = format!("health/service/{service}");
            consul.fail(&path, Fault::Status(500, "boom"));
            consul.set_check("sas", &format!("{service}-0"), Critical);
        }
        watched.pass(600).await;
        let all = gaps(&consul, first);
        assert_eq!(all.len(), 50);
        for service in BROKEN {
            let (gaps, mut limit) = (&all[service], 0.5_f64);
            for gap in gaps {
                assert!(
                    gap.as_secs_f64() <= limit + 0.01,
                    "{service}, {limit} s: {gaps:?}"
                );
                limit = (2.0 * limit).min(longest);
            }
            // Not much more often either.
            let most = 600.0 / (longest / 2.0) + 10.0;
            assert!(gaps.len() as f64 <= most, "{service}: {gaps:?}");
        }
        let limit = Duration::from_secs(reread);
        for (service, gaps) in &all {
            assert!(gaps.iter().all(|gap| *gap <= limit), "{service}: {gaps:?}");
        }
        let healed = Instant::now();
        consul.heal();
        let is_read = |state: &WatchState| state.datacenters[0].unread.is_empty();
        watched.when("all are read", is_read).await;
        let took = healed.elapsed().as_secs_f64();
        assert!(took <= longest + 0.01, "{took} s");
    }
}
