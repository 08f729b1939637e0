//! The watch of a list: listed once, then watched, and listed again when the API server no longer knows the
//! version.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use discovery_core::Backoff;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};
use tower_service::Service;
use url::Url;

use super::client::{KubernetesClient, KubernetesError};
use super::event::{apply, key, object};
use super::lines::Lines;
use crate::sources::{FromDocument, RECHECK, Source, SourceError};

/// The number of objects of a page.
const PAGE: &str = "500";
/// The maximum number of pages, more than any cluster has.
const MAX_PAGES: usize = 1_000;
/// The minimum duration of a watch. One that ends sooner without an event counts as failed.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// The maximum wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The options of a watch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The duration of one watch. The next continues where it ended. Default: 290 s.
    pub watch: Duration,
    /// The time after which everything is listed again in any case. Default: 1 h.
    pub resync: Duration,
    /// The wait after a failure, which doubles with each up to 30 s. Default: 1 s.
    pub first_wait: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            watch: Duration::from_secs(290),
            resync: Duration::from_secs(3_600),
            first_wait: Duration::from_secs(1),
        }
    }
}

/// A source of the objects of one kind.
pub struct KubernetesSource<T, S, B> {
    client: KubernetesClient<S>,
    path: Vec<String>,
    options: WatchOptions,
    documents: BTreeMap<String, Value>,
    /// The version to watch from. `None` before the first list, and after the server has forgotten it.
    version: Option<String>,
    listed: Option<Instant>,
    /// The list that is being read.
    listing: Option<Listing>,
    stream: Option<Stream<B>>,
    failures: u32,
    retry_at: Option<Instant>,
    /// The time at which objects that depend on the time are read again.
    recheck: Option<Instant>,
    kind: PhantomData<fn() -> T>,
}

/// An open watch.
struct Stream<B> {
    call: String,
    body: B,
    lines: Lines,
    opened: Instant,
    has_spoken: bool,
    /// The time at which the watch should have ended by itself.
    ends: Instant,
}

/// An incomplete list. It survives a dropped call.
#[derive(Default)]
struct Listing {
    documents: BTreeMap<String, Value>,
    next: String,
    pages: usize,
}

/// The result of a step.
enum Turn {
    /// The state has changed, or is due to be read again.
    Changed,
    /// The state is unchanged, as far as known.
    Same,
}

