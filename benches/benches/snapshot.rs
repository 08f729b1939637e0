//! A configuration change with 100,000 destinations, step by step: parse, compile, hash, compare,
//! publish.

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Duration;

use benches::{Scale, clusters, compiled, moved};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion};
use proxy_model::config::ProxyConfig;
use proxy_model::{Revision, Snapshot, apply, diff};
use proxy_runtime::Proxy;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let scale = Scale::of_this_run();
    for (many, few) in [(1_000, 100), (10_000, 10)] {
        // Unoptimised, 100,000 take half a minute, so a check run uses 1,000.
        let many = scale.limit(many * few) / few;
        let mut group = criterion.benchmark_group(format!("snapshot/{many}x{few}"));
        steps(&mut group, many, few);
        group.finish();
    }
    criterion.final_summary();
}

fn steps(group: &mut BenchmarkGroup<'_, WallTime>, many: usize, few: usize) {
    let config = LazyCell::new(|| Arc::new(clusters(many, few)));
    let other = LazyCell::new(|| moved(&config, 100));

    let text = LazyCell::new(|| {
        let text = serde_json::to_string_pretty(&**config).expect("keys are text");
        assert_eq!(&read(&text), &**config);
        text
    });
    group.bench_function("read", |bencher| {
        // The result is dropped outside of the measurement.
        bencher.iter_batched(|| (), |()| read(&text), BatchSize::PerIteration);
    });

    let checked = LazyCell::new(|| {
        let snapshot = compiled(ProxyConfig::clone(&config));
        assert_eq!(snapshot.clusters().len(), many);
        let all = snapshot.clusters().iter();
        assert_eq!(
            all.map(|c| c.destinations().len()).sum::<usize>(),
            many * few
        );
        Arc::clone(&config)
    });
    group.bench_function("compile", |bencher| {
        let options = proxy_model::CompileOptions::default();
        bencher.iter_batched(
            || Arc::clone(&checked),
            |config| Snapshot::compile(config, &options),
            BatchSize::PerIteration,
        );
    });

    let differing = LazyCell::new(|| {
        assert_eq!(
            Revision::of(&config),
            Revision::of(&ProxyConfig::clone(&config))
        );
        assert_ne!(Revision::of(&config), Revision::of(&other.0));
    });
    group.bench_function("revision", |bencher| {
        *differing;
        bencher.iter(|| Revision::of(&config));
    });

    let changes = LazyCell::new(|| {
        let changes = diff(&config, &other.0);
        assert_eq!(changes.len(), other.1);
        assert_eq!(apply(&config, &changes), other.0);
    });
    group.bench_function("diff-nothing", |bencher| {
        let same = ProxyConfig::clone(&config);
        assert!(diff(&config, &same).is_empty());
        bencher.iter(|| diff(&config, &same));
    });
    group.bench_function("diff-1%", |bencher| {
        *changes;
        bencher.iter_batched(|| (), |()| diff(&config, &other.0), BatchSize::PerIteration);
    });

    publish(group, "publish-nothing", &config, usize::MAX);
    publish(group, "publish-1%", &config, 100);
    publish(group, "publish-all", &config, 1);
}

/// Publishes two configurations in turn, which differ in every `nth` destination. The state of the
/// others is inherited.
fn publish(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    config: &Arc<ProxyConfig>,
    nth: usize,
) {
    let built = LazyCell::new(|| {
        let (other, count) = if nth == usize::MAX {
            (ProxyConfig::clone(config), 0)
        } else {
            moved(config, nth)
        };
        let both = [ProxyConfig::clone(config), other].map(|config| Arc::new(compiled(config)));
        let (proxy, driver) = Proxy::builder()
            .snapshot(Arc::clone(&both[0]))
            .build()
            .unwrap_or_else(|problems| panic!("{problems}"));
        // Without the driver, no probes run and no rates are measured.
        drop(driver);
        let generation = proxy
            .publish(Arc::clone(&both[1]))
            .expect("the policy is known");
        assert_eq!(generation, 2);
        assert_eq!(proxy.snapshot().revision(), both[1].revision());
        let last = proxy.history().swap_remove(0);
        assert_eq!(
            last.lines.len() + last.omitted,
            count,
            "destinations that moved"
        );
        (proxy, both)
    });
    group.bench_function(name, |bencher| {
        let (proxy, both) = &*built;
        let mut turns = both.iter().cycle();
        bencher.iter_batched(
            || Arc::clone(turns.next().expect("it goes on for ever")),
            |snapshot| proxy.publish(snapshot),
            BatchSize::PerIteration,
        );
    });
}

fn read(text: &str) -> ProxyConfig {
    ProxyConfig::from_json(text).unwrap_or_else(|problems| panic!("{problems}"))
}
