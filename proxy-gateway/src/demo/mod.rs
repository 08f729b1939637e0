//! The demo: an emulated Service Fabric cluster with real HTTP services in it, discovered over its REST gateway and
//! proxied, that changes over a minute.

mod instance;
mod screen;
mod story;
mod workload;

use std::time::Duration;

use discovery_core::Merge;
use discovery_servicefabric::client::Client;
use discovery_servicefabric::labels::LabelOptions;
use discovery_servicefabric::{EndpointSource, ServiceFabric, ServiceFabricOptions};
use proxy_model::CompileOptions;
use proxy_runtime::server::ListeningSockets;
use servicefabric_emulator::gateway::Emulator;
use servicefabric_emulator::topology::Topology;
use tokio::time::Instant;

use self::workload::Instances;
use crate::cli;
use crate::commands::{Failure, drain, listen};
use crate::gateway::{Gateway, with_causes};
use crate::settings::{Listener, Server, Settings, Telemetry};
use crate::sources::Sources;

/// The demo's cluster.
const TOPOLOGY: &str = include_str!("shop.toml");

/// How often the cluster is asked when nothing seems to happen, and while something does, at normal speed.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(2);
const FAST_PERIOD: Duration = Duration::from_millis(500);

/// How long the cluster may take to start its services.
const START_LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn run(options: &cli::Demo) -> Result<(), Failure> {
    let began = Instant::now();
    screen::log_events()?;
    let mut signals = listen()?;
    let instances = Instances::default();
    let emulator = start_cluster(options, &instances).await?;
    let mut gateway = Gateway::start(
        &settings(options),
        &mut ListeningSockets::default(),
        async |merge, compile| discover(merge, compile, &emulator, options),
    )
    .await?;
    gateway.until_ready(None).await;
    gateway.serve()?;
    screen::show(&gateway, &emulator, began.elapsed());

    tokio::select! {
        told = tell(&emulator, &instances, options) => told?,
        () = signals.stop() => {}
    }
    drain(gateway, false, &mut signals).await;
    emulator.shutdown().await;
    Ok(())
}

/// Starts the cluster, and waits until its services answer.
async fn start_cluster(options: &cli::Demo, instances: &Instances) -> Result<Emulator, Failure> {
    let topology = Topology::from_toml(TOPOLOGY).map_err(|error| {
        Failure::new(format!("the demo's cluster cannot be understood: {error}"))
    })?;
    let emulator = Emulator::builder(topology)
        .listen(options.cluster.to_string())
        .speed(f64::from(options.speed))
        .workload(instances.clone())
        .start()
        .await
        .map_err(|error| Failure::new(with_causes(&error)))?;
    let deadline = Instant::now() + START_LIMIT;
    while !emulator.with_cluster(|cluster| story::is_settled(cluster)) {
        if Instant::now() > deadline {
            return Err(Failure::new("the demo's services do not start"));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(emulator)
}

/// Discovers the cluster's services as those of any cluster are.
fn discover(
    merge: Merge,
    compile: &CompileOptions,
    emulator: &Emulator,
    options: &cli::Demo,
) -> Result<Merge, Failure> {
    let client = Client::builder(emulator.endpoint())
        .build()
        .map_err(|error| Failure::new(with_causes(&error)))?;
    let discovery = ServiceFabricOptions::default()
        .with_discovery_period(DISCOVERY_PERIOD / options.speed)
        .with_fast_period(FAST_PERIOD / options.speed)
        .with_endpoint_source(EndpointSource::ReplicasAndResolve)
        .with_always_send_immediate_health_reports(true)
        .with_labels(LabelOptions::default().with_insecure_http(true));
    let runner = ServiceFabric::new(client).options(discovery).runner();
    Ok(merge.provider(runner.compile_options(compile.clone()).start()))
}

fn settings(options: &cli::Demo) -> Settings {
    Settings {
        listeners: vec![Listener {
            name: "demo".to_owned(),
            address: options.listen,
            tls: None,
        }],
        admin: Some(options.admin),
        telemetry: Telemetry::default(),
        sources: Sources::default(),
        server: Server {
            drain_timeout: Duration::from_secs(5),
            ..Server::default()
        },
    }
}

/// Tells the story, once or for ever.
async fn tell(
    emulator: &Emulator,
    instances: &Instances,
    options: &cli::Demo,
) -> Result<(), Failure> {
    let mut begin = Instant::now();
    loop {
        for step in story::STEPS {
            tokio::time::sleep_until(begin + step.at / options.speed).await;
            screen::say(step.says);
            emulator
                .with_cluster(|cluster| step.act(cluster, instances))
                .map_err(|error| Failure::new(format!("the demo cannot go on: {error}")))?;
        }
        begin += story::LENGTH / options.speed;
        tokio::time::sleep_until(begin).await;
        if options.once {
            return Ok(());
        }
    }
}
