//! Tests of what a restart keeps: restrictions of listeners, and the earlier forms of rejected resources.

use std::path::Path;
use std::time::Duration;

use discovery_core::{DiscoveryProvider, ProviderState};
use prost::Message;
use proxy_model::ClusterId;
use proxy_model::config::ProxyConfig;
use tokio::time::sleep;
use xds_types::ResourceType;
use xds_types::ResourceType::{Cluster as Cds, Endpoint as Eds, Listener as Lds};
use xds_types::pb::envoy::config::cluster::v3::Cluster;
use xds_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use xds_types::pb::envoy::config::route::v3::route::Action;
use xds_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier;
use xds_types::pb::envoy::config::route::v3::route_match::{GrpcRouteMatchOptions, PathSpecifier};
use xds_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::Rds;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::google::protobuf::Any;

use super::closed::{are_strict, guarded, is_closed, merging};
use super::script::{Delta, Full, Script, any, delta, full, listener, listener_with, pair};
use super::written::resources;
use super::{ONE, serving, state, states};
use crate::{Mode, XdsOptions};

type Resource = (ResourceType, String, Any);

const BOTH: [Mode; 2] = [Mode::StateOfTheWorld, Mode::Delta];

fn options(mode: Mode, file: &Path) -> XdsOptions {
    let options = XdsOptions::default().with_mode(mode);
    options.with_persist(Some(file.to_owned()))
}

/// One stream of either variant.
enum Peer {
    Full(Full),
    Delta(Delta),
}

impl Peer {
    async fn of(mode: Mode, script: &mut Script) -> Self {
        match mode {
            Mode::StateOfTheWorld => Self::Full(script.full().await),
            Mode::Delta => Self::Delta(script.delta().await),
        }
    }

    /// Sends all resources of these types.
    async fn say(&self, number: &str, kinds: &[ResourceType], all: &[Resource]) {
        for kind in kinds {
            let nonce = format!("{number}-{kind}");
            match self {
                Self::Full(stream) => stream.answer(full(*kind, &nonce, number, all)).await,
                Self::Delta(stream) => stream.answer(delta(*kind, &nonce, number, all)).await,
            }
        }
    }

    /// Reports that there are no resources of a type any more.
    async fn remove(&self, kind: ResourceType, name: &str) {
        match self {
            Self::Full(stream) => stream.answer(full(kind, "none", "none", &[])).await,
            Self::Delta(stream) => {
                let mut gone = delta(kind, "none", "none", &[]);
                gone.removed_resources.push(name.to_owned());
                stream.answer(gone).await;
            }
        }
    }
}

/// Waits until the file has the current state.
async fn saved(provider: &DiscoveryProvider) {
    sleep(Duration::from_secs(1)).await;
    let kept = provider.state().status.persistence.clone();
    assert!(kept.is_some_and(|kept| kept.last_saved.is_some() && kept.error.is_none()));
}

fn quarantined(state: &ProviderState) -> Vec<String> {
    let services = state.status.quarantined.iter();
    services
        .map(|service| service.service.to_string())
        .collect()
}

fn address_of(state: &ProviderState, cluster: &str) -> Option<String> {
    let config = state.config.as_ref()?;
    let cluster = config.clusters.get(&ClusterId::from(cluster))?;
    Some(cluster.destinations.values().next()?.address.clone())
}

/// A listener that merges slashes, and later says nothing: its routes would take ambiguous paths.
#[tokio::test(start_paused = true)]
async fn routes_stay_strict_while_a_restart_hears_nothing_of_their_listener() {
    for mode in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let options = options(mode, &directory.path().join("xds.json"));
        let named = RouteSpecifier::Rds(Rds {
            route_config_name: "main".into(),
            ..Rds::default()
        });
        let all = resources(ONE);
        let mut merged = all.clone();
        merged.push(merging("http", named));
        let (discoverer, mut script) = pair(options.clone());
        let provider = discoverer.runner().start();
        let peer = Peer::of(mode, &mut script).await;
        let kinds = [Cds, Lds, ResourceType::Route, Eds];
        peer.say("1", &kinds, &merged).await;
        state(&mut states(&provider), are_strict).await;
        saved(&provider).await;
        drop((provider, script, peer));

        let (discoverer, mut script) = pair(options);
        let provider = discoverer.runner().start();
        let mut states = states(&provider);
        let peer = Peer::of(mode, &mut script).await;
        peer.say("1", &[Cds, ResourceType::Route, Eds], &all).await;
        for _ in 0..60 {
            sleep(Duration::from_secs(1)).await;
            let state = states.borrow_and_update().clone();
            assert!(
                state.config.is_none() || are_strict(&state),
                "{mode:?} {:#?}",
                state.config
            );
        }
        assert!(are_strict(&provider.state()), "{mode:?}");
    }
}

