//! Tests of the destinations of requests.

use proptest::prelude::*;
use proxy_model::RequestHead;
use proxy_model::compiled::RouteTarget;
use proxy_model::matching::Lookup;

use super::*;

/// A request as routes see it.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) host: &'static str,
    pub(super) header: Option<(&'static str, String)>,
}

pub(super) fn get(path: &str) -> Request {
    Request {
        method: "GET",
        path: path.to_owned(),
        host: "any.example",
        ..Request::default()
    }
}

impl Request {
    pub(super) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(super) fn query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    pub(super) fn host(mut self, host: &'static str) -> Self {
        self.host = host;
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }
}

impl RequestHead for Request {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn authority(&self) -> &str {
        self.host
    }

    fn is_https(&self) -> bool {
        false
    }

    fn for_each_header(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> bool) {
        if let Some((own, value)) = &self.header
            && own.eq_ignore_ascii_case(name)
        {
            each(value.as_bytes());
        }
    }
}

/// Decides where requests go.
pub(super) struct Routing(Snapshot);

impl Routing {
    #[track_caller]
    pub(super) fn of(config: &ProxyConfig) -> Self {
        let compiled = Snapshot::compile(Arc::new(config.clone()), &CompileOptions::default());
        Self(compiled.unwrap_or_else(|problems| panic!("{problems}")).0)
    }

    /// The cluster that a request goes to, or what becomes of it instead.
    pub(super) fn cluster(&self, request: &Request) -> String {
        let index = match self.0.find(request) {
            Lookup::Matched(index) => index,
            Lookup::MethodNotAllowed(_) => return "405".to_owned(),
            Lookup::NotFound => return "404".to_owned(),
        };
        match self.0.route_at(index).target() {
            RouteTarget::Cluster(index) => self.0.cluster_at(*index).id().to_string(),
            RouteTarget::Partitioned(partitions) => match partitions.find(request) {
                Ok(target) => target.id().to_string(),
                Err(_) => "400".to_owned(),
            },
            other => panic!("{other:?}"),
        }
    }

    /// The route that takes a request, or what becomes of it without one.
    pub(super) fn outcome(&self, request: &Request) -> String {
        match self.0.find(request) {
            Lookup::Matched(index) => self.0.route_at(index).id().to_string(),
            Lookup::MethodNotAllowed(methods) => methods.to_string(),
            Lookup::NotFound => "404".to_owned(),
        }
    }
}

fn keyed(partitions: Vec<PartitionDescription>) -> ProxyConfig {
    let pairs = [
        ("YARP.Routes.r.Path", "/{**rest}"),
        ("YARP.Backend.ServiceFabric.PartitionMode", "Key"),
        ("YARP.Backend.ServiceFabric.PartitionKey.Header", "X-Tenant"),
    ];
    let described = service(ServiceKind::Stateful, &pairs, partitions);
    good(&YarpLabels::default(), &described)
}

proptest! {
    /// Each key goes to the partition that has it, independent of the division and of the order of
    /// partitions.
    #[test]
    fn every_key_goes_to_exactly_one_partition(
        mut cuts in prop::collection::btree_set(any::<i64>(), 0..20).prop_map(Vec::from_iter),
        keys in prop::collection::vec(any::<i64>(), 1..20),
        turn in 0_usize..20,
    ) {
        cuts.retain(|&cut| cut != i64::MIN);
        let lows: Vec<i64> = [i64::MIN].into_iter().chain(cuts.iter().copied()).collect();
        let highs: Vec<i64> = cuts.iter().map(|cut| cut - 1).chain([i64::MAX]).collect();
        let ranges: Vec<(i64, i64)> = lows.into_iter().zip(highs).collect();
        let mut partitions: Vec<_> = ranges
            .iter()
            .enumerate()
            .map(|(i, &(low, high))| range(&format!("p{i}"), low, high, vec![]))
            .collect();
        let turn = turn % partitions.len();
        partitions.rotate_left(turn);
        let routing = Routing::of(&keyed(partitions));
        let edges = ranges.iter().flat_map(|&(low, high)| [low, high]);
        for key in keys.into_iter().chain(edges) {
            let owners: Vec<usize> = (0..ranges.len())
                .filter(|&i| (ranges[i].0..=ranges[i].1).contains(&key))
                .collect();
            prop_assert_eq!(owners.len(), 1);
            let found = routing.cluster(&get("/a").header("x-tenant", key.to_string()));
            prop_assert_eq!(found, format!("fabric:/App/Web/p{}", owners[0]));
        }
    }

    /// Names are keys that are compared exactly.
    #[test]
    fn every_name_goes_to_its_partition(names in prop::collection::btree_set("[A-Za-z0-9 _-]{1,8}", 1..12)) {
        let names: Vec<String> = names.into_iter().filter(|name| name.trim() == name).collect();
        prop_assume!(!names.is_empty());
        let partitions = names
            .iter()
            .enumerate()
            .map(|(i, name)| named(&format!("p{i}"), name, vec![]))
            .collect();
        let routing = Routing::of(&keyed(partitions));
        for (i, name) in names.iter().enumerate() {
            let found = routing.cluster(&get("/a").header("x-tenant", name.as_str()));
            prop_assert_eq!(found, format!("fabric:/App/Web/p{i}"));
        }
        prop_assert_eq!(routing.cluster(&get("/a").header("x-tenant", "nobody's")), "400");
        prop_assert_eq!(routing.cluster(&get("/a")), "400");
    }
}
