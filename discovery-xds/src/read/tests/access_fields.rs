//! Tests of the table of fields: each field of Envoy's API has a row, and does what its row says.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, Value};
use xds_types::pb::envoy::config::core::v3::http_protocol_options::HeadersWithUnderscoresAction;
use xds_types::pb::envoy::config::listener::v3::{FilterChain, FilterChainMatch, Listener};
use xds_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, VirtualHost, route,
};
use xds_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::PathWithEscapedSlashesAction;
use xds_types::pb::google::protobuf::BoolValue;

use super::super::access::{self, Place, Rule, Treatment, rules};
use super::super::{DIFFERS, read_listener, read_routes};
use super::access::{all, any, chain, http_filter, is_closed, listener, manager, packed};
use super::foreign::{host, to};

/// The messages whose fields have rows.
const MESSAGES: [(Place, &str); 8] = [
    (Place::Listener, "envoy.config.listener.v3.Listener"),
    (Place::FilterChain, "envoy.config.listener.v3.FilterChain"),
    (
        Place::FilterChainMatch,
        "envoy.config.listener.v3.FilterChainMatch",
    ),
    (
        Place::Manager,
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    ),
    (
        Place::RouteConfiguration,
        "envoy.config.route.v3.RouteConfiguration",
    ),
    (Place::VirtualHost, "envoy.config.route.v3.VirtualHost"),
    (Place::Route, "envoy.config.route.v3.Route"),
    (Place::RouteAction, "envoy.config.route.v3.RouteAction"),
];

/// The names of the fields of a place in the generated types, where a new one does not compile before it is named.
fn generated(place: Place) -> Vec<&'static str> {
    let fields = match place {
        Place::Listener => access::listener(&Listener::default()),
        Place::FilterChain => access::filter_chain(&FilterChain::default()),
        Place::FilterChainMatch => access::filter_chain_match(&FilterChainMatch::default()),
        Place::Manager => access::manager(&HttpConnectionManager::default()),
        Place::RouteConfiguration => access::route_configuration(&RouteConfiguration::default()),
        Place::VirtualHost => access::virtual_host(&VirtualHost::default()),
        Place::Route => access::route(&Route::default()),
        Place::RouteAction => access::route_action(&RouteAction::default()),
        _ => Vec::new(),
    };
    fields.into_iter().map(|(name, _)| name).collect()
}

/// Rows whose types are fields of this place, with each field.
fn rows(place: Place) -> impl Iterator<Item = (&'static Rule, &'static str)> {
    let rows = rules().filter(move |rule| rule.place == place);
    rows.flat_map(|rule| rule.types.iter().map(move |field| (rule, *field)))
}

#[test]
fn each_field_has_one_row() {
    for (place, _) in MESSAGES {
        let mut fields = generated(place);
        let mut named: Vec<_> = rows(place).map(|(_, field)| field).collect();
        fields.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, fields, "{place:?}");
    }
}

/// A field that restricts access must not lose its row, or change it, unnoticed.
#[test]
fn these_fields_close() {
    for (place, fields) in [
        (
            Place::Listener,
            &["fcds_config", "filter_chain_matcher", "listener_specifier"][..],
        ),
        (Place::FilterChain, &[]),
        (
            Place::FilterChainMatch,
            &[
                "address_suffix",
                "destination_port",
                "direct_source_prefix_ranges",
                "prefix_ranges",
                "source_ports",
                "source_prefix_ranges",
                "source_type",
                "suffix_len",
            ],
        ),
        (Place::Manager, &["early_header_mutation_extensions"]),
        (
            Place::RouteConfiguration,
            &[
                "most_specific_header_mutations_wins",
                "route_specifiers",
                "vhds",
                "vhost_header",
            ],
        ),
        (
            Place::VirtualHost,
            &["matcher", "require_tls", "route_specifiers"],
        ),
        (Place::Route, &["route_specifiers"]),
        (
            Place::RouteAction,
            &[
                "metadata_match",
                "path_rewrite",
                "path_rewrite_policy",
                "regex_rewrite",
            ],
        ),
    ] {
        let closing = rows(place).filter(|(rule, _)| rule.treatment == Treatment::Closes);
        let mut closing: Vec<_> = closing.map(|(_, field)| field).collect();
        closing.sort_unstable();
        assert_eq!(closing, fields, "{place:?}");
    }
}

/// An unsupported field that closes nothing needs a reason.
#[test]
fn each_row_that_leaves_routes_open_has_a_reason() {
    for rule in rules() {
        let is_open = matches!(rule.treatment, Treatment::Harmless | Treatment::Reported);
        assert_eq!(is_open, !rule.reason.is_empty(), "{rule:?}");
    }
}

