//! Following the files.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proxy_model::Problem;
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};

use super::layers::Layers;
use super::load::{Loaded, read};
use super::watch::DirectoryWatch;
use super::{FileError, FileOptions};
use crate::contain::Blocking;
use crate::error::DiscoverError;
use crate::provider::ProviderState;
use crate::status::{Failure, SourceState};
use crate::timestamp::Timestamp;

/// Minimum interval of polls. With a shorter one, reading the files would be a busy loop.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
/// The time limit for reading. A read that hangs, as on network drives, is abandoned.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// Maximum of all waits, so that sums of times cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Follows files.
pub(super) struct Follower {
    layers: Arc<Layers>,
    options: Arc<FileOptions>,
    watch: DirectoryWatch,
    /// The files that need not have been there and were, so that they must not vanish.
    present: Arc<[PathBuf]>,
    state: channel::Sender<Arc<ProviderState>>,
    /// The last content of the files, usable or not.
    seen: Seen,
    reading: Blocking,
}

#[derive(Clone, PartialEq, Eq)]
enum Seen {
    Contents([u8; 32]),
    /// An error while reading, with the reason.
    Nothing(String),
}

/// The result of reading the files.
struct Look {
    seen: Seen,
    /// The files that need not be there and are. `None` if the files could not be read.
    present: Option<Vec<PathBuf>>,
    /// The new content. `None` if it is unchanged.
    outcome: Option<Result<Loaded, FileError>>,
}

impl Follower {
    /// Reads the files for the first time.
    pub(super) async fn start(
        layers: Arc<Layers>,
        options: FileOptions,
        watch: DirectoryWatch,
    ) -> Result<(Self, channel::Receiver<Arc<ProviderState>>), FileError> {
        let options = Arc::new(options);
        let mut reading = Blocking::default();
        let look = look(&layers, &options, &Arc::default(), None, &mut reading)
            .await
            .ok_or(FileError::ShuttingDown)?;
        let loaded = look.outcome.ok_or(FileError::ShuttingDown)??;
        let mut first = ProviderState::serving(loaded.config).with_problems(loaded.problems);
        first.section = loaded.section.into();
        first.origins = loaded.origins;
        first.status.cycles = 1;
        let (state, receiver) = channel::channel(Arc::new(first));
        let follower = Self {
            layers,
            options,
            watch,
            present: look.present.unwrap_or_default().into(),
            state,
            seen: look.seen,
            reading,
        };
        Ok((follower, receiver))
    }

    /// Follows the files. Ends at the shutdown of the runtime.
    pub(super) async fn run(mut self) {
        loop {
            self.pause().await;
            let seen = Some(self.seen.clone());
            let look = look(
                &self.layers,
                &self.options,
                &self.present,
                seen,
                &mut self.reading,
            );
            let Some(look) = look.await else {
                return;
            };
            self.seen = look.seen;
            if let Some(present) = look.present {
                self.present = present.into();
            }
            self.note(look.outcome);
        }
    }

    /// Waits until the program wants the files to be read.
    async fn reload_wanted(&self) {
        match &self.options.reload {
            Some(reload) => reload.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until it is time to look.
    async fn pause(&self) {
        let poll = self.options.poll.clamp(SHORTEST_POLL, LONGEST);
        tokio::select! {
            () = self.watch.signalled() => {}
            () = tokio::time::sleep(poll) => return,
            () = self.reload_wanted() => return,
        }
        // Files are usually written in several steps.
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

    fn note(&self, outcome: Option<Result<Loaded, FileError>>) {
        let mut state = (**self.state.borrow()).clone();
        state.status.cycles += 1;
        let notify = match outcome {
            None => {
                if state.status.state == SourceState::Live {
                    state.status.last_ok = Some(Timestamp::now());
                }
                false
            }
            Some(Ok(loaded)) => self.note_contents(&mut state, loaded),
            Some(Err(error)) => self.note_failure(&mut state, error),
        };
        self.state.send_if_modified(|shared| {
            *shared = Arc::new(state);
            notify
        });
    }

    /// Applies the new content. Returns true if subscribers must be notified.
    fn note_contents(&self, state: &mut ProviderState, loaded: Loaded) -> bool {
        let Loaded {
            config,
            problems,
            section,
            origins,
        } = loaded;
        state.origins = origins;
        if *state.section != *section {
            state.section = section.into();
        }
        let recovered = state.status.state != SourceState::Live;
        let changed = state.serve(Arc::new(config));
        let name = &*self.options.name;
        tracing::info!(target: "discovery::file", name, changed, "the files were read again");
        let notify = changed || recovered || state.problems != problems;
        state.problems = problems;
        notify
    }

    /// Records an error. Returns true if subscribers must be notified.
    fn note_failure(&self, state: &mut ProviderState, error: FileError) -> bool {
        let message = with_cause(&error);
        tracing::warn!(
            target: "discovery::file",
            name = &*self.options.name,
            error = %message,
            "the files cannot be used; the last known good configuration continues to serve",
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

/// Reads the files on a thread that may block. Returns `None` if the runtime is shutting down.
async fn look(
    layers: &Arc<Layers>,
    options: &Arc<FileOptions>,
    present: &Arc<[PathBuf]>,
    before: Option<Seen>,
    reading: &mut Blocking,
) -> Option<Look> {
    let (files, settings, known) = (Arc::clone(layers), Arc::clone(options), before.clone());
    let present = Arc::clone(present);
    let work = move || look_now(&files, &settings, &present, known.as_ref());
    Some(match reading.run(READ_LIMIT, work).await? {
        Ok(look) => look,
        Err(broken) => {
            let error = FileError::Unreadable {
                path: layers
                    .files()
                    .into_iter()
                    .next()
                    .map(|(path, _)| path)
                    .unwrap_or_default(),
                source: io::Error::new(io::ErrorKind::TimedOut, format!("reading {broken}")),
            };
            failed(error, before.as_ref())
        }
    })
}

/// Reads the files. Blocks.
fn look_now(
    layers: &Layers,
    options: &FileOptions,
    present: &[PathBuf],
    before: Option<&Seen>,
) -> Look {
    let mut contents = match read(layers, present) {
        Ok(contents) => contents,
        Err(error) => return failed(error, before),
    };
    let seen = Seen::Contents(contents.fingerprint);
    let present = std::mem::take(&mut contents.present);
    let outcome = (before != Some(&seen)).then(|| contents.config(layers, options));
    Look {
        seen,
        present: Some(present),
        outcome,
    }
}

fn failed(error: FileError, before: Option<&Seen>) -> Look {
    let seen = Seen::Nothing(with_cause(&error));
    let outcome = (before != Some(&seen)).then_some(Err(error));
    Look {
        seen,
        present: None,
        outcome,
    }
}

fn with_cause(error: &FileError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
