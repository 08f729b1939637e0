//! The work of a merge: whenever something changes, make one configuration of all and publish it.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Problems, Revision, Snapshot};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::accepted::Accepted;
use super::combine::LeftOut;
use super::options::MergeOptions;
use super::overrides;
use super::prepare::{Preparation, Prepared};
use super::resolutions::Resolutions;
use super::state::MergedState;
use crate::backoff::Backoff;
use crate::contain::{Blocking, off_the_runtime};
use crate::provider::{ProviderState, Strictness};
use crate::status::SourceState;
use crate::summary::Summary;
use crate::timestamp::Timestamp;
use crate::validator::ConfigValidator;

/// The wait before validators that did not respond are called again, if nothing changes meanwhile.
const RETRY: Duration = Duration::from_secs(10);
/// The time limit for preparing the configuration of one provider. After that, the previous configuration
/// continues to serve.
const PREPARE_LIMIT: Duration = Duration::from_secs(60);
/// The waits before a configuration that filters partly rejected is prepared again.
const AGAIN: Backoff = Backoff::new(RETRY, Duration::from_secs(320));

/// One provider in the merge.
pub(super) struct Source {
    pub(super) preparation: Preparation,
    pub(super) required: bool,
    pub(super) states: watch::Receiver<Arc<ProviderState>>,
    /// True if further states will follow.
    pub(super) open: bool,
    /// The newest configuration.
    pub(super) newest: Option<Arc<Prepared>>,
    /// The configuration that serves.
    pub(super) serving: Option<Arc<Prepared>>,
    /// The time since which the newest configuration is not the one that serves.
    pub(super) rejected_since: Option<Timestamp>,
    /// The unusable configuration that was last counted, while it stays unusable.
    pub(super) unusable: Option<Unusable>,
    /// The last accepted configuration, if items are accepted one by one.
    pub(super) accepted: Option<Arc<Accepted>>,
    /// The newest configuration that came without a revision, and its revision.
    pub(super) unnamed: Option<(Arc<ProxyConfig>, Revision)>,
    /// The time of the next retry to prepare the newest configuration, and the number of retries so far.
    pub(super) retry: Option<(Instant, u32)>,
    /// Preparing, which runs filters.
    pub(super) preparing: Blocking,
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unusable {
    /// A rejected configuration.
    Rejected(Revision),
    /// No configuration, since the current one cannot be read.
    Unread(Problems),
}

impl Source {
    /// Records whether the newest configuration can be used. Returns true if it cannot, and that is new.
    pub(super) fn note_usable(&mut self, state: &ProviderState, is_reverted: bool) -> bool {
        let stands_as_a_whole = self.preparation.strictness == Strictness::AllOrNothing;
        let is_unread = state.status.state == SourceState::Failing && state.problems.has_errors();
        let newest = self.newest.as_ref();
        let rejected = newest.filter(|newest| newest.rejected || is_reverted);
        let unusable = match rejected {
            _ if !stands_as_a_whole => None,
            _ if is_unread => Some(Unusable::Unread(state.problems.clone())),
            rejected => rejected.map(|newest| Unusable::Rejected(newest.revision)),
        };
        let is_new = unusable.is_some() && unusable != self.unusable;
        self.unusable = unusable;
        is_new
    }

    /// Returns the newest configuration of the provider, and its revision, which is computed if the
    /// provider does not set it.
    fn input(&mut self, state: &ProviderState) -> Option<(Arc<ProxyConfig>, Revision)> {
        let config = state.config.as_ref()?;
        if let Some(revision) = state.revision {
            return Some((Arc::clone(config), revision));
        }
        if let Some((known, revision)) = &self.unnamed
            && Arc::ptr_eq(known, config)
        {
            return Some((Arc::clone(config), *revision));
        }
        let input = (Arc::clone(config), Revision::of(config));
        self.unnamed = Some(input.clone());
        Some(input)
    }

