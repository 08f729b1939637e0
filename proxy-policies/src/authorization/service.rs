//! A service that a policy asks, as operators see it: a line of the log when it begins to fail and when it works again,
//! and its error for the admin API.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderValue, StatusCode, Uri};
use parking_lot::Mutex;
use proxy_runtime::Cause;
use tokio::time::Instant;

use crate::head::Answer;

const TARGET: &str = "proxy::policies";
/// The least time between two lines about a failing service.
const PAUSE: Duration = Duration::from_secs(60);
/// The time for which a failure counts, since a route without requests asks its service nothing.
const RECENT: Duration = Duration::from_secs(60);
/// Maximum characters of an error, parts of which come from the service.
const MOST_OF_ERROR: usize = 240;

/// The kind of a service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServiceKind {
    Authorization,
    Keys,
    /// A Redis that counts for several gateways.
    #[cfg(feature = "redis")]
    Limits,
}

/// A service that a policy asks, with its latest failure.
pub(crate) struct Service {
    kind: ServiceKind,
    policy: Arc<str>,
    /// The URL without what may be secret.
    url: String,
    /// Read for each answer, so that a service that works costs no lock.
    is_failing: AtomicBool,
    outage: Mutex<Outage>,
}

#[derive(Default)]
struct Outage {
    /// The time of the first failure since the last answer.
    since: Option<Instant>,
    latest: Option<Instant>,
    failures: u64,
    error: String,
    logged: Option<Instant>,
    /// True if the log says that the service fails.
    is_announced: bool,
}

impl Service {
    pub(crate) fn new(kind: ServiceKind, policy: &Arc<str>, url: &Uri) -> Self {
        Self {
            kind,
            policy: Arc::clone(policy),
            url: shown(url),
            is_failing: AtomicBool::new(false),
            outage: Mutex::default(),
        }
    }

    /// Notes an answer by which the policy can decide.
    pub(crate) fn answered(&self) {
        if !self.is_failing.load(Ordering::Relaxed) {
            return;
        }
        let outage = {
            let mut outage = self.outage.lock();
            self.is_failing.store(false, Ordering::Relaxed);
            let logged = outage.logged;
            let ended = std::mem::take(&mut *outage);
            outage.logged = logged;
            ended
        };
        if let (Some(since), true) = (outage.since, outage.is_announced) {
            let (service, policy, url) = (self.kind.name(), &*self.policy, &*self.url);
            let (failed, lasted) = (outage.failures, since.elapsed());
            tracing::info!(target: TARGET, service, policy, url, failed, ?lasted, "the service of a policy answers again");
        }
    }

    /// Notes a failure: no answer, or none that the policy can decide by.
    pub(crate) fn failed(&self, error: &str) {
        let now = Instant::now();
        let failures = {
            let mut outage = self.outage.lock();
            self.is_failing.store(true, Ordering::Relaxed);
            outage.since.get_or_insert(now);
            outage.latest = Some(now);
            outage.failures += 1;
            outage.error = error.chars().take(MOST_OF_ERROR).collect();
            let is_early = |logged: Instant| now.saturating_duration_since(logged) < PAUSE;
            if outage.logged.is_some_and(is_early) {
                return;
            }
            outage.logged = Some(now);
            outage.is_announced = true;
            outage.failures
        };
        let (service, policy, url) = (self.kind.name(), &*self.policy, &*self.url);
        let effect = self.kind.effect();
        tracing::warn!(target: TARGET, service, policy, url, error, failed = failures, "the service of a policy fails: {effect}");
    }

    /// The URL, without what may be secret.
    #[cfg(feature = "redis")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The URL and the error, while the service fails.
    pub(crate) fn failing(&self) -> Option<String> {
        if !self.is_failing.load(Ordering::Relaxed) {
            return None;
        }
        let outage = self.outage.lock();
        let is_recent = outage
            .latest
            .is_some_and(|latest| latest.elapsed() < RECENT);
        let (service, url, error) = (self.kind.name(), &self.url, &outage.error);
        is_recent.then(|| format!("{service} {url}: {error}"))
    }
}

impl ServiceKind {
    fn name(self) -> &'static str {
        match self {
            Self::Authorization => "authorization service",
            Self::Keys => "keys of the token issuer",
            #[cfg(feature = "redis")]
            Self::Limits => "Redis",
        }
    }

    fn effect(self) -> &'static str {
        match self {
            Self::Authorization => "requests get 503",
            Self::Keys => {
                "keys that are known are used, and without any requests with tokens get 503"
            }
            #[cfg(feature = "redis")]
            Self::Limits => "each gateway grants its share of the limit",
        }
    }
}

/// The response while a service does not answer.
pub(super) fn unavailable(text: &'static str) -> Answer {
    let answer = Answer::new(StatusCode::SERVICE_UNAVAILABLE);
    let mut answer = answer.because(Cause::AuthorizationUnavailable).saying(text);
    answer.push("retry-after", HeaderValue::from_static("5"));
    answer
}

/// Returns an error with its causes.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause.filter(|_| text.len() < MOST_OF_ERROR) {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Returns a URL without user, password and query.
fn shown(url: &Uri) -> String {
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!(
        "{}://{host}{}",
        url.scheme_str().unwrap_or("http"),
        url.path()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        let url = "http://user:pass@auth.example:81/verify?token=secret".parse();
        Service::new(ServiceKind::Authorization, &"staff".into(), &url.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_for_a_minute_and_until_the_next_answer() {
        let service = service();
        service.answered();
        assert_eq!(service.failing(), None);
        service.failed("connection refused");
        let failing = "authorization service http://auth.example:81/verify: connection refused";
        assert_eq!(service.failing().as_deref(), Some(failing));
        tokio::time::advance(RECENT - Duration::from_millis(1)).await;
        assert!(service.failing().is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(service.failing(), None);
        service.failed("again");
        assert!(service.failing().is_some());
        service.answered();
        assert_eq!(service.failing(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_comes_and_goes_fills_no_log() {
        let service = service();
        for _ in 0..10 {
            service.failed("refused");
            service.answered();
        }
        // Only the first of the ten outages was announced, and so only its end.
        assert!(!service.outage.lock().is_announced);
        tokio::time::advance(PAUSE).await;
        service.failed("refused");
        assert!(service.outage.lock().is_announced);
    }
}
