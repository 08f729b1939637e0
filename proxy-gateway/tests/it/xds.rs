//! The program and a real Envoy, both beside a control plane of this workspace.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use crate::common::{ConfigFile, address_after, output, start};
use discovery_consul::client::{ConsulClient, ConsulOptions};
use discovery_core::StaticProvider;
use http::Request;
use http_body_util::Empty;
use proxy_model::config::ProxyConfig;
use serde_json::{Value, json};
use testkit::client::Connection;
use testkit::consul::{Consul, ConsulAgent};
use testkit::origin::{Echo, NamedOrigin, Origin};
use testkit::peers::{self, PeerProcess};
use testkit::time::eventually;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use xds_control_plane::bridge::{BridgeOptions, provide};
use xds_control_plane::pipeline::{Pipeline, PipelineOptions};
use xds_control_plane::server::{ServerOptions, XdsServer};
use xds_control_plane::sources::{ConsulSourceOptions, FileRegistry, Sources};

/// A control plane.
struct Served {
    address: SocketAddr,
    _pipeline: Pipeline,
    server: AbortHandle,
}

impl Served {
    async fn start(address: SocketAddr, sources: Sources) -> Self {
        let pipeline = Pipeline::start(sources, PipelineOptions::default());
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let server = XdsServer::new(pipeline.snapshots(), ServerOptions::default());
        let server = tokio::spawn(server.serve(listener, std::future::pending()));
        Self {
            address,
            _pipeline: pipeline,
            server: server.abort_handle(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A control plane that serves the configuration of a provider.
pub(crate) struct ControlPlane {
    pub(crate) address: SocketAddr,
    provider: StaticProvider,
    _served: Served,
}

impl ControlPlane {
    pub(crate) async fn start(config: &str) -> Self {
        Self::at("127.0.0.1:0".parse().expect("an address"), config).await
    }

    pub(crate) async fn at(address: SocketAddr, config: &str) -> Self {
        let provider = StaticProvider::new(
            "code",
            ProxyConfig::from_json(config).expect("a configuration"),
        );
        let provided = provide(
            provider.clone(),
            BridgeOptions::default().with_carried_source(true),
        );
        let sources = Sources::new().with_provided("code", provided);
        let served = Served::start(address, sources).await;
        Self {
            address: served.address,
            provider,
            _served: served,
        }
    }

    pub(crate) fn publish(&self, config: &str) {
        self.provider
            .update(ProxyConfig::from_json(config).expect("a configuration"));
    }
}

/// The program, with the file of its configuration.
pub(crate) struct Gateway {
    process: PeerProcess,
    _file: ConfigFile,
}

impl Deref for Gateway {
    type Target = PeerProcess;

    fn deref(&self) -> &PeerProcess {
        &self.process
    }
}

impl DerefMut for Gateway {
    fn deref_mut(&mut self) -> &mut PeerProcess {
        &mut self.process
    }
}

/// Starts the program with a configuration. Returns its address, and that of its admin page.
pub(crate) async fn gateway(section: &str) -> (Gateway, SocketAddr, SocketAddr) {
    let file = ConfigFile::new(&format!(
        r#"{{ "Listeners": {{ "web": {{ "Address": "127.0.0.1:0" }} }}, "Admin": {{ "Address": "127.0.0.1:0" }}, {section} }}"#
    ));
    let process = start(&["run", "--config", &file.argument()], "a second Ctrl-C").await;
    let proxy = address_after(&process.output(), "listening on http://");
    let admin = address_after(&process.output(), "admin page on http://");
    let gateway = Gateway {
        process,
        _file: file,
    };
    (gateway, proxy, admin)
}

pub(crate) fn from_xds(servers: &[SocketAddr], mode: &str) -> String {
    let servers: Vec<String> = servers
        .iter()
        .map(|server| format!("http://{server}"))
        .collect();
    format!(
        r#""XdsDiscovery": {{ "Servers": {}, "Mode": "{mode}", "Node": {{ "Id": "g1" }} }}"#,
        json!(servers)
    )
}

/// Starts a real Envoy whose listener has the routes of the control plane.
fn envoy(server: SocketAddr) -> Option<(PeerProcess, SocketAddr)> {
    let program = peers::find("envoy")?;
    let free = || SocketAddr::from(([127, 0, 0, 1], peers::free_port()));
    let address = |socket: SocketAddr| json!({ "socket_address": { "address": socket.ip(), "port_value": socket.port() } });
    let (listener, admin) = (free(), free());
    let ads = json!({ "ads": {}, "resource_api_version": "V3" });
    let http = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let config = json!({
        "node": { "id": "e1", "cluster": "edge" },
        "admin": { "address": address(admin) },
        "dynamic_resources": {
            "ads_config": {
                "api_type": "DELTA_GRPC", "transport_api_version": "V3",
                "grpc_services": [{ "envoy_grpc": { "cluster_name": "xds" } }],
            },
            "cds_config": ads,
        },
        "static_resources": {
            "clusters": [{
                "name": "xds", "type": "STATIC", "connect_timeout": "1s",
                "load_assignment": { "cluster_name": "xds", "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": address(server) } }] }] },
                "typed_extension_protocol_options": { options: {
                    "@type": format!("type.googleapis.com/{options}"),
                    "explicit_http_config": { "http2_protocol_options": {} },
                } },
            }],
            "listeners": [{
                "name": "http", "address": address(listener),
                "filter_chains": [{ "filters": [{ "name": "http", "typed_config": {
                    "@type": http, "stat_prefix": "http", "use_remote_address": true, "normalize_path": true,
                    "rds": { "route_config_name": "main", "config_source": ads },
                    "http_filters": [{ "name": "envoy.filters.http.router", "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
                    } }],
                } }] }],
            }],
        },
    });
    let mut command = program.command();
    command.args([
        "--concurrency",
        "1",
        "--use-dynamic-base-id",
        "-l",
        "warning",
    ]);
    command.args(["--config-yaml", &config.to_string()]);
    Some((peers::spawn(command), listener))
}