impl<T, S, B> KubernetesSource<T, S, B>
where
    T: FromDocument,
    S: Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub(super) fn new(client: KubernetesClient<S>, path: &[&str], options: WatchOptions) -> Self {
        Self {
            client,
            path: path.iter().map(|segment| (*segment).to_owned()).collect(),
            options,
            documents: BTreeMap::new(),
            version: None,
            listed: None,
            listing: None,
            stream: None,
            failures: 0,
            retry_at: None,
            recheck: None,
            kind: PhantomData,
        }
    }

    /// Sets the options of the watch.
    #[must_use]
    pub fn options(mut self, options: WatchOptions) -> Self {
        self.options = options;
        self
    }

    fn url(&self, query: &[(&str, &str)]) -> Url {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        self.client.url(&path, query)
    }

    /// Lists all objects. The state changes only when all pages are read.
    async fn list(&mut self) -> Result<Turn, KubernetesError> {
        loop {
            let mut listing = self.listing.take().unwrap_or_default();
            let url = match listing.next.as_str() {
                "" => self.url(&[("limit", PAGE)]),
                token => self.url(&[("limit", PAGE), ("continue", token)]),
            };
            self.listing = Some(listing);
            let mut page = self.client.document(url).await?;
            listing = self.listing.take().unwrap_or_default();
            let malformed = |why: &str| KubernetesError::Malformed {
                call: "list".to_owned(),
                why: why.to_owned(),
            };
            let Some(items) = page.get_mut("items").map(Value::take) else {
                return Err(malformed("the list has no items"));
            };
            // Go writes an empty list as `null`.
            for item in items.as_array().into_iter().flatten() {
                let key = key(item).ok_or_else(|| malformed("an object has no name"))?;
                // An object that cannot be read is no reason to remove its resources: the last state stays in
                // force.
                object::<T>(item).map_err(|error| malformed(&format!("{key}: {error}")))?;
                listing.documents.insert(key, item.clone());
            }
            page["metadata"]["continue"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut listing.next);
            listing.pages += 1;
            if listing.next.is_empty() {
                let version = page["metadata"]["resourceVersion"]
                    .as_str()
                    .unwrap_or_default();
                self.version = Some(version.to_owned());
                self.listed = Some(Instant::now());
                let is_same = self.documents == listing.documents && self.listed_before();
                self.documents = listing.documents;
                return Ok(if is_same { Turn::Same } else { Turn::Changed });
            }
            if listing.pages >= MAX_PAGES {
                return Err(malformed(&format!(
                    "the list has more than {MAX_PAGES} pages"
                )));
            }
            self.listing = Some(listing);
        }
    }

    /// Returns true after the first list, which is a change even if it is empty.
    fn listed_before(&self) -> bool {
        self.recheck.is_some()
    }

    async fn open(&mut self, version: &str) -> Result<(), KubernetesError> {
        let seconds = self.options.watch.as_secs().max(1).to_string();
        let url = self.url(&[
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", &seconds),
        ]);
        let (call, body) = self.client.get(url).await?;
        // A hung connection stays silent. Half the time more is patience enough.
        let ends = Instant::now() + self.options.watch.mul_f64(1.5);
        self.stream = Some(Stream {
            call,
            body,
            lines: Lines::default(),
            opened: Instant::now(),
            has_spoken: false,
            ends,
        });
        Ok(())
    }

    /// Reads from the watch until an object has changed or the watch ends.
    async fn read(&mut self) -> Result<Turn, KubernetesError> {
        let mut has_changed = false;
        loop {
            let Some(stream) = &mut self.stream else {
                return Ok(if has_changed {
                    Turn::Changed
                } else {
                    Turn::Same
                });
            };
            while let Some(line) = stream.lines.next() {
                let event = line.map_err(|why| KubernetesError::Malformed {
                    call: stream.call.clone(),
                    why,
                })?;
                has_changed |=
                    apply::<T>(&mut self.documents, &mut self.version, &stream.call, event)?;
                stream.has_spoken = true;
                self.failures = 0;
            }
            if has_changed {
                return Ok(Turn::Changed);
            }
            match timeout_at(stream.ends, stream.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(bytes) = frame.data_ref() {
                        stream.lines.push(bytes);
                    }
                }
                Ok(Some(Err(error))) => {
                    let call = stream.call.clone();
                    return Err(KubernetesError::Unreachable {
                        call,
                        source: error.into(),
                    });
                }
                // The watch ends by itself after a while, and the next one continues from there.
                Ok(None) | Err(_) => {
                    if stream.has_spoken || stream.opened.elapsed() >= SHORTEST_WATCH {
                        self.failures = 0;
                    } else {
                        // A server that ends watches at once would otherwise be polled as fast as the network
                        // allows.
                        self.pause();
                    }
                    self.stream = None;
                }
            }
        }
    }

    async fn turn(&mut self) -> Result<Turn, KubernetesError> {
        if self.stream.is_some() {
            return self.read().await;
        }
        let is_stale = self
            .listed
            .is_none_or(|listed| listed.elapsed() >= self.options.resync);
        match self.version.clone() {
            Some(version) if !is_stale => self.open(&version).await.map(|()| Turn::Same),
            _ => self.list().await,
        }
    }

    /// Returns the present state.
    fn state(&mut self) -> Result<Vec<T>, SourceError> {
        let read = self.documents.iter().map(|(key, document)| {
            let failed =
                |error| SourceError::new(format!("{key} cannot be read")).with_source(error);
            object::<T>(document).map_err(failed)
        });
        let state = read.collect::<Result<Vec<T>, _>>()?;
        let depends_on_time = !state.iter().all(T::is_settled);
        // A time far away stands for never, and records that there was a first list.
        let wait = if depends_on_time {
            RECHECK
        } else {
            Duration::from_secs(365 * 24 * 3_600)
        };
        self.recheck = Some(Instant::now() + wait);
        Ok(state)
    }

    /// Decides on the next step after a failure, and its time.
    fn recover(&mut self, error: &KubernetesError) -> bool {
        self.stream = None;
        self.listing = None;
        if error.is_gone() {
            // The version is too old, which is no failure unless it happens repeatedly.
            self.version = None;
            if self.failures == 0 {
                self.failures = 1;
                return false;
            }
        }
        self.pause();
        true
    }

    fn pause(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let backoff = Backoff::new(self.options.first_wait, LONGEST_WAIT);
        let wait = backoff.wait(self.failures, fastrand::f64());
        self.retry_at = Some(Instant::now() + wait);
    }
}

#[async_trait]
impl<T, S, B> Source<T> for KubernetesSource<T, S, B>
where
    T: FromDocument,
    S: Service<Request<Bytes>, Response = Response<B>> + Clone + Send + Sync,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn next(&mut self) -> Result<Vec<T>, SourceError> {
        loop {
            if let Some(at) = self.retry_at {
                let first = self.recheck.map_or(at, |recheck| recheck.min(at));
                sleep_until(first).await;
                if first < at {
                    return self.state();
                }
                self.retry_at = None;
            }
            let turned = match self.recheck {
                // The bytes read from the stream are kept when the time comes first. A list is not cut off,
                // since it may take longer.
                Some(at) if self.stream.is_some() => timeout_at(at, self.turn())
                    .await
                    .unwrap_or(Ok(Turn::Changed)),
                _ => self.turn().await,
            };
            match turned {
                Ok(Turn::Changed) => return self.state(),
                Ok(Turn::Same) => {}
                Err(error) => {
                    if self.recover(&error) {
                        return Err(SourceError::new("the API server cannot be followed")
                            .with_source(error));
                    }
                }
            }
        }
    }
}

impl<T, S, B> fmt::Debug for KubernetesSource<T, S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesSource")
            .field("path", &self.path)
            .field("objects", &self.documents.len())
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
