//! Tests of access restrictions.

use prost::Message;
use proxy_model::config::RouteConfig;
use xds_types::pb::envoy::config::core::v3::{
    CidrRange, ExtensionConfigSource, TransportSocket, TypedExtensionConfig, transport_socket,
};
use xds_types::pb::envoy::config::listener::v3::{
    Filter, FilterChain, FilterChainMatch, Listener, ListenerFilter, filter, listener_filter,
};
use xds_types::pb::envoy::config::route::v3::route_match::{PathSpecifier, TlsContextMatchOptions};
use xds_types::pb::envoy::config::route::v3::{
    FilterConfig, HeaderMatcher, Route, RouteConfiguration, VirtualHost,
};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::{RouteSpecifier, UpgradeConfig};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_filter,
};
use xds_types::pb::envoy::extensions::transport_sockets::tls::v3::DownstreamTlsContext;
use xds_types::pb::google::protobuf::{Any, BoolValue};

use super::super::access::{Place, Treatment, rules};
use super::super::{RouteSource, read_listener, read_routes, read_routes_after};
use super::foreign::{host, to};

pub(super) fn any(name: &str) -> Any {
    Any {
        type_url: format!("type.googleapis.com/{name}"),
        value: Vec::new(),
    }
}

pub(super) fn http_filter(name: &str) -> HttpFilter {
    HttpFilter {
        name: name.to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(any(name))),
        ..HttpFilter::default()
    }
}

fn filter(config: Any) -> Filter {
    Filter {
        name: config.type_url.clone(),
        config_type: Some(filter::ConfigType::TypedConfig(config)),
    }
}

pub(super) fn manager(routes: &str, filters: Vec<HttpFilter>) -> HttpConnectionManager {
    HttpConnectionManager {
        http_filters: filters,
        route_specifier: Some(RouteSpecifier::Rds(Rds {
            route_config_name: routes.to_owned(),
            ..Rds::default()
        })),
        ..HttpConnectionManager::default()
    }
}

pub(super) fn packed(manager: &HttpConnectionManager) -> Filter {
    let mut config =
        any("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager");
    config.value = manager.encode_to_vec();
    filter(config)
}

pub(super) fn chain(routes: &str) -> FilterChain {
    FilterChain {
        filters: vec![packed(&manager(routes, Vec::new()))],
        ..FilterChain::default()
    }
}

pub(super) fn listener(chains: Vec<FilterChain>) -> Listener {
    Listener {
        name: "http".to_owned(),
        filter_chains: chains,
        ..Listener::default()
    }
}

/// Returns the names of the open routes and of the closed ones, and true if the listener is partly
/// rejected.
fn doors(listener: &Listener) -> (Vec<String>, Vec<String>, bool) {
    let (read, problems) = read_listener(listener).unwrap();
    let names = |sources: Vec<RouteSource>| {
        let name = |source| match source {
            RouteSource::Named(name) => name,
            RouteSource::Inline(routes) => routes.name,
        };
        sources.into_iter().map(name).collect::<Vec<_>>()
    };
    let is_rejected = problems.has_errors();
    (names(read.routes), names(read.closed), is_rejected)
}

pub(super) fn is_closed(listener: &Listener) -> bool {
    let (open, closed, is_rejected) = doors(listener);
    assert_eq!(closed.is_empty(), !is_rejected);
    match is_rejected {
        true => assert_eq!((open, closed), (vec![], vec!["main".to_owned()])),
        false => assert_eq!((open, closed), (vec!["main".to_owned()], vec![])),
    }
    is_rejected
}