fn routes(first: SocketAddr, second: SocketAddr) -> String {
    format!(
        r#"{{ "Routes": {{
            "any": {{ "ClusterId": "a", "Match": {{ "Path": "/{{**rest}}" }} }},
            "api": {{ "ClusterId": "a", "Match": {{ "Path": "/api/{{**rest}}" }},
                "Transforms": [{{ "PathRemovePrefix": "/api" }}, {{ "PathPrefix": "/v2" }}] }},
            "item": {{ "ClusterId": "b", "Match": {{ "Path": "/items/{{id}}/{{**rest}}" }},
                "Transforms": [{{ "PathPattern": "/i/{{id}}/x/{{**rest}}" }}] }},
            "create": {{ "ClusterId": "b", "Match": {{ "Path": "/items/{{id}}", "Methods": ["POST"] }} }},
            "host": {{ "ClusterId": "b", "Match": {{ "Hosts": ["other.test", "*.wide.test"] }} }},
            "canary": {{ "ClusterId": "b", "Match": {{ "Path": "/{{**rest}}", "Headers": [{{ "Name": "x-canary", "Values": ["yes"] }}] }} }},
            "query": {{ "ClusterId": "b", "Match": {{ "Path": "/q", "QueryParameters": [{{ "Name": "branch", "Values": ["fix 1"] }}] }} }},
            "headers": {{ "ClusterId": "a", "Match": {{ "Path": "/h" }}, "Transforms": [
                {{ "RequestHeader": "x-set", "Set": "100%" }}, {{ "RequestHeaderRemove": "x-drop" }},
                {{ "RequestHeaderOriginalHost": "true" }}] }},
            "based": {{ "ClusterId": "based", "Match": {{ "Path": "/based/{{**rest}}" }} }},
            "nowhere": {{ "Match": {{ "Path": "/nowhere" }} }}
        }}, "Clusters": {{
            "a": {{ "Destinations": {{ "one": {{ "Address": "http://{first}/" }} }} }},
            "b": {{ "Destinations": {{ "two": {{ "Address": "http://{second}/" }} }} }},
            "based": {{ "Destinations": {{ "two": {{ "Address": "http://{second}/base" }} }} }}
        }} }}"#
    )
}

