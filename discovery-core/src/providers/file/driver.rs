//! Following the files.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::ProxyConfig;
use proxy_model::{Problem, Problems};
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};

use super::load::{Contents, read};
use super::watch::DirectoryWatch;
use super::{FileError, FileOptions, off_the_runtime};
use crate::error::DiscoverError;
use crate::moment::Moment;
use crate::provider::ProviderState;
use crate::status::{Failure, SourceState};

/// Under this, reading the files regularly would be a busy loop.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
/// Longer than this nobody waits, and sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Follows files.
pub(super) struct Follower {
    paths: Arc<[PathBuf]>,
    options: Arc<FileOptions>,
    watch: DirectoryWatch,
    state: channel::Sender<Arc<ProviderState>>,
    /// What the files held last, whether or not it could be used.
    seen: Seen,
}

#[derive(PartialEq, Eq)]
enum Seen {
    Contents([u8; 32]),
    /// They could not be read, for this reason.
    Nothing(String),
}

/// What reading the files came to.
struct Look {
    seen: Seen,
    /// `None`: they hold what they held before.
    outcome: Option<Result<(ProxyConfig, Problems), FileError>>,
}

impl Follower {
    /// Reads the files for the first time.
    pub(super) async fn start(
        paths: Arc<[PathBuf]>,
        options: FileOptions,
        watch: DirectoryWatch,
    ) -> Result<(Self, channel::Receiver<Arc<ProviderState>>), FileError> {
        let options = Arc::new(options);
        let look = look(&paths, &options, None)
            .await
            .ok_or(FileError::ShuttingDown)?;
        let (config, problems) = look.outcome.ok_or(FileError::ShuttingDown)??;
        let mut first = ProviderState::serving(config).with_problems(problems);
        first.status.rounds = 1;
        let (state, receiver) = channel::channel(Arc::new(first));
        let follower = Self {
            paths,
            options,
            watch,
            state,
            seen: look.seen,
        };
        Ok((follower, receiver))
    }

    /// Follows the files. Ends at the shutdown of the runtime.
    pub(super) async fn run(mut self) {
        loop {
            self.pause().await;
            let Some(look) = look(&self.paths, &self.options, Some(&self.seen)).await else {
                return;
            };
            self.seen = look.seen;
            self.note(look.outcome);
        }
    }

    /// Waits until it is time to look.
    async fn pause(&self) {
        let poll = self.options.poll.clamp(SHORTEST_POLL, LONGEST);
        tokio::select! {
            () = self.watch.signalled() => {}
            () = tokio::time::sleep(poll) => return,
        }
        // Whoever writes a file writes it in several steps.
        let settle = self.options.settle.min(LONGEST);
        let latest = Instant::now() + self.options.settle_max.min(LONGEST);
        let mut quiet = Instant::now() + settle;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(quiet.min(latest)) => return,
                () = self.watch.signalled() => quiet = Instant::now() + settle,
            }
        }
    }

    fn note(&self, outcome: Option<Result<(ProxyConfig, Problems), FileError>>) {
        let mut state = (**self.state.borrow()).clone();
        state.status.rounds += 1;
        let notify = match outcome {
            None => {
                if state.status.state == SourceState::Live {
                    state.status.last_ok = Some(Moment::now());
                }
                false
            }
            Some(Ok((config, problems))) => self.note_contents(&mut state, config, problems),
            Some(Err(error)) => self.note_failure(&mut state, error),
        };
        self.state.send_if_modified(|shared| {
            *shared = Arc::new(state);
            notify
        });
    }

    /// Returns whether anybody needs to know.
    fn note_contents(
        &self,
        state: &mut ProviderState,
        config: ProxyConfig,
        problems: Problems,
    ) -> bool {
        let recovered = state.status.state != SourceState::Live;
        let changed = state.serve(Arc::new(config));
        let name = &*self.options.name;
        tracing::info!(target: "discovery::file", name, changed, "the files were read again");
        let notify = changed || recovered || state.problems != problems;
        state.problems = problems;
        notify
    }

    /// Returns whether anybody needs to know.
    fn note_failure(&self, state: &mut ProviderState, error: FileError) -> bool {
        let message = with_cause(&error);
        tracing::warn!(
            target: "discovery::file",
            name = &*self.options.name,
            error = %message,
            "the files cannot be used; what was read before serves on",
        );
        state.status.last_error = Some(Failure::now(&DiscoverError::permanent(message.clone())));
        state.status.consecutive_failures = state.status.consecutive_failures.saturating_add(1);
        state.status.enter(SourceState::Failing);
        state.problems = match error {
            FileError::Invalid { problems, .. } => problems,
            _ => Problem::error("", "unreadable_file", message).into(),
        };
        true
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.state.send_modify(|shared| {
            let mut state = (**shared).clone();
            state.status.enter(SourceState::Stopped);
            *shared = Arc::new(state);
        });
    }
}

/// Reads the files, on a thread where that may take its time. `None`: the runtime is shutting down.
async fn look(
    paths: &Arc<[PathBuf]>,
    options: &Arc<FileOptions>,
    before: Option<&Seen>,
) -> Option<Look> {
    let (files, settings) = (Arc::clone(paths), Arc::clone(options));
    let result = off_the_runtime(move || read(&files)).await?;
    let contents = match result {
        Ok(contents) => contents,
        Err(error) => {
            let seen = Seen::Nothing(with_cause(&error));
            let outcome = (before != Some(&seen)).then_some(Err(error));
            return Some(Look { seen, outcome });
        }
    };
    let seen = Seen::Contents(contents.fingerprint);
    if before == Some(&seen) {
        return Some(Look {
            seen,
            outcome: None,
        });
    }
    let files = Arc::clone(paths);
    let understand = move || {
        let contents: Contents = contents;
        contents.config(&files, settings.section_required, &settings.compile)
    };
    let outcome = Some(off_the_runtime(understand).await?);
    Some(Look { seen, outcome })
}

fn with_cause(error: &FileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
