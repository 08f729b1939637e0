//! The demo: an emulated Service Fabric cluster with real HTTP services in it, discovered over its REST
//! gateway and proxied, that changes over a minute.
//!
//! `proxy` is the part to read for embedding: it starts a proxy, its server and its admin page from a
//! provider.

mod cli;
mod failure;
mod instance;
mod proxy;
mod screen;
mod signals;
mod story;
mod transport;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use discovery_servicefabric::client::Client;
use discovery_servicefabric::labels::LabelOptions;
use discovery_servicefabric::{EndpointSource, ServiceFabric, ServiceFabricOptions};
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::topology::Topology;
use tokio::time::Instant;

use self::cli::Options;
use self::failure::Failure;
use self::proxy::RunningProxy;
use self::signals::Signals;
use self::transport::PlainTransport;
use self::workload::Instances;

/// The topology of the demo's cluster.
const TOPOLOGY: &str = include_str!("shop.toml");

/// The interval of polls of the cluster: normally, and while it changes. At normal speed.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(2);
const FAST_PERIOD: Duration = Duration::from_millis(500);

/// The time limit for the start of the cluster's services.
const START_LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    // Wrong usage exits here, with 2.
    let options = Options::parse();
    // Discovery and the cluster share this thread; the forwarding threads belong to the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(&options)),
        Err(error) => Err(Failure::of("the system gives no runtime", &error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("demo: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let began = Instant::now();
    screen::log_events()?;
    let mut signals =
        Signals::listen().map_err(|error| Failure::of("signals cannot be received", &error))?;
    screen::stage("starting an emulated Service Fabric cluster and its services …");
    let instances = Instances::default();
    let emulator = start_cluster(options, &instances).await?;
    screen::stage("discovering the services over the cluster's REST gateway …");
    let client = Client::builder(emulator.endpoint())
        .transport(PlainTransport)
        .build()
        .map_err(|error| Failure::of("the cluster's address cannot be used", &error))?;
    let provider = ServiceFabric::new(client).options(discovery(options));
    let proxy = RunningProxy::start(options, provider.runner()).await?;
    screen::show(&proxy, &emulator, began.elapsed());

    tokio::select! {
        told = tell(&emulator, &instances, options) => told?,
        () = signals.stop() => {}
    }
    eprintln!("stopping: no new connections, requests in flight may end");
    tokio::select! {
        () = proxy.shutdown() => {}
        () = signals.stop() => return Ok(()),
    }
    emulator.shutdown().await;
    Ok(())
}

/// Starts the cluster, and waits until its services respond.
async fn start_cluster(options: &Options, instances: &Instances) -> Result<Emulator, Failure> {
    let topology = Topology::from_toml(TOPOLOGY)
        .map_err(|error| Failure::of("the demo's cluster cannot be read", &error))?;
    let emulator = Emulator::builder(topology)
        .listen(options.cluster.to_string())
        .speed(f64::from(options.speed))
        .workload(instances.clone())
        .start()
        .await
        .map_err(|error| Failure::of_address(options.cluster, "cluster", &error))?;
    let deadline = Instant::now() + START_LIMIT;
    while !emulator.with_cluster(|cluster| story::is_settled(cluster)) {
        if Instant::now() > deadline {
            return Err(Failure::new(format!(
                "the demo's services did not start within {} s",
                START_LIMIT.as_secs()
            )));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(emulator)
}

/// Returns the options of discovery: shorter intervals than the defaults, so that changes show at once.
fn discovery(options: &Options) -> ServiceFabricOptions {
    ServiceFabricOptions::default()
        .with_discovery_period(DISCOVERY_PERIOD / options.speed)
        .with_fast_period(FAST_PERIOD / options.speed)
        .with_endpoint_source(EndpointSource::ReplicasAndResolve)
        .with_always_send_immediate_health_reports(true)
        .with_labels(LabelOptions::default().with_insecure_http(true))
}

/// Plays the story, once or repeatedly.
async fn tell(
    emulator: &Emulator,
    instances: &Instances,
    options: &Options,
) -> Result<(), Failure> {
    let mut begin = Instant::now();
    loop {
        for step in story::STEPS {
            tokio::time::sleep_until(begin + step.at / options.speed).await;
            screen::say(step.says);
            emulator
                .with_cluster(|cluster| step.act(cluster, instances))
                .map_err(|error| Failure::of("the demo cannot continue", &error))?;
        }
        begin += story::LENGTH / options.speed;
        tokio::time::sleep_until(begin).await;
        if options.once {
            return Ok(());
        }
    }
}
