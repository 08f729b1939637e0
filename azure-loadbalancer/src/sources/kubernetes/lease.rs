//! A lease of Kubernetes (`coordination.k8s.io/v1`), which lets one of several programs write while the
//! others stand by.
//!
//! The rules are those of client-go's `leaderelection`. Clocks of different machines are never compared:
//! another program's lease has expired when this program has seen it unchanged for the lease's duration.

use std::error::Error;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tower_service::Service;

use super::client::{KubernetesClient, KubernetesError};
use crate::sources::readiness::text_of_seconds;

/// The time limit for the release of a lease.
const RELEASE: Duration = Duration::from_secs(2);
/// The maximum duration of another program's lease, in seconds. Longer ones are shortened to it.
const LONGEST: u64 = 24 * 3_600;

/// The options of a lease.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaseOptions {
    /// The namespace of the lease. Default: `default`.
    pub namespace: String,
    /// The name. Default: `azure-loadbalancer`.
    pub name: String,
    /// The unique name of this program. Default: 32 random digits.
    pub identity: String,
    /// The time that other programs wait after the last renewal they have seen, in whole seconds. Default: 15
    /// s.
    pub duration: Duration,
    /// The time after the last renewal at which the holder stops by itself; shorter than the duration.
    /// Default: 10 s.
    pub renew_deadline: Duration,
    /// The wait between two renewals or attempts. Default: 2 s.
    pub retry: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            name: "azure-loadbalancer".to_owned(),
            identity: format!("{:032x}", fastrand::u128(..)),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl LeaseOptions {
    /// Sets another duration of at least 3 s. The renewal deadline becomes two thirds of it, and the wait
    /// between two renewals two fifteenths.
    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.duration = Duration::from_secs(duration.as_secs().max(3));
        self.renew_deadline = self.duration * 2 / 3;
        self.retry = self.duration * 2 / 15;
        self
    }
}

/// The reason why a lease is no longer held.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseLost {
    /// The lease could not be renewed within [`LeaseOptions::renew_deadline`].
    NotRenewed {
        /// The last failure.
        why: String,
    },
    /// Another program holds the lease.
    Taken {
        /// The name of that program.
        holder: String,
    },
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRenewed { why } => write!(f, "the lease could not be renewed in time: {why}"),
            Self::Taken { holder } => write!(f, "{holder} has taken the lease"),
        }
    }
}

/// The result of an attempt.
enum Attempt {
    Ours,
    Theirs {
        holder: String,
    },
    /// Another program has written at the same time.
    Raced,
}

/// A lease as last seen.
struct Observed {
    document: Value,
    /// The time at which its last change was seen.
    at: Instant,
}

impl Observed {
    fn holder(&self) -> &str {
        let holder = &self.document["spec"]["holderIdentity"];
        holder.as_str().unwrap_or_default()
    }

    fn is_valid(&self, own: Duration) -> bool {
        let seconds = self.document["spec"]["leaseDurationSeconds"].as_u64();
        let duration = seconds.map_or(own, |seconds| Duration::from_secs(seconds.min(LONGEST)));
        self.at + duration > Instant::now()
    }
}

/// A lease that this program holds or waits for. If it is dropped, the others wait until it has expired; see
/// [`Self::release`].
pub struct Lease<S> {
    client: KubernetesClient<S>,
    options: LeaseOptions,
    observed: Option<Observed>,
    /// The beginning of the last successful renewal.
    renewed: Option<Instant>,
}

impl<S> Lease<S> {
    /// Creates a lease that is not held yet.
    pub fn new(client: KubernetesClient<S>, options: LeaseOptions) -> Self {
        Self {
            client,
            options,
            observed: None,
            renewed: None,
        }
    }

    /// Returns the last known holder. Empty: none.
    pub fn holder(&self) -> &str {
        self.observed.as_ref().map_or("", Observed::holder)
    }

    /// The name of this program.
    pub fn identity(&self) -> &str {
        &self.options.identity
    }

    fn is_ours(&self) -> bool {
        self.holder() == self.options.identity
    }
}

impl<S> fmt::Debug for Lease<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("options", &self.options)
            .field("holder", &self.holder())
            .finish_non_exhaustive()
    }
}

