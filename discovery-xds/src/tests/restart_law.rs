//! The law of restarts: whatever was sent, a restart serves the routes that were served before.

use std::time::Duration;

use discovery_core::{DiscoveredService, ServiceContent};
use prost::Message;
use proptest::prelude::*;
use proxy_model::config::ProxyConfig;
use tokio::time::Instant;
use xds_types::ResourceType;
use xds_types::pb::envoy::config::route::v3::{RouteConfiguration, VirtualHost};
use xds_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier;
use xds_types::pb::google::protobuf::Any;

use super::restart::host;
use super::script::listener_with;
use crate::XdsOptions;
use crate::store::Store;
use crate::table::{Sent, Update};

/// A form of a virtual host.
#[derive(Clone, Copy, Debug)]
enum Form {
    Absent,
    /// To this path.
    Good(u8),
    /// A route with an unsupported condition.
    Condition(u8),
    /// A route with an unsupported action.
    Action(u8),
    /// Closed by an unknown filter.
    Closed(u8),
}

fn any_form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Absent),
        (0..3_u8).prop_map(Form::Good),
        (0..3_u8).prop_map(Form::Condition),
        (0..3_u8).prop_map(Form::Action),
        (0..3_u8).prop_map(Form::Closed),
    ]
}

/// A filter for clients that is unknown.
fn unknown_filter() -> (String, Any) {
    let config = Any {
        type_url: "type.googleapis.com/example.Unknown".to_owned(),
        ..Any::default()
    };
    ("example.unknown".to_owned(), config)
}

fn host_of(name: &str, form: Form) -> Option<VirtualHost> {
    let path = |path: u8| format!("/{path}");
    Some(match form {
        Form::Absent => return None,
        Form::Good(of) => host(name, &path(of), false),
        Form::Condition(of) => host(name, &path(of), true),
        Form::Action(of) => {
            let mut host = host(name, &path(of), false);
            host.routes[0].action = None;
            host
        }
        Form::Closed(of) => {
            let mut host = host(name, &path(of), false);
            host.typed_per_filter_config = [unknown_filter()].into();
            host
        }
    })
}

/// The state of a whole configuration.
#[derive(Clone, Copy, Debug)]
struct Whole {
    a: Form,
    b: Form,
    /// Closed by an unknown filter.
    is_closed: bool,
    /// True if a field of it is unsupported as a whole.
    is_unsupported: bool,
}

fn any_whole() -> impl Strategy<Value = Whole> {
    let rarely = || prop::bool::weighted(0.2);
    (any_form(), any_form(), rarely(), rarely()).prop_map(|(a, b, is_closed, is_unsupported)| {
        Whole {
            a,
            b,
            is_closed,
            is_unsupported,
        }
    })
}

impl Whole {
    fn routes(self) -> RouteConfiguration {
        let hosts = [host_of("a", self.a), host_of("b", self.b)];
        let vhost_header = if self.is_unsupported { "x-host" } else { "" };
        let mut routes = RouteConfiguration {
            name: "main".to_owned(),
            virtual_hosts: hosts.into_iter().flatten().collect(),
            vhost_header: vhost_header.to_owned(),
            ..RouteConfiguration::default()
        };
        if self.is_closed {
            routes.typed_per_filter_config = [unknown_filter()].into();
        }
        routes
    }

    /// Returns the update with this configuration, in a listener or alone.
    fn update(self, is_inline: bool) -> (ResourceType, Update) {
        let routes = self.routes();
        let (kind, content) = match is_inline {
            true => {
                let (kind, _, content) = listener_with("http", RouteSpecifier::RouteConfig(routes));
                (kind, content)
            }
            false => {
                let kind = ResourceType::Route;
                let value = routes.encode_to_vec();
                let type_url = kind.type_url().to_owned();
                (kind, Any { type_url, value })
            }
        };
        let sent = Sent {
            name: None,
            version: "1".to_owned(),
            content,
        };
        let update = Update {
            resources: vec![sent],
            ..Update::default()
        };
        (kind, update)
    }
}

fn config_of(service: &DiscoveredService) -> ProxyConfig {
    match &service.content {
        ServiceContent::Config(config) => (**config).clone(),
        other => panic!("{other:?}"),
    }
}

/// The routes that a store serves, and true if a part of them is an earlier form.
fn served(store: &mut Store) -> (ProxyConfig, bool) {
    let discovery = store.discovery();
    let config = discovery.services.iter().map(config_of);
    let config = config.fold(ProxyConfig::default(), |mut all, one| {
        all.routes.extend(one.routes);
        all
    });
    let is_partial = discovery
        .services
        .iter()
        .any(|service| !service.rejected.is_empty());
    (config, is_partial)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_restart_serves_what_was_served(
        forms in prop::collection::vec(any_whole(), 1..5),
        is_inline in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let options = XdsOptions::default().with_persist(Some("kept".into()));
            let mut store = Store::new(&options);
            for form in &forms {
                let (kind, update) = form.update(is_inline);
                store.apply(kind, update, Instant::now());
            }
            let (before, _) = served(&mut store);
            let memo = store.discovery().memo.expect("there is one");

            let mut again = Store::new(&options);
            again.restore(&memo);
            prop_assert_eq!(&served(&mut again).0, &before, "before the control plane answers");
            prop_assert!(again.waits_until(Duration::ZERO).is_some());
            // The control plane says the same as before the restart.
            let (kind, update) = forms.last().unwrap().update(is_inline);
            let applied = again.apply(kind, update, Instant::now());
            let (after, is_partial) = served(&mut again);
            prop_assert_eq!(&after, &before, "after it has answered");
            // A listener of which nothing serves is no service.
            if !again.discovery().services.is_empty() {
                prop_assert_eq!(is_partial, applied.rejection.is_some());
            }
            Ok(())
        })?;
    }
}
