//! The client against the gateway of an emulated cluster, over real sockets.
#![cfg(feature = "reqwest")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod calls;
mod security;

use std::time::Duration;

use discovery_servicefabric::client::{Client, ClientOptions};
use servicefabric_emulator::gateway::{Builder, Emulator};
use servicefabric_emulator::topology::Topology;

/// Long enough for everything to be placed and opened, in the time of the cluster.
const SETTLED: Duration = Duration::from_secs(600);

fn builder() -> Builder {
    let topology = Topology::from_toml(include_str!("shop.toml")).unwrap();
    Emulator::builder(topology)
        .listen("127.0.0.1:0")
        .manual_time()
        .report_interval(Duration::ZERO)
}

async fn start(builder: Builder) -> Emulator {
    let emulator = builder.start().await.unwrap();
    emulator.advance(SETTLED);
    emulator
}

fn options() -> ClientOptions {
    ClientOptions::default().with_backoff(Duration::from_millis(1))
}

fn client(emulator: &Emulator) -> Client {
    Client::builder(emulator.endpoint())
        .options(options())
        .build()
        .unwrap()
}
