//! Tests of a proxy that follows this project's control plane with a registry.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use discovery_consul::client::{CheckDefinition, HealthStatus, ServiceDefinition};
use discovery_consul::testing::FakeConsul;
use discovery_consul::watch::Datacenters;
use discovery_core::{ConfigProvider, ProviderState};
use discovery_xds::{Mode, XdsDiscoverer, XdsOptions};
use proxy_model::compiled::RouteTarget;
use proxy_model::matching::Lookup;
use proxy_model::{CompileOptions, RequestHead, Snapshot};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerHandle, ServerOptions, XdsServer};
use xds_control_plane::sources::{
    ConsulSourceOptions, ParsedRegistry, Registry, RegistryError, Sources, parse_registry,
};

/// The time limit for a state.
const PATIENCE: Duration = Duration::from_secs(120);

/// The first state that is as it should be.
async fn state(
    states: &mut watch::Receiver<Arc<ProviderState>>,
    wanted: impl Fn(&ProviderState) -> bool,
) -> Arc<ProviderState> {
    let waited = timeout(PATIENCE, states.wait_for(|state| wanted(state))).await;
    if let Ok(state) = waited.map(|state| Arc::clone(&*state.unwrap())) {
        return state;
    }
    let last = states.borrow();
    panic!(
        "not within {PATIENCE:?}; the last state: {:#?}\n{}",
        last.config, last.problems
    );
}

const SUFFIX: &str = "vrts-slb.test.vertis.yandex.net";

/// A registry with fixed content.
struct Fixed {
    text: &'static str,
    is_told: bool,
}

impl Fixed {
    fn new(text: &'static str) -> Self {
        Self {
            text,
            is_told: false,
        }
    }
}

#[async_trait]
impl Registry for Fixed {
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
        if std::mem::replace(&mut self.is_told, true) {
            return std::future::pending().await;
        }
        self.again().await
    }

    async fn again(&mut self) -> Result<ParsedRegistry, RegistryError> {
        parse_registry(self.text).map_err(|problems| RegistryError::new(problems.to_string()))
    }
}

/// A request for a host with one header.
struct Asked<'a> {
    host: &'a str,
    header: (&'a str, &'a str),
}

impl RequestHead for Asked<'_> {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/any/path"
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn authority(&self) -> &str {
        self.host
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        if name == self.header.0 {
            each(self.header.1.as_bytes());
        }
    }
}

fn instance(consul: &FakeConsul, datacenter: &str, service: &str, address: &str) {
    let id = format!("{service}-{datacenter}");
    let passing =
        CheckDefinition::ttl(&*id, Duration::from_secs(600)).with_status(HealthStatus::Passing);
    let definition = ServiceDefinition::new(service, 80)
        .with_id(id)
        .with_address(address)
        .with_check(passing);
    consul.register(datacenter, "node", definition);
}

/// A control plane in `sas`. Gives where it listens.
async fn control_plane(
    registry: &'static str,
    consul: &FakeConsul,
    change: impl FnOnce(&mut PipelineOptions),
) -> (SocketAddr, ServerHandle, Pipeline) {
    let mut from_consul = ConsulSourceOptions::default();
    from_consul.watch = from_consul.watch.with_datacenters(Datacenters::All);
    let sources = Sources::new()
        .with_registry(Fixed::new(registry))
        .with_consul(consul.client(), from_consul);
    let mut options = PipelineOptions::default();
    options.translate.domain_suffix = SUFFIX.into();
    change(&mut options);
    let pipeline = Pipeline::start(sources, options);
    let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
    let handle = server.handle();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.serve(listener, std::future::pending()));
    (address, handle, pipeline)
}

fn obey(address: SocketAddr, mode: Mode) -> impl ConfigProvider {
    let options = XdsOptions::default()
        .with_servers(vec![format!("http://{address}")])
        .with_mode(mode);
    XdsDiscoverer::new(options).unwrap().runner().start()
}

fn compiled(state: &ProviderState) -> Snapshot {
    let config = state.config.clone().unwrap();
    Snapshot::compile(config, &CompileOptions::default())
        .unwrap()
        .0
}