/// The other resources come, and those about listeners do not: the routes would be open after
/// `FetchTimeout`.
#[tokio::test(start_paused = true)]
async fn a_closed_listener_stays_closed_while_a_restart_hears_nothing_of_it() {
    for mode in BOTH {
        for inline in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("xds.json");
            let options = options(mode, &file);
            let mut all = resources(ONE);
            let open = match inline {
                false => listener("http", "main"),
                true => {
                    let (.., routes) = all
                        .iter()
                        .find(|(kind, ..)| *kind == ResourceType::Route)
                        .unwrap();
                    let routes = RouteConfiguration::decode(&*routes.value).unwrap();
                    listener_with("http", RouteSpecifier::RouteConfig(routes))
                }
            };
            if inline {
                all.retain(|(kind, ..)| *kind != ResourceType::Route);
            }
            let options = match inline {
                false => options,
                true => options.with_route_configs(Vec::new()),
            };
            let mut closed = all.clone();
            closed.push(guarded(open.clone()));
            let kinds = [Cds, Lds, ResourceType::Route, Eds];
            let (discoverer, mut script) = pair(options.clone());
            let provider = discoverer.runner().start();
            let peer = Peer::of(mode, &mut script).await;
            peer.say("1", &kinds, &closed).await;
            state(&mut states(&provider), is_closed).await;
            saved(&provider).await;
            drop((provider, script, peer));

            // Twice: the file of a proxy that never heard of listeners has them, too.
            for _ in 0..2 {
                let (discoverer, mut script) = pair(options.clone());
                let provider = discoverer.runner().start();
                let mut states = states(&provider);
                let peer = Peer::of(mode, &mut script).await;
                peer.say("1", &[Cds, ResourceType::Route, Eds], &all).await;
                for _ in 0..60 {
                    sleep(Duration::from_secs(1)).await;
                    let state = states.borrow_and_update().clone();
                    assert!(is_shut(&state), "{mode:?} {inline} {:#?}", state.config);
                }
                let last = provider.state();
                if !inline {
                    assert_eq!(last.status.state.as_str(), "live");
                    let told = last.problems.to_string();
                    assert!(told.contains("what they closed stays closed"), "{told}");
                }
                drop((script, peer));
            }

            // The control plane decides.
            let (discoverer, mut script) = pair(options);
            let provider = discoverer.runner().start();
            let mut states = states(&provider);
            let peer = Peer::of(mode, &mut script).await;
            peer.say("1", &[Cds, ResourceType::Route, Eds], &all).await;
            if inline {
                all.push(open);
                peer.say("2", &[Lds], &all).await;
            } else {
                peer.remove(Lds, "http").await;
            }
            let open = serving(&mut states, ONE).await;
            assert!(open.problems.is_empty(), "{}", open.problems);
        }
    }
}

fn is_shut(state: &ProviderState) -> bool {
    let routes = state
        .config
        .iter()
        .flat_map(|config| config.routes.values());
    routes.into_iter().all(|route| route.cluster_id.is_none())
}

/// The kept state does not include listeners.
#[tokio::test(start_paused = true)]
async fn silence_about_listeners_is_reported_where_nothing_was_kept() {
    let (discoverer, mut script) = pair(XdsOptions::default());
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let peer = Peer::of(Mode::Delta, &mut script).await;
    peer.say("1", &[Cds, ResourceType::Route, Eds], &resources(ONE))
        .await;
    let told = |state: &ProviderState| state.problems.iter().any(|p| p.code == "listeners_unknown");
    let open = state(&mut states, told).await;
    assert!(!is_shut(&open));
    let message = open.problems.to_string();
    assert!(message.contains("served to everybody"), "{message}");
    peer.say("2", &[Lds], &[listener("http", "main")]).await;
    state(&mut states, |state| state.problems.is_empty()).await;
}

/// A virtual host with one route under `path`, whose condition is unsupported if `is_bad`.
pub(super) fn host(name: &str, path: &str, is_bad: bool) -> VirtualHost {
    let wanted = RouteMatch {
        path_specifier: Some(PathSpecifier::Prefix(path.to_owned())),
        grpc: is_bad.then(GrpcRouteMatchOptions::default),
        ..RouteMatch::default()
    };
    let action = RouteAction {
        cluster_specifier: Some(ClusterSpecifier::Cluster("c".to_owned())),
        ..RouteAction::default()
    };
    VirtualHost {
        name: name.to_owned(),
        domains: vec![format!("{name}.example")],
        routes: vec![Route {
            name: "r".to_owned(),
            r#match: Some(wanted),
            action: Some(Action::Route(action)),
            ..Route::default()
        }],
        ..VirtualHost::default()
    }
}

