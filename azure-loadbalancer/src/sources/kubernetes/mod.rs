//! Services and nodes of a Kubernetes cluster, by its API server: listed once and watched from there (feature `kube`).
//!
//! Only what is needed of the API is spoken: `GET` of the lists with pages, `watch` with bookmarks, and the patch of a service's
//! status. No finalizer is put on services: whoever plans for all services at once removes what is left of a service that is gone,
//! also after a restart.

mod client;
mod event;
mod lines;
mod status;
mod watch;

pub use self::client::{KubernetesClient, KubernetesError};
pub use self::status::StatusWriter;
pub use self::watch::{KubernetesSource, WatchOptions};
