//! Services and nodes of a Kubernetes cluster, by its API server: listed once and watched from there (feature `kube`).
//!
//! Only what is needed of the API is spoken: `GET` of the lists with pages, `watch` with bookmarks, and patches of a service's
//! status and finalizers. Kubernetes' finalizer is taken off a service when nothing is left of it; it is put on services only where
//! that is asked for ([`StatusWriter::with_finalizers`]). A [`Lease`] lets one of several programs write while the others stand by.

mod client;
mod event;
mod events;
mod lease;
mod lines;
mod status;
mod watch;

pub use self::client::{KubernetesClient, KubernetesError};
pub use self::lease::{Lease, LeaseLost, LeaseOptions};
pub use self::status::StatusWriter;
pub use self::watch::{KubernetesSource, WatchOptions};
