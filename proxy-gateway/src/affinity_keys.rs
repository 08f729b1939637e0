//! The follower of the file with affinity keys.

use std::path::PathBuf;
use std::time::Duration;

use proxy_model::Problem;
use proxy_runtime::Proxy;

use crate::faults::Faults;
use crate::regular_file;
use crate::settings::{AFFINITY_KEYS_FILE, AffinityKeySource};

/// The interval at which the file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Checks the file every few seconds and installs new keys. A file that cannot be used changes nothing.
pub(crate) async fn follow(proxy: Proxy, file: PathBuf, faults: Faults) {
    let mut seen = contents(file.clone()).await;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = contents(file.clone()).await;
        if now == seen {
            continue;
        }
        // A file that cannot be used is reported once and not at every look.
        seen = now;
        let source = AffinityKeySource::File(file.clone());
        // Reading off the runtime keeps a slow disk from delaying everything else.
        let Ok(keys) = tokio::task::spawn_blocking(move || source.keys()).await else {
            return;
        };
        match keys {
            Ok(keys) => {
                proxy.set_affinity_keys(keys);
                faults.clear(AFFINITY_KEYS_FILE);
                tracing::info!(target: "proxy::config", "the affinity keys were replaced");
            }
            Err(error) => {
                tracing::warn!(
                    target: "proxy::config",
                    error,
                    "the new affinity keys cannot be used, the old ones stay"
                );
                let message =
                    format!("the new affinity keys cannot be used, the old ones stay: {error}");
                let problem =
                    Problem::warning(AFFINITY_KEYS_FILE, "unusable_affinity_keys", message);
                faults.set(AFFINITY_KEYS_FILE, problem);
            }
        }
    }
}

/// The content of the file, for detecting changes. `None` if it cannot be read at the moment.
async fn contents(file: PathBuf) -> Option<Vec<u8>> {
    let read = tokio::task::spawn_blocking(move || regular_file::read(&file).ok());
    read.await.ok().flatten()
}
