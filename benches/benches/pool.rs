//! Acquiring and releasing an idle connection to a destination, with one, 64 and 512 of them: the
//! cost of reuse for a request.

use std::hint::black_box;
use std::sync::Arc;

use benches::compiled;
use criterion::{BenchmarkId, Criterion};
use proxy_model::config::ProxyConfig;
use proxy_runtime::Proxy;
use proxy_runtime::harness::PoolHarness;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Numbers of idle connections. The last is the maximum of a pool.
const SIZES: [usize; 3] = [1, 64, 512];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system has the resources");
    let mut group = criterion.benchmark_group("pool/take-and-give-back");
    for size in SIZES {
        let harness = harness(&runtime, size);
        let _entered = runtime.enter();
        assert!((0..2 * size).all(|_| harness.acquire_and_release()));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| black_box(&harness).acquire_and_release());
        });
        assert!(harness.acquire_and_release(), "they are there still");
    }
    group.finish();
    criterion.final_summary();
}

/// Opens `connections` to a destination that accepts them and sends nothing.
fn harness(runtime: &Runtime, connections: usize) -> PoolHarness {
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok(accepted) = listener.accept().await {
                open.push(accepted);
            }
        });
        let config = ProxyConfig::from_json(&format!(
            r#"{{ "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{address}/" }} }} }} }} }}"#
        ));
        let snapshot = compiled(config.unwrap_or_else(|problems| panic!("{problems}")));
        let built = Proxy::builder().snapshot(Arc::new(snapshot)).build();
        let (proxy, _) = built.unwrap_or_else(|problems| panic!("{problems}"));
        let opened = PoolHarness::open(&proxy, connections).await;
        opened.unwrap_or_else(|error| panic!("{error}"))
    })
}
