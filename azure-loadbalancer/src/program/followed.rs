//! The followed services and nodes of a running program.

use async_trait::async_trait;
use azure_loadbalancer::execute::Observer;
use azure_loadbalancer::sources::{Source, SourceError};
use azure_loadbalancer::{Node, Service};
use program_kit::Failure;

use super::cli::Apply;
use super::inputs;

/// The followed services and nodes, and the writer of statuses if there is an API server.
pub(super) struct Followed {
    pub(super) services: Replayed<Service>,
    pub(super) nodes: Replayed<Node>,
    pub(super) statuses: Option<Box<dyn Observer>>,
}

impl Followed {
    /// Opens the sources that the command line names. They are not read before they are followed.
    pub(super) fn open(options: &Apply) -> Result<Self, Failure> {
        if let Some(client) = inputs::kubernetes(&options.inputs)? {
            let mut statuses = client.status_writer().with_events();
            if options.finalizer {
                statuses = statuses.with_finalizers();
            }
            return Ok(Self {
                services: Replayed::of(Box::new(client.services())),
                nodes: Replayed::of(Box::new(client.nodes())),
                statuses: Some(Box::new(statuses)),
            });
        }
        let (services, nodes) = inputs::files(&options.inputs, &options.members)?;
        Ok(Self {
            services: Replayed::of(services),
            nodes: Replayed::of(nodes),
            statuses: None,
        })
    }

    /// Opens the sources again, for the next call of `follow`. A source that cannot be opened now stays as it
    /// was: a mistake does not end a running program.
    pub(super) fn renew(&mut self, options: &Apply) {
        match Self::open(options) {
            Ok(opened) => *self = opened,
            Err(failure) => {
                tracing::error!(%failure, "the sources of services and nodes cannot be opened again; the last ones stay in force");
                self.services.is_due = true;
                self.nodes.is_due = true;
            }
        }
    }
}

/// A source that repeats its last state for its next consumer.
pub(super) struct Replayed<T> {
    source: Box<dyn Source<T>>,
    last: Option<Vec<T>>,
    is_due: bool,
}

impl<T> Replayed<T> {
    fn of(source: Box<dyn Source<T>>) -> Self {
        Self {
            source,
            last: None,
            is_due: false,
        }
    }
}

#[async_trait]
impl<T: Clone + Send + Sync> Source<T> for Replayed<T> {
    async fn next(&mut self) -> Result<Vec<T>, SourceError> {
        if std::mem::take(&mut self.is_due)
            && let Some(last) = &self.last
        {
            return Ok(last.clone());
        }
        let state = self.source.next().await?;
        self.last = Some(state.clone());
        Ok(state)
    }
}