/// Envoy's API as data, unless this is a package of this crate alone.
fn descriptors() -> Option<DescriptorPool> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../xds-control-plane/descriptors/envoy.binpb"
    );
    let bytes = std::fs::read(path).ok()?;
    Some(DescriptorPool::decode(bytes.as_slice()).expect("it is generated"))
}

/// The name of a field, or of the choice that it is one of.
fn name(field: &FieldDescriptor) -> String {
    let choice = field.containing_oneof();
    let choice = choice.filter(|choice| choice.fields().len() > 1 || !choice.is_synthetic());
    choice.map_or_else(
        || field.name().to_owned(),
        |choice| choice.name().to_owned(),
    )
}

/// A value that is not the default.
fn value(field: &FieldDescriptor) -> Value {
    let one = match field.kind() {
        Kind::Bool => Value::Bool(true),
        Kind::String => Value::String("x".to_owned()),
        Kind::Bytes => Value::Bytes(vec![1].into()),
        Kind::Enum(_) => Value::EnumNumber(1),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(1),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(1),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(1),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(1),
        Kind::Float => Value::F32(1.0),
        Kind::Double => Value::F64(1.0),
        Kind::Message(message) => Value::Message(DynamicMessage::new(message)),
    };
    match field {
        field if field.is_map() => {
            let Kind::Message(entry) = field.kind() else {
                unreachable!("entries of maps are messages")
            };
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            let key = self::value(&key).as_str().expect("names").to_owned();
            Value::Map([(prost_reflect::MapKey::String(key), self::value(&value))].into())
        }
        field if field.is_list() => Value::List(vec![one]),
        _ => one,
    }
}

/// `base` with a field set.
fn with<M: Message + Default>(base: &M, field: &FieldDescriptor) -> M {
    let mut message = DynamicMessage::new(field.parent_message().clone());
    message.set_field(field, value(field));
    let mut bytes = base.encode_to_vec();
    bytes.extend(message.encode_to_vec());
    M::decode(bytes.as_slice()).expect("both are messages of this type")
}

/// A listener with a field of this place.
fn with_field(place: Place, field: &FieldDescriptor) -> Option<Listener> {
    Some(match place {
        Place::Listener => with(&listener(vec![chain("main")]), field),
        Place::FilterChain => listener(vec![with(&chain("main"), field)]),
        Place::FilterChainMatch => listener(vec![FilterChain {
            filter_chain_match: Some(with(&FilterChainMatch::default(), field)),
            ..chain("main")
        }]),
        Place::Manager => listener(vec![FilterChain {
            filters: vec![packed(&with(&manager("main", Vec::new()), field))],
            ..FilterChain::default()
        }]),
        _ => return None,
    })
}

/// A route configuration with a field of this place.
fn routes_with_field(place: Place, field: &FieldDescriptor) -> RouteConfiguration {
    let mut routes = all(host(
        &["a"],
        vec![to("c", PathSpecifier::Prefix("/".into()))],
    ));
    let virtual_host = &mut routes.virtual_hosts[0];
    let route = &mut virtual_host.routes[0];
    match place {
        Place::VirtualHost => *virtual_host = with(virtual_host, field),
        Place::Route => *route = with(route, field),
        Place::RouteAction => {
            let Some(route::Action::Route(action)) = &mut route.action else {
                unreachable!("it leads to a cluster")
            };
            *action = with(action, field);
        }
        _ => return with(&routes, field),
    }
    routes
}

#[test]
fn each_field_is_treated_as_its_row_says() {
    let Some(pool) = descriptors() else { return };
    let mut tried = 0;
    for (place, message) in MESSAGES {
        let message = pool.get_message_by_name(message).expect("it is described");
        for field in message.fields() {
            let name = name(&field);
            let row = rows(place).find(|(_, named)| *named == name);
            let (rule, _) = row.unwrap_or_else(|| panic!("{place:?}: {name} has no row"));
            // Those are read, and have tests of their own.
            if rule.treatment == Treatment::Honoured || name == "bind_to_port" {
                continue;
            }
            tried += 1;
            let case = format!("{place:?}: {}", field.name());
            let (closes, problems) = match with_field(place, &field) {
                Some(listener) => {
                    let (_, problems) = read_listener(&listener).expect(&case);
                    (is_closed(&listener), problems)
                }
                None => {
                    let routes = routes_with_field(place, &field);
                    match read_routes(&routes) {
                        Ok((read, problems)) => {
                            let mut open = read.routes.values();
                            (open.all(|route| route.cluster_id.is_none()), problems)
                        }
                        Err(problems) => (true, problems),
                    }
                }
            };
            assert_eq!(
                closes,
                rule.treatment == Treatment::Closes,
                "{case}: {problems}"
            );
            let is_told = problems.iter().any(|problem| {
                problem.code == DIFFERS && problem.pointer.ends_with(&format!("/{name}"))
            });
            assert_eq!(
                is_told,
                rule.treatment == Treatment::Reported,
                "{case}: {problems}"
            );
        }
    }
    assert!(tried > 120, "{tried}");
}

