//! The follower of the file with the tokens of the admin page.

use std::path::PathBuf;
use std::time::Duration;

use proxy_model::Problem;
use proxy_runtime::admin::Admin;

use crate::faults::Faults;
use crate::regular_file;
use crate::settings::{TOKEN_FILE, TokenSource};

/// The interval at which the file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Checks the file every few seconds and installs new tokens. A file that cannot be used changes nothing. `seen`: the
/// content that was there before the tokens were read.
pub(crate) async fn follow(admin: Admin, file: PathBuf, mut seen: Option<Vec<u8>>, faults: Faults) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = contents(file.clone()).await;
        if now == seen {
            continue;
        }
        // A file that cannot be used is reported once and not at every look.
        seen = now;
        let source = TokenSource::File(file.clone());
        // Reading off the runtime keeps a slow disk from delaying everything else.
        let Ok(tokens) = tokio::task::spawn_blocking(move || source.tokens()).await else {
            return;
        };
        match tokens {
            Ok(tokens) => {
                admin.set_tokens(tokens);
                faults.clear(TOKEN_FILE);
                tracing::info!(target: "proxy::config", "the tokens of the admin page were replaced");
            }
            Err(error) => {
                let kept = "the new tokens of the admin page cannot be used, the old ones stay";
                tracing::warn!(target: "proxy::config", error, "{kept}");
                let problem =
                    Problem::warning(TOKEN_FILE, "unusable_token", format!("{kept}: {error}"));
                faults.set(TOKEN_FILE, problem);
            }
        }
    }
}

/// The content of the file, for detecting changes. `None` if it cannot be read at the moment.
async fn contents(file: PathBuf) -> Option<Vec<u8>> {
    let read = tokio::task::spawn_blocking(move || regular_file::read(&file).ok());
    read.await.ok().flatten()
}
