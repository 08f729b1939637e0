//! The demo: real HTTP services in this process, discovered and proxied, that change over a minute.

mod instance;
mod registry;
mod screen;
mod story;

use std::time::Duration;

use discovery_core::{Runner, RunnerOptions};
use tokio::time::Instant;

use self::registry::Registry;
use crate::cli;
use crate::commands::{Failure, drain, listen};
use crate::gateway::Gateway;
use crate::settings::{Listener, Server, Settings, Telemetry};

/// The demo's services are asked for at once when they change; this is for changes that were missed.
const INTERVAL: Duration = Duration::from_secs(30);

pub(crate) async fn run(options: &cli::Demo) -> Result<(), Failure> {
    let began = Instant::now();
    screen::log_events()?;
    let mut signals = listen()?;
    let registry = Registry::default();
    let probe_every = story::PROBE_EVERY / options.speed;
    story::begin(&registry, probe_every)
        .await
        .map_err(|error| Failure::new(format!("the demo's services cannot start: {error}")))?;
    let source = registry.clone();
    let mut gateway = Gateway::start(&settings(options), async |merge, compile| {
        let runner = Runner::new(source)
            .compile_options(compile.clone())
            .options(RunnerOptions::default().with_interval(INTERVAL));
        Ok(merge.provider(runner.start()))
    })
    .await?;
    gateway.serve().await?;
    screen::show(&gateway, began.elapsed());

    tokio::select! {
        told = tell(&registry, options) => told?,
        () = signals.stop() => {}
    }
    drain(gateway, &mut signals).await;
    Ok(())
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
        server: Server {
            drain_timeout: Duration::from_secs(5),
            ..Server::default()
        },
    }
}

/// Tells the story, once or for ever.
async fn tell(registry: &Registry, options: &cli::Demo) -> Result<(), Failure> {
    let mut begin = Instant::now();
    loop {
        for step in story::STEPS {
            tokio::time::sleep_until(begin + step.at / options.speed).await;
            screen::say(step.says);
            step.act(registry, story::PROBE_EVERY / options.speed)
                .await
                .map_err(|error| Failure::new(format!("the demo cannot go on: {error}")))?;
        }
        begin += story::LENGTH / options.speed;
        tokio::time::sleep_until(begin).await;
        if options.once {
            return Ok(());
        }
    }
}
