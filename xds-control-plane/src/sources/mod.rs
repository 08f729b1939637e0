//! The sources of services: the registry, Consul and a static file.
//!
//! A separate task follows each source and keeps the last result. An error does not change the result; it
//! is reported beside it.

mod consul;
mod document;
mod file;
mod fixed;
mod reading;
mod registry;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use discovery_consul::client::ConsulClient;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::consul::ConsulSourceOptions;
pub(crate) use self::document::period;
pub use self::fixed::parse_static;
pub use self::reading::{LeftOut, Reading};
pub use self::registry::{FileRegistry, ParsedRegistry, Registry, RegistryError, parse_registry};
#[cfg(feature = "http-registry")]
pub use self::registry::{HttpRegistry, HttpRegistryOptions, RegistryMode};
use crate::assemble::ServiceResources;
use crate::translate::{Catalog, Defaults, Known, RegistryService, StaticConfig};

/// The target of log lines.
const TARGET: &str = "xds::sources";

/// Services that are translated elsewhere. Unchanged services should keep the same `Arc`.
pub type Provided = watch::Receiver<Reading<Vec<Arc<ServiceResources>>>>;

/// The sources that a control plane has. Each is required: nothing is published before all of them were read once.
#[derive(Default)]
pub struct Sources {
    registry: Option<Box<dyn Registry>>,
    consul: Option<(ConsulClient, ConsulSourceOptions)>,
    fixed: Option<PathBuf>,
    provided: Vec<(Arc<str>, Provided)>,
}

impl Sources {
    /// Creates an empty list of sources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a registry.
    #[must_use]
    pub fn with_registry(mut self, registry: impl Registry + 'static) -> Self {
        self.registry = Some(Box::new(registry));
        self
    }

    /// Adds a Consul, for instances and settings.
    #[must_use]
    pub fn with_consul(mut self, client: ConsulClient, options: ConsulSourceOptions) -> Self {
        self.consul = Some((client, options));
        self
    }

    /// Adds a [static file](parse_static), which is read again when it changes.
    #[must_use]
    pub fn with_static_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.fixed = Some(path.into());
        self
    }

    /// Adds services that are translated elsewhere, such as [configuration for this project's
    /// proxies](crate::bridge::provide).
    #[must_use]
    pub fn with_provided(mut self, name: impl Into<Arc<str>>, provided: Provided) -> Self {
        self.provided.push((name.into(), provided));
        self
    }

    /// Starts to follow the sources. `served` are the services of the registry that are already served,
    /// from an earlier run. The tasks end when the returned value is dropped.
    pub(crate) fn start(self, served: BTreeSet<Arc<str>>) -> Followed {
        let mut tasks = JoinSet::new();
        let registry = self.registry.map(|registry| {
            let (sender, readings) = watch::channel(Reading::default());
            tasks.spawn(registry::follow(registry, served, sender));
            readings
        });
        let fixed = self.fixed.map(|path| {
            let (sender, readings) = watch::channel(Reading::default());
            tasks.spawn(fixed::follow(path, sender));
            readings
        });
        let (catalog, defaults) = match self.consul {
            Some((client, options)) => {
                let defaults = options.defaults_key.clone().map(|key| {
                    let (sender, readings) = watch::channel(Reading::default());
                    let follow = options.watch.follow.clone();
                    tasks.spawn(consul::follow_defaults(client.clone(), follow, key, sender));
                    readings
                });
                let (sender, readings) = watch::channel(Reading::default());
                tasks.spawn(consul::follow_catalog(client, options, sender));
                (Some(readings), defaults)
            }
            None => (None, None),
        };
        Followed {
            registry,
            catalog,
            defaults,
            fixed,
            provided: self.provided,
            built_in: Arc::default(),
            nothing: Arc::default(),
            unwritten: Arc::default(),
            _tasks: tasks,
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("registry", &self.registry.is_some())
            .field(
                "consul",
                &self.consul.as_ref().map(|(client, _)| client.address()),
            )
            .field("fixed", &self.fixed)
            .finish_non_exhaustive()
    }
}

type Readings<T> = Option<watch::Receiver<Reading<T>>>;