/// Returns the target of a request: clusters with their weights, `503` or `404`.
fn leads(snapshot: &Snapshot, host: &str, header: (&str, &str)) -> String {
    let Lookup::Matched(index) = snapshot.find(&Asked { host, header }) else {
        return "404".to_owned();
    };
    match snapshot.route_at(index).target() {
        RouteTarget::Cluster(index) => snapshot.cluster_at(*index).id().to_string(),
        RouteTarget::Weighted(targets) => {
            let share = |target: &proxy_model::compiled::WeightedTarget| {
                format!("{} {}", target.id(), target.weight())
            };
            targets.iter().map(share).collect::<Vec<_>>().join(", ")
        }
        _ => "503".to_owned(),
    }
}

const WORKED_EXAMPLE: &str = "services: [{name: nomad-ui, provides: [{name: http, proto: http}], status: run, \
    branches: [{name: fix1, status: run, canary_percent: 5}]}]";

/// The worked example, and the cases R07, R08, R12, R13, R14, R19 and R34 for it.
#[tokio::test]
async fn a_proxy_obeys_what_a_registry_says() {
    for (mode, legacy) in [(Mode::Delta, false), (Mode::StateOfTheWorld, true)] {
        let consul = FakeConsul::new("sas");
        consul.add_datacenter("vla");
        instance(&consul, "sas", "nomad-ui-http", "10.0.0.1");
        instance(&consul, "vla", "nomad-ui-http", "10.0.1.1");
        instance(&consul, "vla", "nomad-ui-fix1-http", "10.0.1.9");
        let (address, handle, _pipeline) = control_plane(WORKED_EXAMPLE, &consul, |options| {
            options.translate.legacy_regex = legacy;
        })
        .await;
        let provider = obey(address, mode);
        let mut states = provider.subscribe();
        let state = state(&mut states, |state| {
            let config = state.config.as_ref();
            config.is_some_and(|config| config.routes.len() >= 5 && config.clusters.len() == 2)
        })
        .await;
        assert!(!state.problems.has_errors(), "{}", state.problems);
        let nodes = handle.nodes();
        assert!(!format!("{nodes:?}").contains("not_honoured"), "{nodes:?}");

        let snapshot = compiled(&state);
        let (main, branch) = (
            format!("nomad-ui-http.{SUFFIX}"),
            format!("nomad-ui-fix1-http.{SUFFIX}"),
        );
        let by_weight = "nomad-ui-http 95, nomad-ui-fix1-http 5";
        for (host, header, value, wanted) in [
            (&main, "", "", by_weight),
            (&main, "x-branch-name", "fix1", "nomad-ui-fix1-http"),
            (&main, "x-branch-name", "FIX1", "nomad-ui-fix1-http"),
            (&main, "x-branch-name", "fix12", by_weight),
            (&main, "x-sticky-uid", "1", "nomad-ui-http"),
            (&main, "x-sticky-uid", "yes", "nomad-ui-http"),
            (&main, "x-sticky-uid", "Yes", "nomad-ui-http"),
            (&main, "x-sticky-uid", "true", "nomad-ui-http"),
            (&main, "x-sticky-uid", "True", "nomad-ui-http"),
            (&main, "x-sticky-uid", "YES", by_weight),
            (&main, "x-sticky-uid", "0", by_weight),
            (&main, "x-sticky-uid", "11", by_weight),
            (&branch, "", "", "nomad-ui-fix1-http 100"),
            (&branch, "x-sticky-uid", "1", "nomad-ui-fix1-http"),
            (&format!("{main}:80"), "", "", by_weight),
            (&"nobody.example".to_owned(), "", "", "404"),
        ] {
            let found = leads(&snapshot, host, (header, value));
            assert_eq!(found, wanted, "{host} {header}: {value}");
        }

        let tiers: BTreeMap<_, BTreeMap<_, _>> = (state.config.as_ref().unwrap().clusters.iter())
            .map(|(id, cluster)| {
                let destinations = cluster.destinations.values().map(|destination| {
                    let priority = destination.priority.unwrap_or_default();
                    (destination.address.clone(), priority)
                });
                (id.to_string(), destinations.collect())
            })
            .collect();
        let wanted = BTreeMap::from([
            (
                "nomad-ui-http".to_owned(),
                BTreeMap::from([
                    ("http://10.0.0.1:80/".to_owned(), 0),
                    ("http://10.0.1.1:80/".to_owned(), 1),
                ]),
            ),
            (
                "nomad-ui-fix1-http".to_owned(),
                BTreeMap::from([("http://10.0.1.9:80/".to_owned(), 0)]),
            ),
        ]);
        assert_eq!(tiers, wanted);
    }
}