/// A listener with an extension of this type before its routes.
fn with_extension(place: Place, name: &str) -> Option<Listener> {
    let mut guarded = chain("main");
    let mut filters = Vec::new();
    match place {
        Place::NetworkFilter => guarded.filters.insert(0, filter(any(name))),
        Place::HttpFilter => {
            let router = http_filter("envoy.extensions.filters.http.router.v3.Router");
            guarded.filters = vec![packed(&manager("main", vec![http_filter(name), router]))];
        }
        Place::OriginalIpDetection => {
            let mut detecting = manager("main", Vec::new());
            let detection = TypedExtensionConfig {
                name: name.to_owned(),
                typed_config: Some(any(name)),
            };
            detecting.original_ip_detection_extensions.push(detection);
            guarded.filters = vec![packed(&detecting)];
        }
        Place::TransportSocket => {
            guarded.transport_socket = Some(TransportSocket {
                name: name.to_owned(),
                config_type: Some(transport_socket::ConfigType::TypedConfig(any(name))),
            });
        }
        Place::ListenerFilter => filters.push(ListenerFilter {
            name: name.to_owned(),
            config_type: Some(listener_filter::ConfigType::TypedConfig(any(name))),
            ..ListenerFilter::default()
        }),
        _ => return None,
    }
    Some(Listener {
        listener_filters: filters,
        ..listener(vec![guarded])
    })
}

#[test]
fn each_filter_is_treated_as_the_table_says() {
    let manager =
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let mut tried = 0;
    for rule in rules() {
        for name in rule.types.iter().filter(|name| **name != manager) {
            if let Some(listener) = with_extension(rule.place, name) {
                tried += 1;
                let closes = rule.treatment == Treatment::Closes;
                assert_eq!(is_closed(&listener), closes, "{rule:?}");
            }
        }
    }
    assert!(tried > 30, "{tried}");
    for place in [
        Place::NetworkFilter,
        Place::HttpFilter,
        Place::TransportSocket,
        Place::ListenerFilter,
        Place::OriginalIpDetection,
    ] {
        let unknown = with_extension(place, "example.not.known.Filter").unwrap();
        assert!(is_closed(&unknown), "{place:?}");
    }
}

/// A name is only a name.
#[test]
fn a_filter_is_told_by_its_type() {
    let mut lua = http_filter("envoy.extensions.filters.http.lua.v3.Lua");
    lua.name = "envoy.filters.http.router".to_owned();
    let closed = |filter: HttpFilter| {
        is_closed(&listener(vec![FilterChain {
            filters: vec![packed(&manager("main", vec![filter]))],
            ..FilterChain::default()
        }]))
    };
    assert!(closed(lua.clone()));
    lua.config_type = None;
    assert!(!closed(lua.clone()));
    lua.name = "envoy.filters.http.lua".to_owned();
    assert!(closed(lua));
}

#[test]
fn optional_filters_may_be_unknown_and_disabled_ones_do_nothing() {
    let closed = |filter: HttpFilter| {
        is_closed(&listener(vec![FilterChain {
            filters: vec![packed(&manager("main", vec![filter]))],
            ..FilterChain::default()
        }]))
    };
    for (name, is_optional, is_disabled, expected) in [
        ("example.Unknown", true, false, false),
        ("example.Unknown", false, true, false),
        ("example.Unknown", false, false, true),
        // Envoy supports it, and it restricts senders.
        (
            "envoy.extensions.filters.http.rbac.v3.RBAC",
            true,
            false,
            true,
        ),
        (
            "envoy.extensions.filters.http.rbac.v3.RBAC",
            false,
            true,
            false,
        ),
    ] {
        let filter = HttpFilter {
            is_optional,
            disabled: is_disabled,
            ..http_filter(name)
        };
        assert_eq!(
            closed(filter),
            expected,
            "{name} {is_optional} {is_disabled}"
        );
    }
    // Only its configuration tells which filter it is: one of elsewhere, none, and one in another may be RBAC's.
    let rbac = http_filter("envoy.extensions.filters.http.rbac.v3.RBAC");
    for config_type in [
        Some(http_filter::ConfigType::ConfigDiscovery(
            ExtensionConfigSource::default(),
        )),
        None,
        Some(http_filter::ConfigType::TypedConfig(Any::default())),
        Some(http_filter::ConfigType::TypedConfig(any(
            "xds.type.v3.TypedStruct",
        ))),
        Some(http_filter::ConfigType::TypedConfig(any(
            "envoy.extensions.common.matching.v3.ExtensionWithMatcher",
        ))),
        Some(http_filter::ConfigType::TypedConfig(Any {
            type_url: "example/envoy.extensions.filters.http.rbac.v3.RBAC".to_owned(),
            value: Vec::new(),
        })),
    ] {
        let filter = HttpFilter {
            is_optional: true,
            config_type,
            ..rbac.clone()
        };
        assert!(closed(filter.clone()), "{filter:?}");
        let disabled = HttpFilter {
            disabled: true,
            ..filter
        };
        assert!(!closed(disabled.clone()), "{disabled:?}");
    }
    // Those of upgrades stand before requests, too.
    let mut upgrades = manager("main", Vec::new());
    upgrades.upgrade_configs.push(UpgradeConfig {
        upgrade_type: "websocket".to_owned(),
        filters: vec![http_filter("example.Unknown")],
        ..UpgradeConfig::default()
    });
    assert!(is_closed(&listener(vec![FilterChain {
        filters: vec![packed(&upgrades)],
        ..FilterChain::default()
    }])));
}

