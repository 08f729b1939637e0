//! The follower of `Server.ErrorPages` and the files of pages.

use proxy_model::Problems;
use proxy_runtime::{ErrorPages, Proxy};

use crate::faults::Faults;
use crate::preflight;
use crate::settings::{ERROR_PAGES, ErrorPageSettings};

/// Installs changed pages.
pub(crate) struct FollowedPages {
    proxy: Proxy,
    faults: Faults,
    /// The pages as they were at the last look.
    seen: Option<Result<ErrorPages, Problems>>,
}

impl FollowedPages {
    /// Follows the pages of `proxy`, which serves those that were there at the start.
    pub(crate) fn new(proxy: Proxy, faults: Faults) -> Self {
        Self {
            proxy,
            faults,
            seen: None,
        }
    }

    /// Reads the pages, and installs them if they have changed. Pages that cannot be read change nothing.
    pub(crate) async fn look(&mut self, settings: ErrorPageSettings) {
        // Reading off the runtime keeps a slow disk from delaying everything else.
        let Ok(now) = tokio::task::spawn_blocking(move || settings.load()).await else {
            return;
        };
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        let is_first = self.seen.is_none();
        match &now {
            Ok(pages) => {
                self.proxy.set_error_pages(pages.clone());
                self.faults.clear(ERROR_PAGES);
                if !is_first {
                    tracing::info!(target: "proxy::config", "the error pages were replaced");
                }
            }
            Err(problems) => {
                tracing::warn!(
                    target: "proxy::config",
                    %problems,
                    "the new error pages cannot be used, the old ones stay"
                );
                let problems = preflight::as_warnings(problems.clone());
                self.faults.set(ERROR_PAGES, problems);
            }
        }
        self.seen = Some(now);
    }
}