/// R08, R15, R16, R18, R20 and R23: many canaries, none, names with a meaning in expressions, and a service with tags.
#[tokio::test]
async fn weights_names_and_tags_are_those_of_the_registry() {
    let consul = FakeConsul::new("sas");
    for service in ["a-http", "a-b1-http", "a-b2-http", "c-http", "c-f.x-http"] {
        instance(&consul, "sas", service, "10.0.0.1");
    }
    let passing =
        CheckDefinition::ttl("j", Duration::from_secs(600)).with_status(HealthStatus::Passing);
    let tagged = ServiceDefinition::new("j", 80)
        .with_id("j")
        .with_address("10.0.0.2")
        .with_tag("domain-x.example")
        .with_tag("domain-y.example")
        .with_check(passing);
    consul.register("sas", "node", tagged);
    let registry = "services: [{name: a, provides: [{name: http}], branches: [{name: b1, canary_percent: 70}, \
        {name: b2, canary_percent: 60}]}, {name: c, provides: [{name: http}], branches: [{name: f.x, canary_percent: 0}]}]";
    let (address, _handle, _pipeline) = control_plane(registry, &consul, |_| {}).await;
    let provider = obey(address, Mode::Delta);
    let mut states = provider.subscribe();
    let state = state(&mut states, |state| {
        (state.config.as_ref()).is_some_and(|config| config.clusters.len() == 6)
    })
    .await;
    assert!(!state.problems.has_errors(), "{}", state.problems);
    let snapshot = compiled(&state);
    let (a, c) = (format!("a-http.{SUFFIX}"), format!("c-http.{SUFFIX}"));
    for (host, header, value, wanted) in [
        (&*a, "", "", &["a-b1-http 70", "a-b2-http 30"][..]),
        (&a, "x-sticky-uid", "1", &["a-http"]),
        (&c, "", "", &["c-http 100"]),
        (&c, "x-branch-name", "F.X", &["c-f.x-http"]),
        (&c, "x-branch-name", "fax", &["c-http 100"]),
        ("x.example", "", "", &["j 100"]),
        ("Y.Example:80", "", "", &["j 100"]),
    ] {
        let found = leads(&snapshot, host, (header, value));
        let found: Vec<_> = found
            .split(", ")
            .filter(|share| !share.ends_with(" 0"))
            .collect();
        assert_eq!(found, wanted, "{host} {header}: {value}");
    }
}

/// The same difference in several clusters is reported once.
#[tokio::test]
async fn what_is_so_everywhere_is_said_once() {
    let consul = FakeConsul::new("sas");
    let registry = "services: [{name: a, provides: [{name: http}]}, {name: b, provides: [{name: http}]}, \
        {name: c, provides: [{name: http}]}]";
    let (address, _handle, _pipeline) = control_plane(registry, &consul, |_| {}).await;
    let provider = obey(address, Mode::Delta);
    let mut states = provider.subscribe();
    let state = state(&mut states, |state| {
        (state.config.as_ref()).is_some_and(|config| config.clusters.len() == 3)
    })
    .await;
    let told: Vec<_> = (state.problems.iter())
        .filter(|problem| problem.pointer.ends_with("/circuit_breakers/thresholds"))
        .collect();
    assert_eq!(told.len(), 1, "{}", state.problems);
    assert!(
        told[0].message.ends_with("and at 2 more places"),
        "{}",
        told[0]
    );
}