/// The request that a destination sees, as far as it does not depend on how the proxy is reached.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
}

async fn seen(
    proxy: SocketAddr,
    method: &str,
    host: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Seen {
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", host);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut client = Connection::http1(proxy).await.expect("it listens");
    let answer = client
        .send(request.body(Empty::new()).expect("a request"))
        .await
        .expect("it answers");
    let status = answer.status.as_u16();
    if status != 200 {
        return Seen {
            status,
            method: String::new(),
            target: String::new(),
            headers: BTreeMap::new(),
        };
    }
    let echo: Echo = answer.json();
    let compared = [
        "host",
        "x-set",
        "x-drop",
        "x-canary",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-prefix",
        "forwarded",
    ];
    Seen {
        status,
        method: echo.method,
        target: echo.uri,
        headers: (echo.headers.into_iter())
            .filter(|(name, _)| compared.contains(&name.as_str()))
            .collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_by_file_one_by_control_plane_and_an_envoy_do_the_same() {
    let (first, second) = (Origin::echo(), Origin::echo());
    let config = routes(first.addr(), second.addr());
    let plane = ControlPlane::start(&config).await;
    let (_direct, direct, _) = gateway(&format!(r#""ReverseProxy": {config}"#)).await;
    let (_delta, delta, _) = gateway(&from_xds(&[plane.address], "Delta")).await;
    let (_full, full, _) = gateway(&from_xds(&[plane.address], "StateOfTheWorld")).await;
    let envoy = envoy(plane.address);
    let mut proxies = vec![("delta", delta), ("state of the world", full)];
    proxies.extend(envoy.as_ref().map(|(_, address)| ("envoy", *address)));
    for (name, proxy) in &proxies {
        eventually(format!("{name} serves"), async || {
            let Ok(mut client) = Connection::http1(*proxy).await else {
                return false;
            };
            client
                .get("/")
                .await
                .is_ok_and(|answer| answer.status == 200)
        })
        .await;
    }
    let none: &[(&str, &str)] = &[];
    for (method, host, target, headers) in [
        ("GET", "x.test", "/", none),
        ("GET", "x.test", "/deep/path?q=1", none),
        ("GET", "x.test", "/api", none),
        ("GET", "x.test", "/API/users/?q=a%2Fb", none),
        ("GET", "x.test", "/apis", none),
        ("GET", "x.test", "/items/7", none),
        ("GET", "x.test", "/items/7/a/b%2Fc/", none),
        ("POST", "x.test", "/items/7", none),
        ("GET", "other.test", "/deep", none),
        ("GET", "Other.Test:8080", "/deep", none),
        ("GET", "a.b.wide.test", "/", none),
        ("GET", "other.test", "/api/x", none),
        ("GET", "x.test", "/", &[("x-canary", "no, Yes")]),
        ("GET", "x.test", "/", &[("x-canary", "no")]),
        ("GET", "x.test", "/q?a=1&Branch=fix+1", none),
        ("GET", "x.test", "/q?branch=fix+12", none),
        (
            "GET",
            "x.test",
            "/h",
            &[
                ("x-set", "old"),
                ("x-drop", "1"),
                ("x-forwarded-for", "9.9.9.9"),
                ("forwarded", "for=x"),
            ],
        ),
        ("GET", "x.test", "/based/x", none),
        ("GET", "x.test", "/nowhere", none),
    ] {
        let wanted = seen(direct, method, host, target, headers).await;
        for (name, proxy) in &proxies {
            let found = seen(*proxy, method, host, target, headers).await;
            assert_eq!(
                found, wanted,
                "{name}: {method} {host} {target} {headers:?}"
            );
        }
    }
}

/// Registers an instance that answers with a name.
async fn instance(agent: &ConsulAgent, service: &str, name: &str) -> NamedOrigin {
    let origin = Origin::named(name);
    let address = origin.addr();
    let body = json!({
        "Name": service, "ID": name, "Address": address.ip(), "Port": address.port(),
        "Check": { "CheckID": name, "TTL": "600s", "Status": "passing" },
    });
    let answer = agent
        .call("PUT", "/v1/agent/service/register", &body.to_string())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    origin
}

/// Branches, sticky clients and canaries of a registry, with instances in a real Consul.
#[tokio::test(flavor = "multi_thread")]
async fn requests_go_where_a_registry_says() {
    let Some(consul) = Consul::find() else { return };
    let agent = consul.datacenter("sas").start().await;
    let _main = instance(&agent, "shop-http", "main").await;
    let _branch = instance(&agent, "shop-fix1-http", "branch").await;
    let registry = ConfigFile::new(
        r#"{ "services": [{ "name": "shop", "provides": [{ "name": "http" }],
            "branches": [{ "name": "fix1", "canary_percent": 20 }] }] }"#,
    );
    let client = ConsulOptions::default().with_address(agent.url());
    let sources = Sources::new()
        .with_registry(FileRegistry::new(registry.argument()))
        .with_consul(
            ConsulClient::new(client).expect("an address"),
            ConsulSourceOptions::default(),
        );
    let plane = Served::start("127.0.0.1:0".parse().expect("an address"), sources).await;
    let (_gateway, proxy, _) = gateway(&from_xds(&[plane.address], "Delta")).await;
    let get = async |host: &str, (name, value): (&str, &str)| {
        let mut client = Connection::http1(proxy).await.expect("it listens");
        let mut request = Request::builder().uri("/").header("host", host);
        if !name.is_empty() {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).expect("a request");
        let answer = client.send(request).await.expect("it answers");
        (answer.status.as_u16(), answer.text())
    };
    let (shop, branch) = ("shop-http.local", "shop-fix1-http.local");
    eventually("the gateway serves", async || {
        get(branch, ("", "")).await == (200, "branch".to_owned())
    })
    .await;
    assert_eq!(get("nobody.example", ("", "")).await.0, 404);
    for (header, value, expected) in [
        ("x-branch-name", "fix1", "branch"),
        ("x-branch-name", "FIX1", "branch"),
        ("x-sticky-uid", "1", "main"),
        ("x-sticky-uid", "Yes", "main"),
        ("x-sticky-uid", "true", "main"),
    ] {
        for _ in 0..10 {
            let answer = get(shop, (header, value)).await;
            assert_eq!(answer, (200, expected.to_owned()), "{header}: {value}");
        }
    }
    // A fifth of all other requests. Of 500, 100 are expected, with a standard deviation of 9.
    for header in [
        ("", ""),
        ("x-branch-name", "fix12"),
        ("x-sticky-uid", "YES"),
    ] {
        let mut share = 0_u32;
        for _ in 0..500 {
            let (status, name) = get(shop, header).await;
            assert_eq!(status, 200);
            share += u32::from(name == "branch");
        }
        assert!((40..=160).contains(&share), "{header:?}: {share}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_arrives_and_a_lost_control_plane_changes_nothing() {
    let (first, second) = (Origin::named("first"), Origin::named("second"));
    let to = |address: SocketAddr| {
        format!(
            r#"{{ "Routes": {{ "r": {{ "ClusterId": "c", "Match": {{ "Path": "/{{**rest}}" }} }} }},
                "Clusters": {{ "c": {{ "Destinations": {{ "d": {{ "Address": "http://{address}/" }} }} }} }} }}"#
        )
    };
    // Their different routes show which of them is used.
    let one = ControlPlane::start(&to(first.addr())).await;
    let two = ControlPlane::start(&to(second.addr())).await;
    let (mut process, proxy, admin) =
        gateway(&from_xds(&[one.address, two.address], "Delta")).await;
    let get = async |address, path: &str| {
        let mut client = Connection::http1(address).await.expect("it listens");
        client.get(path).await.expect("it answers").text()
    };
    let (asked, of_asked, other, of_other) = match &*get(proxy, "/").await {
        "first" => (one, &first, two, &second),
        _ => (two, &second, one, &first),
    };
    assert_eq!(get(proxy, "/").await, of_asked.name());
    let changed = Origin::named("changed");
    asked.publish(&to(changed.addr()));
    eventually("what changes is served", async || {
        get(proxy, "/").await == "changed"
    })
    .await;

    drop(asked);
    eventually("the other replica is asked", async || {
        get(proxy, "/").await == of_other.name()
    })
    .await;
    drop(other);
    eventually("the source is failing", async || {
        get(admin, "/api/v1/providers").await.contains("failing")
    })
    .await;
    assert_eq!(get(proxy, "/").await, of_other.name());
    process.interrupt();
    assert!(process.wait().await.success());
}

/// A kept configuration may be older than the one of the running instance.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_hears_from_nobody_takes_over_only_when_it_has_to() {
    let (first, second) = (Origin::named("first"), Origin::named("second"));
    let plane = ControlPlane::start(&routes(first.addr(), second.addr())).await;
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let [place, kept] = ["handover.sock", "xds.json"].map(|name| folder.path().join(name));
    let [proxy, admin] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], peers::free_port())));
    let config = |server: SocketAddr| {
        ConfigFile::new(
            &json!({
                "Listeners": { "web": { "Address": proxy } },
                "Admin": { "Address": admin },
                "Server": { "Handover": place },
                "XdsDiscovery": { "Servers": [format!("http://{server}")], "Persist": kept },
            })
            .to_string(),
        )
    };
    let good = config(plane.address);
    let good = ["run", "--config", &good.argument()].map(str::to_owned);
    let arguments = good.each_ref().map(String::as_str);
    let mut running = start(&arguments, "a second Ctrl-C").await;
    eventually("what it serves is kept", async || kept.exists()).await;

    // The new version has a mistake in its file: its control plane does not exist.
    let nobody = config(SocketAddr::from(([127, 0, 0, 1], peers::free_port())));
    let arguments = ["run", "--config", &nobody.argument()];
    let mut broken = start(&arguments, "serving the configuration stored on disk").await;
    broken.wait_for_output("the control plane is lost").await;
    assert!(!broken.output().contains("a second Ctrl-C"));
    assert!(!running.output().contains("a successor serves"));
    let answers = async || Connection::http1(proxy).await.ok()?.get("/").await.ok();
    assert!(answers().await.is_some());

    // Without the running instance, the kept configuration is better than none.
    running.kill().await;
    broken.wait_for_output("a second Ctrl-C").await;
    assert!(answers().await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_what_a_control_plane_wants() {
    let origin = Origin::named("a");
    let plane = ControlPlane::start(&routes(origin.addr(), origin.addr())).await;
    let section = from_xds(&[plane.address], "Delta");
    let file = ConfigFile::new(&format!("{{ {section} }}"));
    let arguments = ["discover", "--config", &file.argument(), "--format", "json"];
    let found = output(&arguments).await.expect_success();
    let found: Value = serde_json::from_str(&found.stdout).expect("it is JSON");
    let provider = &found["providers"][1];
    assert_eq!(provider["name"], "xds");
    assert_eq!(
        provider["ReverseProxy"]["Routes"]["item"]["Match"]["Path"],
        "/items/{id}/{**rest}"
    );
}

#[tokio::test]
async fn check_says_what_is_wrong_with_the_section() {
    let file = ConfigFile::new(
        r#"{ "XdsDiscovery": { "Servers": ["xds.test:1701"], "Settle": "0s", "Mode": "Detla" } }"#,
    );
    let found = output(&["check", "--config", &file.argument()]).await;
    let text = found.stdout + &found.stderr;
    for pointer in [
        "/XdsDiscovery/Servers",
        "/XdsDiscovery/Settle",
        "/XdsDiscovery/Mode",
    ] {
        assert!(text.contains(pointer), "{pointer} is not in:\n{text}");
    }
    assert!(!found.status.success());
}