impl<S, B> Lease<S>
where
    S: Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Waits until this program holds the lease. `standing_by` is called with the holder, each time that
    /// another program takes it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. A lease that is just being taken is then held without renewal, and expires
    /// after its duration.
    pub async fn acquire(&mut self, mut standing_by: impl FnMut(&str) + Send) {
        let mut told_holder = None;
        let mut told_error = None;
        self.renewed = None;
        loop {
            let began = Instant::now();
            match self.attempt().await {
                Ok(Attempt::Ours) => {
                    self.renewed = Some(began);
                    return;
                }
                Ok(Attempt::Theirs { holder }) => {
                    if told_holder.as_ref() != Some(&holder) {
                        standing_by(&holder);
                        told_holder = Some(holder);
                    }
                    told_error = None;
                }
                Ok(Attempt::Raced) => {}
                Err(error) => {
                    // Logged once for each kind of failure, since attempts are frequent.
                    let text = error.to_string();
                    if told_error.as_ref() != Some(&text) {
                        tracing::warn!(error = text, "the lease cannot be acquired; retrying");
                        told_error = Some(text);
                    }
                }
            }
            // The jitter separates programs that began together.
            sleep(self.options.retry.mul_f64(1.0 + fastrand::f64())).await;
        }
    }

    /// Renews the lease that [`acquire`](Self::acquire) took, and returns when it is lost. The program must
    /// then stop writing at once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. Call it again soon, or [`release`](Self::release).
    pub async fn keep(&mut self) -> LeaseLost {
        let mut why = "no renewal was tried".to_owned();
        loop {
            let renewed = self.renewed.unwrap_or_else(Instant::now);
            self.renewed = Some(renewed);
            let deadline = renewed + self.options.renew_deadline;
            sleep_until(deadline.min(Instant::now() + self.options.retry)).await;
            let began = Instant::now();
            // A delayed program comes here late, and another one may lead since. On Linux this clock does not
            // count the time that a machine sleeps: then the first renewal finds that another one has taken
            // the lease.
            if began >= deadline {
                return LeaseLost::NotRenewed { why };
            }
            match timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Attempt::Ours)) => {
                    self.renewed = Some(began);
                    continue;
                }
                Ok(Ok(Attempt::Theirs { holder })) => return LeaseLost::Taken { holder },
                Ok(Ok(Attempt::Raced)) => "another client has written it".clone_into(&mut why),
                Ok(Err(error)) => {
                    let text = error.to_string();
                    if text != why {
                        tracing::warn!(
                            error = text,
                            "the lease cannot be renewed; it is tried again"
                        );
                        why = text;
                    }
                }
                Err(_) => "there is no answer".clone_into(&mut why),
            }
        }
    }

    /// Releases the lease, if it is held, so that another program need not wait for its expiry. Call it after
    /// the last write.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time: the lease then expires after its duration.
    pub async fn release(&mut self) {
        self.renewed = None;
        if !self.is_ours() {
            return;
        }
        match timeout(RELEASE, self.give_up()).await {
            Ok(Ok(())) => self.observed = None,
            Ok(Err(error)) => tracing::warn!(%error, "the lease is not released"),
            Err(_) => tracing::warn!("the lease is not released: there is no answer"),
        }
    }

    async fn give_up(&mut self) -> Result<(), KubernetesError> {
        let mut document = match &self.observed {
            Some(observed) => observed.document.clone(),
            None => return Ok(()),
        };
        loop {
            let now = now();
            let spec = &mut document["spec"];
            spec["holderIdentity"] = json!("");
            spec["leaseDurationSeconds"] = json!(1);
            spec["renewTime"] = json!(now);
            spec["acquireTime"] = json!(now);
            match self.write(&Method::PUT, &document).await {
                Err(error) if is_overtaken(&error) => {}
                done => return done.map(drop),
            }
            // Perhaps by a renewal of this program that was cancelled in flight.
            document = self.client.document(self.url(true)).await?;
            if document["spec"]["holderIdentity"] != self.options.identity.as_str() {
                return Ok(());
            }
        }
    }

    /// Takes or renews the lease, if possible.
    async fn attempt(&mut self) -> Result<Attempt, KubernetesError> {
        // No single attempt may use up the time of all others.
        let patience = self.options.renew_deadline / 2;
        match timeout(patience, self.attempt_once()).await {
            Ok(attempt) => attempt,
            Err(_) => Err(KubernetesError::TimedOut {
                call: format!("lease {}", self.options.name),
            }),
        }
    }

    async fn attempt_once(&mut self) -> Result<Attempt, KubernetesError> {
        let own = self.options.duration;
        // The holder need not read it first: a write by another program shows in the version.
        if let Some(observed) = &self.observed
            && self.is_ours()
            && observed.is_valid(own)
        {
            let next = self.next(Some(&observed.document));
            match self.write(&Method::PUT, &next).await {
                Ok(document) => return Ok(self.took(document)),
                Err(error) if is_overtaken(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let found = match self.client.document(self.url(true)).await {
            Ok(found) => found,
            Err(KubernetesError::Rejected {
                status: StatusCode::NOT_FOUND,
                ..
            }) => return self.try_write(&Method::POST, None).await,
            Err(error) => return Err(error),
        };
        let is_same = self
            .observed
            .as_ref()
            .is_some_and(|observed| observed.document["spec"] == found["spec"]);
        match (&mut self.observed, is_same) {
            // Others may write labels. Only the fields that holders write prove that one is alive.
            (Some(observed), true) => observed.document = found,
            (observed, _) => {
                let at = Instant::now();
                *observed = Some(Observed {
                    document: found,
                    at,
                });
            }
        }
        let Some(observed) = &self.observed else {
            return Ok(Attempt::Raced);
        };
        let holder = observed.holder();
        if !holder.is_empty() && !self.is_ours() && observed.is_valid(own) {
            let holder = holder
                .chars()
                .filter(|c| !c.is_control())
                .take(200)
                .collect();
            return Ok(Attempt::Theirs { holder });
        }
        let before = observed.document.clone();
        self.try_write(&Method::PUT, Some(&before)).await
    }

    async fn try_write(
        &mut self,
        method: &Method,
        before: Option<&Value>,
    ) -> Result<Attempt, KubernetesError> {
        let next = self.next(before);
        match self.write(method, &next).await {
            Ok(document) => Ok(self.took(document)),
            Err(error) if is_overtaken(&error) => Ok(Attempt::Raced),
            Err(error) => Err(error),
        }
    }

    fn took(&mut self, document: Value) -> Attempt {
        let at = Instant::now();
        self.observed = Some(Observed { document, at });
        Attempt::Ours
    }

    /// Returns the lease as held by this program, based on the document before.
    fn next(&self, before: Option<&Value>) -> Value {
        let options = &self.options;
        let now = now();
        let mut document = before.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "namespace": options.namespace, "name": options.name },
            })
        });
        let spec = &mut document["spec"];
        if spec["holderIdentity"] != options.identity.as_str() {
            let transitions = spec["leaseTransitions"].as_u64();
            spec["leaseTransitions"] = json!(match before {
                Some(_) => transitions.unwrap_or_default().saturating_add(1),
                None => 0,
            });
            spec["acquireTime"] = json!(now);
        }
        spec["holderIdentity"] = json!(options.identity);
        spec["leaseDurationSeconds"] = json!(options.duration.as_secs());
        spec["renewTime"] = json!(now);
        document
    }

    fn url(&self, is_named: bool) -> url::Url {
        let LeaseOptions {
            namespace, name, ..
        } = &self.options;
        let path = [
            "apis",
            "coordination.k8s.io",
            "v1",
            "namespaces",
            namespace,
            "leases",
        ];
        let name = is_named.then_some(name.as_str());
        let path: Vec<&str> = path.into_iter().chain(name).collect();
        self.client.url(&path, &[])
    }

    async fn write(&self, method: &Method, document: &Value) -> Result<Value, KubernetesError> {
        let url = self.url(*method == Method::PUT);
        self.client.write(method.clone(), url, document).await
    }
}

/// Returns true if another program has written or deleted the lease meanwhile.
fn is_overtaken(error: &KubernetesError) -> bool {
    let statuses = [StatusCode::CONFLICT, StatusCode::NOT_FOUND];
    matches!(error, KubernetesError::Rejected { status, .. } if statuses.contains(status))
}

/// Returns the time in Kubernetes' form with microseconds.
fn now() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = text_of_seconds(now.as_secs());
    let seconds = seconds.trim_end_matches('Z');
    format!("{seconds}.{:06}Z", now.subsec_micros())
}
