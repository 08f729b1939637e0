//! Services and nodes of a Kubernetes cluster, from its API server: listed once and then watched (feature
//! `kube`).
//!
//! Only a part of the API is used: `GET` of lists with pages, `watch` with bookmarks, and patches of a
//! service's status and finalizers. Kubernetes' finalizer is removed from a service when no resources are
//! left; it is added only on request ([`StatusWriter::with_finalizers`]). A [`Lease`] lets one of several
//! programs write while the others stand by.

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