#[test]
fn certificates_of_clients_that_are_required_close_a_chain() {
    let with_tls = |tls: &DownstreamTlsContext| {
        let mut config = any("envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext");
        config.value = tls.encode_to_vec();
        listener(vec![FilterChain {
            transport_socket: Some(TransportSocket {
                name: "tls".to_owned(),
                config_type: Some(transport_socket::ConfigType::TypedConfig(config)),
            }),
            ..chain("main")
        }])
    };
    for (required, expected) in [(None, false), (Some(false), false), (Some(true), true)] {
        let tls = DownstreamTlsContext {
            require_client_certificate: required.map(|value| BoolValue { value }),
            ..DownstreamTlsContext::default()
        };
        assert_eq!(is_closed(&with_tls(&tls)), expected, "{required:?}");
    }
}

/// A client that one chain excludes is excluded from the others by that.
#[test]
fn a_chain_for_some_clients_closes_the_listener_and_other_restrictions_their_chain() {
    let mut internal = chain("internal");
    internal.filter_chain_match = Some(FilterChainMatch {
        source_prefix_ranges: vec![CidrRange::default()],
        ..FilterChainMatch::default()
    });
    let both = listener(vec![internal, chain("public")]);
    assert_eq!(
        doors(&both),
        (vec![], vec!["internal".into(), "public".into()], true)
    );

    let mut guarded = chain("guarded");
    let rbac = filter(any("envoy.extensions.filters.network.rbac.v3.RBAC"));
    guarded.filters.insert(0, rbac.clone());
    let both = listener(vec![guarded, chain("public")]);
    assert_eq!(
        doors(&both),
        (vec!["public".into()], vec!["guarded".into()], true)
    );

    // Nothing leads anywhere here.
    let bytes = FilterChain {
        filters: vec![
            rbac,
            filter(any(
                "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
            )),
        ],
        ..FilterChain::default()
    };
    assert_eq!(doors(&listener(vec![bytes])), (vec![], vec![], false));
}

pub(super) fn all(host: VirtualHost) -> RouteConfiguration {
    RouteConfiguration {
        name: "main".to_owned(),
        virtual_hosts: vec![host],
        ..RouteConfiguration::default()
    }
}

fn route(cluster: &str) -> Route {
    to(cluster, PathSpecifier::Prefix("/".into()))
}

/// The clusters that get requests.
fn clusters(routes: &RouteConfiguration) -> (Vec<String>, bool) {
    let (read, problems) = read_routes(routes).unwrap();
    let ids = read
        .routes
        .values()
        .filter_map(|route: &RouteConfig| route.cluster_id.as_ref());
    (
        ids.map(ToString::to_string).collect(),
        problems.has_errors(),
    )
}

