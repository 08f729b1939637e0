//! The conversion of an agent's list to a discovery result.

use std::sync::Arc;

use discovery_core::Discovery;
use proxy_model::Problem;
use tokio::time::Instant;

use super::hold::{Snapshot, Standing};
use crate::catalog::{LeftOut, ServiceCatalog};
use crate::generate::{TagsParser, discovery_by};
use crate::options::SerfOptions;

/// The input of a conversion.
pub(super) struct Conversion {
    pub(super) before: Arc<Standing>,
    pub(super) snapshot: Snapshot,
    pub(super) now: Instant,
    pub(super) options: Arc<SerfOptions>,
    pub(super) parser: Arc<TagsParser>,
}

/// The result of a conversion.
pub(super) struct Converted {
    pub(super) standing: Standing,
    pub(super) discovery: Discovery,
    pub(super) left_out: Vec<LeftOut>,
}

impl Conversion {
    /// Converts on a blocking thread, since it takes a while for ten thousand members. Returns `None` if
    /// the runtime is shutting down.
    pub(super) async fn run(self) -> Option<Converted> {
        match tokio::task::spawn_blocking(move || self.convert()).await {
            Ok(converted) => Some(converted),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => None,
            },
        }
    }

    fn convert(self) -> Converted {
        let options = &*self.options;
        let standing = self.before.after(self.snapshot, &options.hold, self.now);
        let catalog = ServiceCatalog::build(&standing.members, &options.catalog);
        let services = catalog.services.values().chain(&catalog.legacy);
        let instances = services.flat_map(|service| &service.instances);
        let names: Vec<_> = instances
            .map(|instance| Arc::clone(&instance.member))
            .collect();
        let standing = standing.served_by(names);
        let mut discovery = discovery_by(&catalog, &*self.parser);
        let mut problems = options.generate.check();
        problems.append(std::mem::take(&mut discovery.problems));
        discovery.problems = problems;
        if standing.held() > 0 {
            discovery = discovery.with_problem(removal_held(&standing, options));
        }
        Converted {
            standing,
            discovery,
            left_out: catalog.left_out,
        }
    }
}

fn removal_held(standing: &Standing, options: &SerfOptions) -> Problem {
    let message = format!(
        "{} members that the agent did not know any more when the connection to it was new are kept for up to {:?}",
        standing.held(),
        options.hold.settle,
    );
    let suggestion = "they are kept in case the agent has not joined its cluster yet; if they have \
        really left, wait";
    Problem::warning("", "removal_held", message).with_suggestion(suggestion)
}
