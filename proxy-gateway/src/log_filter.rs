//! The filter of the log: that of the configuration or, for a while, one that the admin API was given.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use program_kit::{Failure, LogControl};
use proxy_runtime::admin::AdminLog;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The filter of the log of this process. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LogFilter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the end of a temporary filter has changed.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    log: LogControl,
    configured: Option<String>,
    /// The end of a filter that is not the configured one.
    until: Option<Instant>,
}

impl LogFilter {
    /// `configured`: the filter with which the log was started.
    pub(crate) fn new(log: LogControl, configured: Option<String>) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                log,
                configured,
                until: None,
            }),
            changed: Notify::new(),
        }))
    }

    /// Applies another filter of the configuration; while a temporary one applies, after that. An unusable filter is
    /// logged, and changes nothing.
    pub(crate) fn configure(&self, filter: Option<String>) {
        let mut state = self.0.state.lock();
        state.configured = filter;
        if state.until.is_none() {
            report(state.apply_configured(), &state.log.filter());
        }
    }

    /// Ends temporary filters at their time.
    pub(crate) async fn expire(self) -> Infallible {
        loop {
            let until = self.0.state.lock().until;
            match until {
                None => self.0.changed.notified().await,
                Some(until) => tokio::select! {
                    () = sleep_until(until) => self.expire_now(),
                    () = self.0.changed.notified() => {}
                },
            }
        }
    }

    fn expire_now(&self) {
        let mut state = self.0.state.lock();
        // Another one may have begun meanwhile.
        if state.until.is_some_and(|until| until <= Instant::now()) {
            state.until = None;
            report(state.apply_configured(), &state.log.filter());
        }
    }
}

impl State {
    fn apply_configured(&mut self) -> Result<(), Failure> {
        self.log.set_filter(self.configured.clone())
    }
}

fn report(applied: Result<(), Failure>, filter: &str) {
    match applied {
        Ok(()) => tracing::info!(target: "proxy::config", filter, "the log filter has changed"),
        Err(error) => {
            tracing::warn!(target: "proxy::config", "the log filter stays unchanged: {error}")
        }
    }
}

impl AdminLog for LogFilter {
    fn override_filter(&self, filter: Option<(&str, Duration)>) -> Result<(), String> {
        let mut state = self.0.state.lock();
        match filter {
            Some((filter, time)) => {
                let wanted = Some(filter.to_owned());
                let checked = state.log.check_filter(wanted.clone());
                checked.map_err(|error| error.to_string())?;
                // Before the change, since the new filter may hide this line.
                let seconds = time.as_secs();
                tracing::warn!(target: "proxy::config", filter, seconds, "the admin API changes the log filter for a while");
                let set = state.log.set_filter(wanted);
                set.map_err(|error| error.to_string())?;
                state.until = Some(Instant::now() + time);
            }
            None if state.until.take().is_some() => {
                report(state.apply_configured(), &state.log.filter());
            }
            None => {}
        }
        drop(state);
        self.0.changed.notify_one();
        Ok(())
    }

    fn filter(&self) -> (String, Option<Duration>) {
        let state = self.0.state.lock();
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        (state.log.filter(), state.until.map(left))
    }
}