fn routes(hosts: Vec<VirtualHost>) -> Resource {
    let routes = RouteConfiguration {
        name: "main".to_owned(),
        virtual_hosts: hosts,
        ..RouteConfiguration::default()
    };
    (
        ResourceType::Route,
        "main".to_owned(),
        any(ResourceType::Route, &routes),
    )
}

/// Returns the paths under which the hosts are led to the cluster.
fn led(state: &ProviderState) -> Vec<String> {
    let routes = state.config.iter().flat_map(|config| &config.routes);
    let led = routes.filter(|(_, route)| route.cluster_id.is_some());
    let mut led: Vec<_> = led
        .map(|(id, route)| format!("{id} {}", route.r#match.path.as_deref().unwrap_or_default()))
        .collect();
    led.sort();
    led
}

fn world(routes: Resource, address: &str) -> Vec<Resource> {
    let mut all = resources(&ONE.replace("10.0.0.1", address));
    all.retain(|(kind, ..)| *kind != ResourceType::Route);
    all.push(routes);
    all
}

/// The host `b` was changed before its newest form was rejected, and `a` at the same time as it: each keeps
/// its own last form.
#[tokio::test(start_paused = true)]
async fn rejected_virtual_hosts_keep_their_routes_over_a_restart() {
    for mode in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("xds.json");
        let options = options(mode, &file).with_listeners(false);
        let forms = [
            vec![host("a", "/1", false), host("b", "/1", false)],
            vec![host("a", "/2", true), host("b", "/2", false)],
            vec![host("a", "/3", true), host("b", "/3", true)],
        ];
        let (discoverer, mut script) = pair(options.clone());
        let provider = discoverer.runner().start();
        let mut first = states(&provider);
        let peer = Peer::of(mode, &mut script).await;
        for (number, hosts) in ["1", "2", "3"].into_iter().zip(&forms) {
            let all = world(routes(hosts.clone()), "10.0.0.1");
            peer.say(number, &[Cds, ResourceType::Route, Eds], &all)
                .await;
            sleep(Duration::from_secs(1)).await;
        }
        let before = state(&mut first, |state| led(state).len() == 2).await;
        let found = led(&before);
        assert!(
            found[0].starts_with("a/r") && found[0].contains("^1"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("b/r") && found[1].contains("^2"),
            "{found:?}"
        );
        assert_eq!(quarantined(&before), ["routes main"]);
        saved(&provider).await;
        drop((provider, script, peer));

        // While the control plane is away, and after it has said the same again.
        for _ in 0..2 {
            let (discoverer, mut script) = pair(options.clone());
            let provider = discoverer.runner().start();
            let mut states = states(&provider);
            let restored = state(&mut states, |state| state.config.is_some()).await;
            assert_eq!(led(&restored), found, "{mode:?}");
            assert_eq!(quarantined(&restored), ["routes main"]);
            let peer = Peer::of(mode, &mut script).await;
            let all = world(routes(forms[2].clone()), "10.0.0.2");
            peer.say("1", &[Cds, ResourceType::Route, Eds], &all).await;
            let moved = |state: &ProviderState| {
                address_of(state, "c").is_some_and(|address| address.contains("10.0.0.2"))
            };
            let live = state(&mut states, moved).await;
            assert_eq!(led(&live), found, "{mode:?}");
            assert_eq!(quarantined(&live), ["routes main"]);
            saved(&provider).await;
            drop((script, peer));
        }
    }
}

/// The kept cluster follows its endpoints, also after a restart.
#[tokio::test(start_paused = true)]
async fn rejected_clusters_keep_their_form_over_a_restart_and_follow_their_endpoints() {
    for mode in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("xds.json");
        let options = options(mode, &file).with_listeners(false);
        let good = resources(ONE);
        let bad = Cluster {
            name: "c".to_owned(),
            filters: vec![Default::default()],
            ..Cluster::default()
        };
        let bad = [(Cds, "c".to_owned(), any(Cds, &bad))];
        let (discoverer, mut script) = pair(options.clone());
        let provider = discoverer.runner().start();
        let mut first = states(&provider);
        let peer = Peer::of(mode, &mut script).await;
        peer.say("1", &[Cds, ResourceType::Route, Eds], &good).await;
        serving(&mut first, ONE).await;
        peer.say("2", &[Cds], &bad).await;
        state(&mut first, |state| quarantined(state) == ["cluster c"]).await;
        saved(&provider).await;
        drop((provider, script, peer));

        for last in ["2", "3"] {
            let (discoverer, mut script) = pair(options.clone());
            let provider = discoverer.runner().start();
            let mut states = states(&provider);
            let peer = Peer::of(mode, &mut script).await;
            let moved = ONE.replace("10.0.0.1", &format!("10.0.0.{last}"));
            peer.say("1", &[Cds], &bad).await;
            peer.say("1", &[ResourceType::Route, Eds], &resources(&moved))
                .await;
            let live = serving(&mut states, &moved).await;
            assert_eq!(live.status.state.as_str(), "live");
            assert_eq!(quarantined(&live), ["cluster c"]);
            saved(&provider).await;
            drop((script, peer));
        }

        // What the control plane has removed meanwhile is not kept.
        let (discoverer, mut script) = pair(options);
        let provider = discoverer.runner().start();
        let mut states = states(&provider);
        let mut peer = Peer::of(mode, &mut script).await;
        if let Peer::Delta(stream) = &mut peer {
            // The name is there for it, the version is none that the server has.
            let asked = stream.request().await;
            assert_eq!(
                asked.initial_resource_versions,
                [("c".to_owned(), String::new())].into()
            );
        }
        peer.remove(Cds, "c").await;
        peer.say("1", &[ResourceType::Route], &good).await;
        let is_gone = |state: &ProviderState| {
            (state.config.as_ref()).is_some_and(|config| config.clusters.is_empty())
        };
        let gone = state(&mut states, is_gone).await;
        assert_eq!(quarantined(&gone), [""; 0]);
    }
}

/// Rejected endpoints keep serving, with their age.
#[tokio::test(start_paused = true)]
async fn clusters_with_rejected_endpoints_are_quarantined() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let peer = Peer::of(Mode::Delta, &mut script).await;
    peer.say("1", &[Cds, ResourceType::Route, Eds], &resources(ONE))
        .await;
    serving(&mut states, ONE).await;
    let bad = ClusterLoadAssignment {
        cluster_name: "c".to_owned(),
        named_endpoints: [("x".to_owned(), Default::default())].into(),
        ..ClusterLoadAssignment::default()
    };
    peer.say("2", &[Eds], &[(Eds, "c".to_owned(), any(Eds, &bad))])
        .await;
    state(&mut states, |state| !state.status.quarantined.is_empty()).await;
    sleep(Duration::from_secs(60)).await;
    let kept = provider.state();
    let service = &kept.status.quarantined[0];
    assert_eq!(&*service.service, "cluster c");
    assert!(service.last_known_good.unwrap().age() < Duration::from_secs(20));
    assert!(service.destinations.unwrap().age() >= Duration::from_secs(60));
    assert_eq!(address_of(&kept, "c").as_deref(), Some("http://10.0.0.1/"));
}

