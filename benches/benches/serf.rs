//! The conversion of a Serf cluster to a configuration, and a poll cycle with one changed member.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::AllocationInfo;
use benches::Scale;
use criterion::{BatchSize, Criterion, Throughput};
use discovery_core::testing::ScriptedDiscoverer;
use discovery_core::{
    Discovery, DiscoveryProvider, ProviderState, Runner, RunnerOptions, ServiceContent,
};
use discovery_serf::catalog::{CatalogOptions, ServiceCatalog};
use discovery_serf::generate::{GenerateOptions, discovery_of};
use discovery_serf::{Member, Tags};
use proxy_model::config::ProxyConfig;
use proxy_model::{Change, CompileOptions, Snapshot, diff};
use tokio::runtime::Runtime;

/// Instances of a service.
const EACH: usize = 20;

/// Maximum cost of a member, from its tags to the configuration.
const MOST_ALLOCATIONS: u64 = 40;
const MOST_BYTES: u64 = 2 * 1024;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .configure_from_args();
    let many = Scale::of_this_run().limit(10_000);
    let members = cluster(many);
    check(&members);
    costs(&members);

    let mut group = criterion.benchmark_group(format!("serf/{many}"));
    group.throughput(Throughput::Elements(many as u64));
    let catalog = catalog_of(&members);
    group.bench_function("catalog", |bencher| {
        bencher.iter_batched(|| (), |()| catalog_of(&members), BatchSize::PerIteration);
    });
    group.bench_function("config", |bencher| {
        bencher.iter_batched(|| (), |()| config_of(&catalog), BatchSize::PerIteration);
    });

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built");
    group.bench_function("first-round", |bencher| {
        bencher.iter_custom(|rounds| {
            let round = |_| {
                let published = Published::new(&runtime);
                published.round(&runtime, &members).1
            };
            (0..rounds).map(round).sum()
        });
    });
    for (name, changes) in [("quiet-round", false), ("one-change", true)] {
        let published = Published::new(&runtime);
        let mut before = published.round(&runtime, &members).0;
        let mut now = members.clone();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut sum = Duration::ZERO;
                for _ in 0..rounds {
                    if changes {
                        change(&mut now);
                    }
                    let (after, took) = published.round(&runtime, &now);
                    sum += took;
                    let published = after.status.changes - before.status.changes;
                    assert_eq!(published, u64::from(changes));
                    before = after;
                }
                sum
            });
        });
    }
    group.finish();
    criterion.final_summary();
    ratios(&runtime, &members);
}

/// Members of services with all supported tags.
fn cluster(members: usize) -> Vec<Member> {
    (0..members).map(member).collect()
}

fn member(at: usize) -> Member {
    let service = format!("service-{:04}", at / EACH);
    let tags = [
        ("service", service.clone()),
        ("http-port", "8080".to_owned()),
        ("host", format!("{service}.example")),
        ("health-path", "/healthz".to_owned()),
        ("weight", (1 + at % 10).to_string()),
        (
            "version",
            if at.is_multiple_of(10) {
                "canary"
            } else {
                "stable"
            }
            .to_owned(),
        ),
        ("instance", format!("{service}-{:02}", at % EACH)),
    ];
    let bits = u32::try_from(at).expect("so many fit into 10.0.0.0/8");
    let address = Ipv4Addr::from(0x0a00_0000 + bits);
    Member::new(
        format!("node-{at:05}"),
        address.into(),
        Tags::from_iter(tags),
    )
}

/// Changes the weight of one member.
fn change(members: &mut [Member]) {
    let middle = members.len() / 2;
    let tags = &mut members[middle].tags;
    let heavy = tags.bytes("weight") == Some(b"77");
    tags.insert("weight", if heavy { "78" } else { "77" });
}

fn catalog_of(members: &[Member]) -> ServiceCatalog {
    ServiceCatalog::build(members, &CatalogOptions::default())
}

fn config_of(catalog: &ServiceCatalog) -> Discovery {
    discovery_of(catalog, &GenerateOptions::default())
}