/// No client can connect to such a listener.
#[test]
fn a_listener_that_is_not_bound_closes() {
    for (bound, expected) in [(None, false), (Some(true), false), (Some(false), true)] {
        let listener = Listener {
            bind_to_port: bound.map(|value| BoolValue { value }),
            ..listener(vec![chain("main")])
        };
        assert_eq!(is_closed(&listener), expected, "{bound:?}");
    }
}

/// The filter stands in many listeners without a setting, for those of routes.
#[test]
fn faults_that_reject_requests_close_and_delays_do_not() {
    const FAULT: &str = "envoy.extensions.filters.http.fault.v3.HTTPFault";
    // `delay` is the first field, `abort` the second.
    let (delay, abort) = (vec![0x0a, 0], vec![0x12, 0]);
    for (value, closes) in [
        (vec![], false),
        (delay.clone(), false),
        (abort.clone(), true),
        ([delay, abort].concat(), true),
        (vec![0xff], true),
    ] {
        let mut config = any(FAULT);
        config.value.clone_from(&value);
        let typed = || {
            use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_filter::ConfigType;
            Some(ConfigType::TypedConfig(config.clone()))
        };
        for (is_optional, disabled) in [(false, false), (true, false), (false, true)] {
            let mut filter = http_filter(FAULT);
            filter.config_type = typed();
            filter.is_optional = is_optional;
            filter.disabled = disabled;
            let listener = listener(vec![FilterChain {
                filters: vec![packed(&manager("main", vec![filter]))],
                ..FilterChain::default()
            }]);
            assert_eq!(is_closed(&listener), closes && !disabled, "{value:?}");
        }
        let mut routes = all(host(
            &["a"],
            vec![to("c", PathSpecifier::Prefix("/".into()))],
        ));
        let said = [("f".to_owned(), config.clone())].into();
        routes.virtual_hosts[0].routes[0].typed_per_filter_config = said;
        let (read, _) = read_routes(&routes).unwrap();
        let is_closed = read.routes.values().all(|route| route.cluster_id.is_none());
        assert_eq!(is_closed, closes, "{value:?}");
    }
}

/// A path that Envoy would decode, merge or reject before it chooses a route must not reach a route for other paths.
#[test]
fn paths_that_are_read_in_one_way_make_routes_strict() {
    use PathWithEscapedSlashesAction as Action;
    for (action, merges, expected) in [
        (Action::ImplementationSpecificDefault, false, false),
        (Action::KeepUnchanged, false, false),
        (Action::KeepUnchanged, true, true),
        (Action::RejectRequest, false, true),
        (Action::UnescapeAndRedirect, false, true),
        (Action::UnescapeAndForward, false, true),
    ] {
        let mut reading = manager("main", Vec::new());
        reading.path_with_escaped_slashes_action = action.into();
        reading.merge_slashes = merges;
        let listener = listener(vec![FilterChain {
            filters: vec![packed(&reading)],
            ..FilterChain::default()
        }]);
        assert!(!is_closed(&listener));
        let (read, problems) = read_listener(&listener).unwrap();
        assert_eq!(read.has_strict_paths, expected, "{action:?} {merges}");
        assert_eq!(
            problems.iter().any(|problem| problem.code == DIFFERS),
            expected
        );
    }
    let mut routes = all(host(
        &["a"],
        vec![to("c", PathSpecifier::Prefix("/".into()))],
    ));
    for expected in [false, true] {
        routes.ignore_path_parameters_in_path_matching = expected;
        let (read, _) = read_routes(&routes).unwrap();
        let mut strict = read
            .routes
            .values()
            .map(|route| route.strict_paths == Some(true));
        assert!(strict.all(|strict| strict == expected));
    }
}

#[test]
fn headers_with_underscores_that_envoy_would_reject_are_reported() {
    let mut reading = manager("main", Vec::new());
    let options = reading.common_http_protocol_options.get_or_insert_default();
    options.headers_with_underscores_action = HeadersWithUnderscoresAction::RejectRequest.into();
    let listener = listener(vec![FilterChain {
        filters: vec![packed(&reading)],
        ..FilterChain::default()
    }]);
    let (_, problems) = read_listener(&listener).unwrap();
    let told = problems.iter().any(|problem| {
        problem.code == DIFFERS && problem.pointer.ends_with("headers_with_underscores_action")
    });
    assert!(told, "{problems}");
}