/// Envoy rejects them as well.
#[tokio::test(start_paused = true)]
async fn resources_with_another_name_inside_are_rejected() {
    let (discoverer, mut script) = pair(XdsOptions::default().with_listeners(false));
    let provider = discoverer.runner().start();
    let mut states = states(&provider);
    let two = ONE.replace(
        r#""Clusters":{"#,
        r#""Clusters":{"b":{"Destinations":{"d":{"Address":"http://10.0.0.9/"}}},"#,
    );
    let mut peer = Peer::of(Mode::Delta, &mut script).await;
    peer.say("1", &[Cds, ResourceType::Route, Eds], &resources(&two))
        .await;
    serving(&mut states, &two).await;
    // Another cluster's endpoints in the envelope of `c`, and another name in that of `main`.
    let moved = resources(&two.replace("10.0.0.9", "10.0.0.66"));
    let of_b = moved
        .iter()
        .find(|(kind, name, _)| (*kind, &**name) == (Eds, "b"));
    let (.., of_b) = of_b.unwrap().clone();
    peer.say("2", &[Eds], &[(Eds, "c".to_owned(), of_b)]).await;
    let (.., other) = routes(vec![host("a", "/other", false)]);
    let other = RouteConfiguration {
        name: "other".to_owned(),
        ..RouteConfiguration::decode(&*other.value).unwrap()
    };
    peer.say(
        "2",
        &[ResourceType::Route],
        &[(
            ResourceType::Route,
            "main".to_owned(),
            any(ResourceType::Route, &other),
        )],
    )
    .await;
    let Peer::Delta(stream) = &mut peer else {
        panic!("the variant is delta")
    };
    let mut rejections = Vec::new();
    while rejections.len() < 2 {
        let request = stream.request().await;
        rejections.extend(request.error_detail.map(|error| error.message));
    }
    assert!(
        rejections[0].contains("`c` has the name `b` inside"),
        "{rejections:?}"
    );
    assert!(
        rejections[1].contains("`main` has the name `other` inside"),
        "{rejections:?}"
    );
    let kept = state(&mut states, |state| state.status.quarantined.len() == 2).await;
    assert_eq!(quarantined(&kept), ["cluster c", "routes main"]);
    let config = ProxyConfig::from_json(&two).unwrap();
    assert_eq!(kept.config.as_deref(), Some(&config));
}
