use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_core::text::shortened;
use discovery_core::{DiscoverError, Discoverer, Discovery, Runner, RunnerOptions};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::XdsOptions;
use super::connect::{ClientError, Dial};
use super::session::{Session, wait_for};
use super::view::View;

/// The interval at which a result is made without a change, which shows that the control plane is
/// available. Making one needs no call.
const INTERVAL: Duration = Duration::from_secs(15);
/// The longest wait after an error. The session notifies of changes.
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// The time limit for a first result, after which the failure is reported.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
/// Maximum length of a reason in characters. The problems have the full text.
const LONGEST_REASON: usize = 500;

/// Takes configuration from a control plane over xDS.
///
/// Route configurations become routes, clusters with their endpoints become clusters; each is a service that can be
/// quarantined on its own. While the control plane is unavailable the result is an error, so that a [`Runner`]
/// keeps serving the last accepted resources and shows their age.
///
/// Clones share everything. The session begins with the first call of [`discover`](Discoverer::discover),
/// and ends with the last clone.
///
/// ```no_run
/// use discovery_xds::{XdsDiscoverer, XdsOptions};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = XdsOptions::default().with_servers(vec!["http://xds.example:1701".into()]);
/// let provider = XdsDiscoverer::new(options)?.runner().start();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct XdsDiscoverer {
    options: Arc<XdsOptions>,
    dial: Dial,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    started: Mutex<Option<Started>>,
    /// The resources that were accepted before a restart.
    memo: Mutex<Option<Box<str>>>,
    /// The state that [`Discoverer::changed`] has seen.
    seen: tokio::sync::Mutex<Option<watch::Receiver<View>>>,
}

#[derive(Debug)]
struct Started {
    views: watch::Receiver<View>,
    task: AbortHandle,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl XdsDiscoverer {
    /// Creates a discoverer for the control planes of `options`. No connection is made yet.
    ///
    /// # Errors
    ///
    /// Returns an error if an address or a certificate cannot be used.
    pub fn new(options: XdsOptions) -> Result<Self, ClientError> {
        Ok(Self {
            dial: Dial::new(&options)?,
            options: Arc::new(options),
            shared: Arc::default(),
        })
    }

    /// Creates a runner for it, which makes it a `ConfigProvider`. Filters and validators may still be
    /// added.
    pub fn runner(&self) -> Runner {
        Runner::new(self.clone())
            .options(self.runner_options())
            .required(!self.options.allow_start_before_discovery)
    }

    /// The options of [`runner`](Self::runner), for changing some of them.
    #[must_use]
    pub fn runner_options(&self) -> RunnerOptions {
        let mut runner = RunnerOptions::default()
            .with_interval(INTERVAL)
            .with_debounce(Duration::from_millis(5))
            .with_min_gap(Duration::from_millis(20))
            .with_discover_timeout(FIRST_ANSWER + self.options.fetch_timeout)
            .with_backoff_max(BACKOFF_MAX);
        runner.persist.clone_from(&self.options.persist);
        runner
    }

    /// Creates a discoverer that connects in another way.
    #[cfg(test)]
    pub(super) fn with_dial(options: XdsOptions, dial: Dial) -> Self {
        Self {
            dial,
            options: Arc::new(options),
            shared: Arc::default(),
        }
    }

    /// Returns the view of the session, after starting it if necessary.
    fn views(&self) -> watch::Receiver<View> {
        let mut started = self.shared.started.lock();
        let started = started.get_or_insert_with(|| {
            let (sender, views) = watch::channel(View::default());
            let memo = self.shared.memo.lock().take();
            let options = Arc::clone(&self.options);
            let session = Session::new(options, self.dial.clone(), sender, memo.as_deref());
            let task = tokio::spawn(session.run()).abort_handle();
            Started { views, task }
        });
        started.views.clone()
    }
}

#[async_trait]
impl Discoverer for XdsDiscoverer {
    fn name(&self) -> &str {
        &self.options.name
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        let mut views = self.views();
        let is_decided = |view: &View| {
            view.error.is_some()
                || view.rejected.is_some()
                || (view.is_live && view.discovery.is_some())
        };
        let Some(view) = wait_for(&mut views, FIRST_ANSWER, is_decided).await else {
            return Err(DiscoverError::transient(
                "the control plane has not sent a configuration yet",
            ));
        };
        match (view.discovery, view.is_live, view.error) {
            (Some(discovery), true, _) => Ok((*discovery).clone()),
            (None, _, None) => {
                let rejected = view.rejected.as_deref().cloned().unwrap_or_default();
                let message = format!(
                    "no resource of the control plane can be served: {}",
                    shortened(&rejected.to_string().replace('\n', "; "), LONGEST_REASON)
                );
                Err(DiscoverError::transient(message).with_problems(rejected))
            }
            (_, _, Some(lost)) if lost.is_rejected => Err(DiscoverError::rejected(lost.message)),
            (_, _, lost) => Err(DiscoverError::transient(format!(
                "the control plane is lost: {}",
                lost.map_or_else(|| "it is not connected".to_owned(), |lost| lost.message)
            ))),
        }
    }

    fn restored(&self, memo: &str) {
        *self.shared.memo.lock() = Some(memo.into());
    }

    // `unreachable` is ignored: the control plane pushes what changes.
    async fn changed(&self) {
        let mut seen = self.shared.seen.lock().await;
        if seen.is_none() {
            // For a session that has not begun, everything counts as a change.
            *seen = Some(self.views());
            return;
        }
        if let Some(views) = seen.as_mut()
            && views.changed().await.is_err()
        {
            // The session has ended; the interval remains.
            std::future::pending::<()>().await;
        }
    }
}