#[test]
fn what_is_said_to_filters_closes_the_routes_that_it_is_said_of() {
    let rbac = "envoy.extensions.filters.http.rbac.v3.RBACPerRoute";
    let cors = "envoy.extensions.filters.http.cors.v3.CorsPolicy";
    let filter_config = |config, is_optional, disabled| {
        let inner = FilterConfig {
            config,
            is_optional,
            disabled,
        };
        let mut config = any("envoy.config.route.v3.FilterConfig");
        config.value = inner.encode_to_vec();
        config
    };
    let wrapped =
        |name: &str, is_optional, disabled| filter_config(Some(any(name)), is_optional, disabled);
    let enabled = |config, is_optional| filter_config(config, is_optional, false);
    for (config, closes) in [
        (any(rbac), true),
        (any("example.Unknown"), true),
        (any(cors), false),
        (wrapped(rbac, false, false), true),
        (wrapped(rbac, true, false), true),
        (wrapped(rbac, false, true), false),
        (wrapped("example.Unknown", true, false), false),
        // Each of them enables a filter that the listener has disabled, whatever filter that is.
        (enabled(None, true), true),
        (enabled(None, false), true),
        (enabled(Some(Any::default()), true), true),
        (enabled(Some(any("google.protobuf.Empty")), true), true),
        (
            wrapped("envoy.extensions.filters.http.rbac.v3.RBAC", true, false),
            true,
        ),
        (
            wrapped("envoy.config.route.v3.FilterConfig", true, false),
            true,
        ),
        (wrapped(cors, false, false), false),
    ] {
        let said = || [("f".to_owned(), config.clone())].into();
        let mut on_route = all(host(&["a"], vec![route("first"), route("second")]));
        on_route.virtual_hosts[0].routes[0].typed_per_filter_config = said();
        let mut on_host = all(host(&["a"], vec![route("first")]));
        on_host
            .virtual_hosts
            .push(host(&["b"], vec![route("second")]));
        on_host.virtual_hosts[0].typed_per_filter_config = said();
        let mut on_all = all(host(&["a"], vec![route("first")]));
        on_all.typed_per_filter_config = said();
        let expected = |open: &[&str], closed: &[&str]| match closes {
            true => (closed.iter().map(|s| (*s).to_owned()).collect(), true),
            false => (open.iter().map(|s| (*s).to_owned()).collect(), false),
        };
        let both = &["first", "second"];
        assert_eq!(
            clusters(&on_route),
            expected(both, &["second"]),
            "{config:?}"
        );
        assert_eq!(
            clusters(&on_host),
            expected(both, &["second"]),
            "{config:?}"
        );
        assert_eq!(clusters(&on_all), expected(&["first"], &[]), "{config:?}");
    }
}

/// A configuration from before a restriction must not continue to serve.
#[test]
fn a_restriction_that_is_new_closes_what_was_open() {
    let open = all(host(&["a"], vec![route("a")]));
    let (before, _) = read_routes(&open).unwrap();
    let after = |routes: &RouteConfiguration| {
        let (read, problems) = read_routes_after(routes, Some(&before)).unwrap();
        assert!(problems.has_errors());
        read.routes
            .values()
            .filter(|route| route.cluster_id.is_some())
            .count()
    };
    let mut tls = open.clone();
    let wanted = tls.virtual_hosts[0].routes[0].r#match.as_mut().unwrap();
    wanted.tls_context = Some(TlsContextMatchOptions::default());
    assert_eq!(after(&tls), 0);

    let mut filtered = open;
    let unknown = any("example.Unknown");
    filtered.typed_per_filter_config = [("f".to_owned(), unknown)].into();
    assert_eq!(after(&filtered), 0);
    // Even if something else is wrong with all of it.
    filtered.vhost_header = "x".to_owned();
    assert_eq!(after(&filtered), 0);
}

/// Headers that mark Envoy's internal requests must not come from clients.
#[test]
fn internal_headers_are_taken_off_and_are_no_condition() {
    let mut routes = all(host(&["a"], vec![route("first"), route("second")]));
    routes.internal_only_headers = vec!["X-Internal".to_owned()];
    let wanted = routes.virtual_hosts[0].routes[0].r#match.as_mut().unwrap();
    wanted.headers.push(HeaderMatcher {
        name: "x-internal".to_owned(),
        ..HeaderMatcher::default()
    });
    assert_eq!(clusters(&routes), (vec!["second".to_owned()], true));
    let (read, _) = read_routes(&routes).unwrap();
    let transforms = read
        .routes
        .values()
        .filter(|route| route.cluster_id.is_some());
    for route in transforms {
        let first = &route.transforms.as_ref().unwrap()[0];
        assert_eq!(first.get("RequestHeaderRemove").unwrap(), "X-Internal");
    }
}
