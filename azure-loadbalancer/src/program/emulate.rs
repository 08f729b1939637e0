use azure_loadbalancer::emulator::{Emulator, EmulatorOptions, EmulatorServer};
use program_kit::{Failure, Stop, print};

use super::Found;
use super::cli::EmulatorArgs as Options;
use super::inputs::resources;

/// Runs an emulator until the stop signal.
pub(super) async fn run(options: &Options) -> Result<Found, Failure> {
    let mut chosen = EmulatorOptions::default()
        .operation_requests(options.operation_requests)
        .retry_after(options.retry_after)
        .page_size(options.page_size);
    chosen.id_casing_seed = options.id_casing_seed;
    chosen.token.clone_from(&options.token);
    let emulator = Emulator::new(chosen);
    if let Some(path) = &options.state {
        let found = resources(path)?;
        let restored = emulator.with(|machine| machine.restore(found));
        restored.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    let server = EmulatorServer::start(&options.listen, emulator)
        .await
        .map_err(|error| {
            Failure::new(format!(
                "cannot listen at {}: {error}; `--listen 127.0.0.1:0` takes any free port",
                options.listen
            ))
        })?;
    if server.address().ip().is_unspecified() && options.token.is_none() {
        tracing::warn!(
            "every client that reaches this machine may change the emulated resources; `--token` \
             requires a token"
        );
    }
    let endpoint = server.endpoint();
    print(&format!(
        "azure-loadbalancer {}: an Azure in memory\n\nTry:\n  \
         curl -X PUT '{endpoint}/subscriptions/s/resourceGroups/rg?api-version=2025-05-01' -d '{{\"location\":\"westus\"}}'\n  \
         azure-loadbalancer apply --endpoint {endpoint} --config azure.json --services services.json\n  \
         curl '{endpoint}/emulator'     # the emulator's own calls: requests, faults\n\n\
         Ctrl-C stops it.\nready at {endpoint}\n",
        env!("CARGO_PKG_VERSION")
    ))?;
    Stop::listen()?.asked().await;
    server.shutdown().await;
    Ok(Found::Good)
}
