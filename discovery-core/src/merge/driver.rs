//! The work of a merge: whenever something changes, make one configuration of all and publish it.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use proxy_model::{CompileOptions, Problems, Revision, Snapshot};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::options::MergeOptions;
use super::prepare::{Preparation, Prepared};
use super::resolutions::Resolutions;
use super::state::MergedState;
use crate::contain::{contained_call, off_the_runtime};
use crate::moment::Moment;
use crate::provider::ProviderState;
use crate::summary::Summary;
use crate::validator::ConfigValidator;

/// How long to wait after validators gave no answer, if nothing changes meanwhile.
const RETRY: Duration = Duration::from_secs(10);

/// One provider in the merge.
pub(super) struct Source {
    pub(super) preparation: Preparation,
    pub(super) required: bool,
    pub(super) states: watch::Receiver<Arc<ProviderState>>,
    /// Whether there will be further states.
    pub(super) open: bool,
    /// The newest configuration.
    pub(super) newest: Option<Arc<Prepared>>,
    /// The configuration that serves.
    pub(super) serving: Option<Arc<Prepared>>,
    /// Since when the newest configuration is not the one that serves.
    pub(super) refused_since: Option<Moment>,
}

/// Does the work of a merge.
pub(super) struct Worker {
    pub(super) sources: Vec<Source>,
    pub(super) validators: Vec<Arc<dyn ConfigValidator>>,
    pub(super) resolutions: Option<Resolutions>,
    pub(super) compile: CompileOptions,
    pub(super) options: MergeOptions,
    pub(super) state: watch::Sender<Arc<MergedState>>,
    pub(super) snapshots: watch::Sender<Arc<Snapshot>>,
    /// What the validators said about which configuration.
    pub(super) judged: Option<(Revision, Problems)>,
}

/// What became of a draft.
pub(super) struct Compiled {
    pub(super) snapshot: Snapshot,
    pub(super) problems: Problems,
    /// How it differs from what is published.
    pub(super) changes: Summary,
}

impl Worker {
    /// Merges now, and again whenever something changes. Ends at the shutdown of the runtime.
    pub(super) async fn run(mut self) {
        loop {
            let Some(retry) = self.merge().await else {
                return;
            };
            let ended = Instant::now();
            self.changed(retry.then(|| ended + RETRY)).await;
            // Whatever changes until then is part of the same publication.
            sleep_until(ended + self.options.min_gap).await;
        }
    }

    async fn changed(&mut self, retry_at: Option<Instant>) {
        let resolutions = &mut self.resolutions;
        let resolved = async {
            match resolutions {
                Some(resolutions) => resolutions.changed().await,
                None => pending().await,
            }
        };
        let retry = async {
            match retry_at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = any_changed(&mut self.sources) => {}
            () = resolved => {}
            () = retry => {}
        }
    }

    /// Returns whether to try again soon.
    async fn merge(&mut self) -> Option<bool> {
        let states: Vec<Arc<ProviderState>> = self
            .sources
            .iter_mut()
            .map(|source| Arc::clone(&source.states.borrow_and_update()))
            .collect();
        self.prepare(&states).await?;
        let mut draft = self.draft().await?;
        let config = std::mem::take(&mut draft.combined.config);
        let compile = self.compile.clone();
        let before = Arc::clone(&self.snapshots.borrow());
        let compiled = off_the_runtime(move || {
            let (snapshot, problems) = Snapshot::compile_isolated(config, &compile);
            Compiled {
                changes: Summary::of(before.config(), snapshot.config()),
                snapshot,
                problems,
            }
        });
        let compiled = compiled.await?;
        self.publish(&states, &draft, compiled);
        Some(draft.retry)
    }

    /// Prepares the configurations that are new.
    async fn prepare(&mut self, states: &[Arc<ProviderState>]) -> Option<()> {
        for (source, state) in self.sources.iter_mut().zip(states) {
            let (Some(config), Some(revision)) = (&state.config, state.revision) else {
                continue;
            };
            let newest = source.newest.as_ref();
            if newest.is_some_and(|newest| newest.revision == revision) {
                continue;
            }
            let config = Arc::clone(config);
            let preparation = source.preparation.clone();
            let prepare = move || {
                contained_call(|| preparation.prepare(&config, revision))
                    .unwrap_or_else(|broken| Prepared::failed(revision, &broken))
            };
            source.newest = Some(Arc::new(off_the_runtime(prepare).await?));
        }
        Some(())
    }
}

/// Waits until a provider has a new state.
async fn any_changed(sources: &mut [Source]) {
    let mut waits: Vec<(Pin<Box<_>>, &mut bool)> = sources
        .iter_mut()
        .filter(|source| source.open)
        .map(|source| (Box::pin(source.states.changed()), &mut source.open))
        .collect();
    poll_fn(|context| {
        for (wait, open) in &mut waits {
            // A provider that is gone has nothing new to say, but would be ready for ever.
            if **open && let Poll::Ready(result) = wait.as_mut().poll(context) {
                match result {
                    Ok(()) => return Poll::Ready(()),
                    Err(_) => **open = false,
                }
            }
        }
        Poll::Pending
    })
    .await;
}
