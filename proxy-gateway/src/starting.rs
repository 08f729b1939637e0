//! The time before every source has given a configuration: known routes are served, and all other requests
//! get 503 with `Retry-After`, since a route for them may still come.

use std::sync::Arc;

use discovery_core::{Merged, MergedState};
use proxy_model::config::{ClusterConfig, RouteConfig, TransformConfig};
use proxy_model::{CompileOptions, Snapshot};
use tokio::sync::watch;

/// The id of the route and the cluster that stand for unknown configuration.
pub(crate) const PLACEHOLDER: &str = "not ready yet";

/// The seconds after which clients may retry.
const RETRY_AFTER: &str = "5";

/// Returns the snapshots of a merge, with a placeholder for unknown routes until the merge is ready, and the
/// future that follows the merge. It ends when the merge or all receivers are dropped.
pub(crate) fn snapshots(
    merged: &Merged,
    options: CompileOptions,
) -> (
    watch::Receiver<Arc<Snapshot>>,
    impl Future<Output = ()> + Send + use<>,
) {
    let mut states = merged.subscribe();
    let first = served(&states.borrow_and_update(), &options);
    let (sender, receiver) = watch::channel(first);
    let follow = async move {
        while states.changed().await.is_ok() {
            let state = Arc::clone(&states.borrow_and_update());
            let next = served(&state, &options);
            // An equal snapshot is not sent again.
            let is_new = |current: &mut Arc<Snapshot>| {
                let changed = current.revision() != next.revision();
                if changed {
                    *current = next;
                }
                changed
            };
            sender.send_if_modified(is_new);
            if sender.is_closed() {
                return;
            }
        }
    };
    (receiver, follow)
}

/// Returns the snapshot of a merge in the served form.
fn served(state: &MergedState, options: &CompileOptions) -> Arc<Snapshot> {
    if state.ready {
        return Arc::clone(&state.snapshot);
    }
    let mut config = state.snapshot.config().clone();
    let mut route = RouteConfig {
        cluster_id: Some(PLACEHOLDER.into()),
        // The placeholder comes after every other route.
        order: Some(i32::MAX),
        // What clients hear of the start is for all of them, whatever policies routes have by default.
        authorization_policy: Some("Anonymous".to_owned()),
        rate_limiter_policy: Some("Disable".to_owned()),
        transforms: Some(vec![TransformConfig::from(
            [
                ("ResponseHeader", "Retry-After"),
                ("Set", RETRY_AFTER),
                ("When", "Always"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        )]),
        ..RouteConfig::default()
    };
    route.r#match.path = Some("/{**rest}".to_owned());
    config.routes.insert(PLACEHOLDER.into(), route);
    let cluster = ClusterConfig::default();
    config.clusters.insert(PLACEHOLDER.into(), cluster);
    Arc::new(Snapshot::compile_isolated(config, options).0)
}

#[cfg(test)]
mod tests {
    use discovery_core::{Merge, StaticProvider};
    use proxy_model::config::ProxyConfig;

    use super::*;

    fn config(id: &str) -> ProxyConfig {
        let json = format!(
            r#"{{ "Routes": {{ "{id}": {{ "ClusterId": "{id}", "Match": {{ "Path": "/{id}/{{**rest}}" }} }} }},
                 "Clusters": {{ "{id}": {{}} }} }}"#
        );
        ProxyConfig::from_json(&json).unwrap()
    }

    fn routes(snapshot: &Snapshot) -> Vec<&str> {
        snapshot
            .routes()
            .iter()
            .map(|route| route.id().as_str())
            .collect()
    }

    #[tokio::test]
    async fn a_placeholder_stands_for_what_is_not_known_until_all_is() {
        let late = StaticProvider::waiting("late");
        let merged = Merge::new()
            .provider(StaticProvider::new("files", config("known")))
            .provider(late.clone())
            .start();
        let (mut snapshots, follow) = snapshots(&merged, CompileOptions::default());
        assert_eq!(routes(&snapshots.borrow()), [PLACEHOLDER]);
        tokio::spawn(follow);
        let has_known = |snapshot: &Arc<Snapshot>| routes(snapshot).contains(&"known");
        snapshots.wait_for(has_known).await.unwrap();
        let both = Arc::clone(&snapshots.borrow());
        assert_eq!(routes(&both).len(), 2);
        let placeholder = both
            .routes()
            .iter()
            .find(|route| route.id().as_str() == PLACEHOLDER);
        assert_eq!(placeholder.unwrap().config().order, Some(i32::MAX));

        late.update(config("found"));
        let is_ready = |snapshot: &Arc<Snapshot>| !routes(snapshot).contains(&PLACEHOLDER);
        let ready = snapshots.wait_for(is_ready).await.unwrap();
        let mut ids = routes(&ready);
        ids.sort_unstable();
        assert_eq!(ids, ["found", "known"]);
    }
}