/// Sources that are being followed.
pub(crate) struct Followed {
    registry: Readings<Vec<Arc<RegistryService>>>,
    catalog: Readings<Catalog>,
    defaults: Readings<Defaults>,
    fixed: Readings<StaticConfig>,
    provided: Vec<(Arc<str>, Provided)>,
    /// The constant values that replace missing sources.
    built_in: Arc<Defaults>,
    nothing: Arc<Catalog>,
    unwritten: Arc<StaticConfig>,
    _tasks: JoinSet<()>,
}

/// The status of a source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceStatus {
    /// The source's name.
    pub name: Arc<str>,
    /// True if the source was read at least once.
    pub is_ready: bool,
    /// The reason why the source cannot be read at the moment.
    pub failure: Option<Arc<str>>,
    /// Problems of parts of the source's content.
    pub problems: Arc<[String]>,
    /// The services that are left out, or that stay in an earlier form.
    pub left_out: Arc<[LeftOut]>,
    /// The time of the last successful read.
    pub last_ok: Option<discovery_core::Timestamp>,
}

impl Followed {
    /// Waits until one of them changes.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time without losing anything.
    pub(crate) async fn changed(&mut self) {
        let provided = self.provided.iter_mut();
        let mut provided: FuturesUnordered<_> =
            provided.map(|(_, readings)| news(Some(readings))).collect();
        tokio::select! {
            () = news(self.registry.as_mut()) => {}
            () = news(self.catalog.as_mut()) => {}
            () = news(self.defaults.as_mut()) => {}
            () = news(self.fixed.as_mut()) => {}
            Some(()) = provided.next() => {}
        }
    }

    /// Returns the data of all sources. `None` if one of them was never read.
    pub(crate) fn known(&self) -> Option<(Known, Vec<Arc<ServiceResources>>)> {
        let registry = value_or(&self.registry, &Arc::default())?;
        let known = Known {
            registry: (*registry).clone(),
            catalog: value_or(&self.catalog, &self.nothing)?,
            defaults: value_or(&self.defaults, &self.built_in)?,
            fixed: value_or(&self.fixed, &self.unwritten)?,
        };
        let mut provided = Vec::new();
        for (_, receiver) in &self.provided {
            provided.extend_from_slice(receiver.borrow().value.as_deref()?);
        }
        Some((known, provided))
    }

    /// Returns true if a source that was never read has failed, so that the time of its first result is
    /// unknown.
    pub(crate) fn has_failed(&self) -> bool {
        let provided = self.provided.iter();
        let mut provided = provided.map(|(_, readings)| is_away(&readings.borrow()));
        of_away(&self.registry)
            || of_away(&self.catalog)
            || of_away(&self.defaults)
            || of_away(&self.fixed)
            || provided.any(|is_away| is_away)
    }

    /// Returns the status of the sources.
    pub(crate) fn status(&self) -> Vec<SourceStatus> {
        let read = [
            status("registry", &self.registry),
            status("consul", &self.catalog),
            status("consul settings", &self.defaults),
            status("static file", &self.fixed),
        ];
        let provided = self
            .provided
            .iter()
            .map(|(name, readings)| of(name, &readings.borrow()));
        read.into_iter().flatten().chain(provided).collect()
    }
}

/// Waits for a change, or forever if there is no sender.
async fn news<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

fn value_or<T>(readings: &Readings<T>, absent: &Arc<T>) -> Option<Arc<T>> {
    match readings {
        Some(readings) => readings.borrow().value.clone(),
        None => Some(Arc::clone(absent)),
    }
}

fn of_away<T>(readings: &Readings<T>) -> bool {
    readings
        .as_ref()
        .is_some_and(|readings| is_away(&readings.borrow()))
}

fn is_away<T>(reading: &Reading<T>) -> bool {
    reading.value.is_none() && reading.has_failed
}

fn status<T>(name: &str, readings: &Readings<T>) -> Option<SourceStatus> {
    Some(of(name, &readings.as_ref()?.borrow()))
}

fn of<T>(name: &str, reading: &Reading<T>) -> SourceStatus {
    SourceStatus {
        name: name.into(),
        is_ready: reading.value.is_some(),
        failure: reading.failure.clone(),
        problems: Arc::clone(&reading.problems),
        left_out: Arc::clone(&reading.left_out),
        last_ok: reading.last_ok,
    }
}