    /// Records the serving configuration as accepted.
    pub(super) fn accept(&mut self, position: usize, left_out: &LeftOut) {
        if self.preparation.strictness == Strictness::AllOrNothing {
            return;
        }
        if let Some(prepared) = &self.serving {
            let before = self.accepted.as_deref();
            let accepted = Accepted::now(prepared, before, position, left_out);
            self.accepted = Some(Arc::new(accepted));
        }
    }
}

/// Does the work of a merge.
pub(super) struct MergeWorker {
    pub(super) sources: Vec<Source>,
    pub(super) validators: Vec<Arc<dyn ConfigValidator>>,
    pub(super) resolutions: Option<Resolutions>,
    pub(super) compile: CompileOptions,
    pub(super) options: MergeOptions,
    pub(super) state: watch::Sender<Arc<MergedState>>,
    pub(super) snapshots: watch::Sender<Arc<Snapshot>>,
    /// The last validated configuration and the problems that validators reported for it.
    pub(super) judged: Option<(Revision, Problems)>,
}

/// The result of compiling a draft.
pub(super) struct Compiled {
    pub(super) snapshot: Snapshot,
    pub(super) problems: Problems,
    /// The changes relative to the published configuration.
    pub(super) changes: Summary,
}

impl MergeWorker {
    /// Merges now, and again whenever something changes. Ends at the shutdown of the runtime.
    pub(super) async fn run(mut self) {
        loop {
            let Some(retry) = self.merge().await else {
                return;
            };
            let ended = Instant::now();
            let resolved = self.changed(retry).await;
            // Changes until then are part of the same publication.
            let earliest = ended + self.options.min_gap;
            if let Some(resolutions) = &mut self.resolutions {
                let latest = if resolved {
                    Instant::now() + self.options.min_gap
                } else {
                    earliest
                };
                resolutions.gather(latest.max(earliest)).await;
            }
            sleep_until(earliest).await;
        }
    }

    /// Waits until something changes. Returns true if it was a resolution.
    async fn changed(&mut self, retry_at: Option<Instant>) -> bool {
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
            () = any_changed(&mut self.sources) => false,
            () = resolved => true,
            () = retry => false,
        }
    }

    /// Merges once. Returns the time of a retry, if a failure may pass. Returns `None` if the runtime is
    /// shutting down.
    async fn merge(&mut self) -> Option<Option<Instant>> {
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
        let owners = std::mem::take(&mut draft.combined.route_owners);
        let names = self.sources.iter();
        let names: Vec<_> = names
            .map(|source| Arc::clone(&source.preparation.provider))
            .collect();
        let compiled = off_the_runtime(move || {
            let (snapshot, mut problems) = Snapshot::compile_isolated(config, &compile);
            overrides::warn(&snapshot, &owners, &names, &mut problems);
            let compiled = Compiled {
                changes: Summary::of(before.config(), snapshot.config()),
                snapshot,
                problems,
            };
            (compiled, owners)
        });
        let (compiled, owners) = compiled.await?;
        draft.combined.route_owners = owners;
        self.publish(&states, &draft, compiled);
        let again = draft.retry.then(|| Instant::now() + RETRY);
        let retries = self.sources.iter().filter_map(|source| source.retry);
        Some(retries.map(|(at, _)| at).chain(again).min())
    }

    /// Prepares the configurations that are new.
    async fn prepare(&mut self, states: &[Arc<ProviderState>]) -> Option<()> {
        for (source, state) in self.sources.iter_mut().zip(states) {
            let Some((config, revision)) = source.input(state) else {
                source.retry = None;
                continue;
            };
            let known = source.newest.as_ref().map(|newest| newest.revision);
            let now = Instant::now();
            let attempts = match source.retry {
                Some((at, attempts)) if known == Some(revision) && at <= now => attempts,
                _ if known == Some(revision) => continue,
                _ => 0,
            };
            let preparation = source.preparation.clone();
            let accepted = source.accepted.clone();
            let prepare = move || preparation.prepare(&config, revision, accepted.as_deref());
            let prepared = source.preparing.run(PREPARE_LIMIT, prepare).await?;
            let prepared = prepared.unwrap_or_else(|broken| Prepared::failed(revision, &broken));
            source.retry = prepared.retry.then(|| {
                let attempts = attempts + 1;
                (now + AGAIN.limit(attempts), attempts)
            });
            source.newest = Some(Arc::new(prepared));
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
            // A provider that was dropped has no more changes, but would be ready forever.
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