/// Asserts a correct result: all members are present, and a change is one change.
fn check(members: &[Member]) {
    let whole = whole(&config_of(&catalog_of(members)));
    assert_eq!(whole.routes.len(), members.len() / EACH);
    let destinations = whole.clusters.values().map(|c| c.destinations.len());
    assert_eq!(destinations.sum::<usize>(), members.len());
    let compiled = Snapshot::compile(whole.clone(), &CompileOptions::default());
    assert!(compiled.expect("it compiles").1.is_empty());

    let mut changed = members.to_vec();
    change(&mut changed);
    changed.reverse();
    let after = self::whole(&config_of(&catalog_of(&changed)));
    let changes = diff(&whole, &after);
    assert!(
        matches!(&changes[..], [Change::DestinationChanged { .. }]),
        "{changes:?}"
    );
}

fn whole(discovery: &Discovery) -> ProxyConfig {
    assert!(discovery.problems.is_empty());
    let mut whole = ProxyConfig::default();
    for service in &discovery.services {
        assert!(service.problems.is_empty(), "{}", service.problems);
        let ServiceContent::Config(config) = &service.content else {
            panic!("{} is not served", service.name);
        };
        whole.clusters.extend(config.clusters.clone());
        whole.routes.extend(config.routes.clone());
    }
    whole
}

/// Asserts that memory grows at most linearly with the members, and prints it.
fn costs(members: &[Member]) {
    let few = &members[..members.len() / 10];
    let (of_few, of_all) = (cost(few), cost(members));
    for (what, of) in [
        (
            "allocations",
            (|a| a.count_total) as fn(&AllocationInfo) -> u64,
        ),
        ("bytes at most", |a| a.bytes_max),
    ] {
        let each =
            |cost: &AllocationInfo, members: &[Member]| of(cost) as f64 / members.len() as f64;
        let (little, much) = (each(&of_few, few), each(&of_all, members));
        println!(
            "serf/{}/{what}: {much:.1} for each member, {:.2} times that of a tenth of them",
            members.len(),
            much / little,
        );
        assert!(much < 1.5 * little, "{what} grow faster than the cluster");
    }
    let all = members.len() as u64;
    assert!(of_all.count_total < all * MOST_ALLOCATIONS, "{of_all:?}");
    assert!(of_all.bytes_max < all * MOST_BYTES, "{of_all:?}");
}

fn cost(members: &[Member]) -> AllocationInfo {
    let mut made = None;
    let cost = allocation_counter::measure(|| made = Some(config_of(&catalog_of(members))));
    assert!(made.is_some());
    cost
}

/// Prints the ratios of the cycles: the shortest of each, measured in turn.
fn ratios(runtime: &Runtime, members: &[Member]) {
    let mut shortest = [Duration::MAX; 3];
    let mut now = members.to_vec();
    for _ in 0..5 {
        let published = Published::new(runtime);
        let (_, first) = published.round(runtime, &now);
        let (_, quiet) = published.round(runtime, &now);
        change(&mut now);
        let (_, one) = published.round(runtime, &now);
        for (shortest, took) in shortest.iter_mut().zip([first, quiet, one]) {
            *shortest = took.min(*shortest);
        }
    }
    let [first, quiet, one] = shortest.map(|took| took.as_secs_f64());
    println!(
        "serf/{}/rounds: a quiet one takes {:.2} of the first, one with a change {:.2}",
        members.len(),
        quiet / first,
        one / first,
    );
}

/// A runner whose source is a catalog.
struct Published {
    source: ScriptedDiscoverer,
    provider: DiscoveryProvider,
}

impl Published {
    fn new(runtime: &Runtime) -> Self {
        let source = ScriptedDiscoverer::new("serf");
        // Only a trigger starts a cycle.
        let options = RunnerOptions::default().with_interval(Duration::from_secs(24 * 3600));
        let runner = Runner::new(source.clone()).options(options);
        let _guard = runtime.enter();
        let provider = runner.start();
        runtime.block_on(source.wait_for_reports(1));
        Self { source, provider }
    }

    /// Runs a cycle with these members, from the list to the publication. Returns its duration,
    /// without virtual time.
    fn round(&self, runtime: &Runtime, members: &[Member]) -> (Arc<ProviderState>, Duration) {
        let before = self.source.reports().len();
        let start = Instant::now();
        let discovery = config_of(&catalog_of(members));
        self.source.answer_with(discovery);
        self.source.trigger();
        runtime.block_on(self.source.wait_for_reports(before + 1));
        let took = start.elapsed();
        (self.provider.state(), took)
    }
}
