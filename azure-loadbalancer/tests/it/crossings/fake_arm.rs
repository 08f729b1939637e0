//! A resource manager for these tests alone, written from recordings and independent of this crate's
//! emulator: documents by path, whole writes, and the few rejections that matter here.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub(super) struct FakeArm(Arc<Mutex<Store>>);

#[derive(Default)]
struct Store {
    /// The documents, by path in lower case.
    documents: BTreeMap<String, Value>,
    version: u64,
    allocated: u8,
    writes: Vec<String>,
}

type Answer = (StatusCode, Value);

fn rejection(status: u16, code: &str) -> Answer {
    let status = StatusCode::from_u16(status).unwrap();
    (status, json!({"error": {"code": code, "message": code}}))
}

fn at<'v>(value: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    let list = value["properties"].get_mut(list);
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_lowercase()
}

impl FakeArm {
    pub(super) fn insert(&self, path: &str, mut document: Value) {
        document["id"] = json!(path);
        document["name"] = json!(path.rsplit('/').next());
        document["etag"] = json!("W/\"0\"");
        let mut store = self.0.lock();
        store.documents.insert(path.to_ascii_lowercase(), document);
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().seen(&path.to_ascii_lowercase())
    }

    pub(super) fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut store = self.0.lock();
        change(store.documents.get_mut(&path.to_ascii_lowercase()).unwrap());
    }

    /// Takes the writes since the last call, each as `put` or `delete` and a path in lower case.
    pub(super) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().writes)
    }

    pub(super) fn names(&self, kind: &str) -> Vec<String> {
        let kind = format!("/{}/", kind.to_ascii_lowercase());
        let store = self.0.lock();
        let paths = store.documents.iter();
        let names = paths.filter(|(path, _)| path.contains(&kind));
        names
            .map(|(_, one)| one["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Store {
    /// The frontends that refer to a public address.
    fn users(&self, address: &str) -> Vec<Value> {
        let balancers = self
            .documents
            .iter()
            .filter(|(path, _)| path.contains("/loadbalancers/"));
        let mut users = Vec::new();
        for (path, balancer) in balancers {
            for frontend in balancer["properties"]["frontendIPConfigurations"]
                .as_array()
                .unwrap()
            {
                if text(&frontend["properties"]["publicIPAddress"]["id"]) == address {
                    let name = frontend["name"].as_str().unwrap();
                    users.push(json!({"id": format!("{path}/frontendIPConfigurations/{name}")}));
                }
            }
        }
        users
    }

    fn seen(&self, path: &str) -> Option<Value> {
        let mut document = self.documents.get(path)?.clone();
        if path.contains("/publicipaddresses/")
            && let Some(user) = self.users(path).into_iter().next()
        {
            document["properties"]["ipConfiguration"] = user;
        }
        Some(document)
    }

    fn list(&self, path: &str) -> Value {
        let (scope, kind) = path.split_once("/providers/").unwrap();
        let is_listed = |own: &&String| {
            own.starts_with(&format!("{scope}/"))
                && own
                    .rsplit_once('/')
                    .is_some_and(|(parent, _)| parent.ends_with(kind))
        };
        let paths = self.documents.keys().filter(is_listed);
        json!({"value": paths.filter_map(|path| self.seen(path)).collect::<Vec<_>>()})
    }

    fn allocate(&mut self, network: &str) -> Value {
        self.allocated += 1;
        json!(format!("{network}.{}", self.allocated))
    }

    fn put(&mut self, path: &str, id: &str, if_match: Option<&str>, mut body: Value) -> Answer {
        if let Some((balancer, pool)) = path.split_once("/backendaddresspools/") {
            return self.put_pool(balancer, pool, if_match, &body);
        }
        let old = self.documents.get(path).cloned();
        let etag = old.as_ref().and_then(|old| old["etag"].as_str());
        if if_match.is_some() && if_match != etag {
            return rejection(412, "PreconditionFailed");
        }
        self.version += 1;
        let etag = json!(format!("W/\"{}\"", self.version));
        body["id"] = json!(id);
        body["name"] = json!(id.rsplit('/').next());
        body["etag"] = etag.clone();
        body["properties"]["provisioningState"] = json!("Succeeded");
        let sku = |document: &Value| {
            document["sku"]["name"]
                .as_str()
                .unwrap_or("Basic")
                .to_owned()
        };
        if let Some(old) = &old
            && sku(old) != sku(&body)
        {
            let is_free = path.contains("/publicipaddresses/") && self.users(path).is_empty();
            let is_static = old["properties"]["publicIPAllocationMethod"] == "Static";
            if !is_free || !is_static || sku(old) == "Standard" {
                return rejection(400, "SkuCannotBeChanged");
            }
        }
        if path.contains("/publicipaddresses/") {
            // Clients do not write the reference to the user.
            let properties = body["properties"].as_object_mut().unwrap();
            properties.remove("ipConfiguration");
            let kept = old
                .as_ref()
                .map(|old| old["properties"]["ipAddress"].clone());
            body["properties"]["ipAddress"] = match kept {
                Some(address) => address,
                None => self.allocate("20.7.0"),
            };
        }
        if path.contains("/networksecuritygroups/") {
            let mut taken = std::collections::BTreeSet::new();
            for rule in at(&mut body, "securityRules") {
                let inner = &rule["properties"];
                let slot = (
                    inner["direction"].to_string(),
                    inner["priority"].to_string(),
                );
                if !taken.insert(slot) {
                    return rejection(400, "SecurityRuleConflict");
                }
            }
        }
        if path.contains("/loadbalancers/") {
            if body["properties"]["frontendIPConfigurations"]
                .as_array()
                .is_none_or(Vec::is_empty)
            {
                return rejection(400, "LoadBalancerFrontendsMissing");
            }
            for list in [
                "frontendIPConfigurations",
                "backendAddressPools",
                "loadBalancingRules",
                "probes",
            ] {
                for part in at(&mut body, list) {
                    let name = part["name"].as_str().unwrap().to_owned();
                    part["id"] = json!(format!("{id}/{list}/{name}"));
                    part["etag"] = etag.clone();
                }
            }
            let own_sku = sku(&body);
            let mut frontends: Vec<Value> = at(&mut body, "frontendIPConfigurations")
                .map(|one| one.take())
                .collect();
            for frontend in &mut frontends {
                let inner = &mut frontend["properties"];
                let address = text(&inner["publicIPAddress"]["id"]);
                let found = self.documents.get(&address);
                if !address.is_empty() && found.is_none() {
                    return rejection(400, "InvalidResourceReference");
                }
                if found.is_some_and(|found| sku(found) != own_sku) {
                    return rejection(400, "PublicIPAndLBSkuDoNotMatch");
                }
                if !inner["subnet"].is_null() && inner["privateIPAddress"].is_null() {
                    inner["privateIPAddress"] = self.allocate("10.0.7");
                }
            }
            body["properties"]["frontendIPConfigurations"] = json!(frontends);
        }
        self.documents.insert(path.to_owned(), body.clone());
        self.writes.push(format!("put {path}"));
        let status = if old.is_some() {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        (status, body)
    }

    fn put_pool(
        &mut self,
        balancer: &str,
        pool: &str,
        if_match: Option<&str>,
        body: &Value,
    ) -> Answer {
        self.version += 1;
        let etag = json!(format!("W/\"{}\"", self.version));
        let Some(document) = self.documents.get_mut(balancer) else {
            return rejection(404, "ResourceNotFound");
        };
        let mut pools = at(document, "backendAddressPools");
        let found = pools.find(|one| text(&one["name"]) == pool).unwrap();
        if if_match.is_some() && if_match != found["etag"].as_str() {
            return rejection(412, "PreconditionFailed");
        }
        found["properties"] = body["properties"].clone();
        found["etag"] = etag.clone();
        let answer = found.clone();
        drop(pools);
        document["etag"] = etag;
        self.writes
            .push(format!("put {balancer}/backendaddresspools/{pool}"));
        (StatusCode::OK, answer)
    }

    fn delete(&mut self, path: &str, if_match: Option<&str>) -> Answer {
        let Some(document) = self.documents.get(path) else {
            return (StatusCode::NO_CONTENT, Value::Null);
        };
        if if_match.is_some() && if_match != document["etag"].as_str() {
            return rejection(412, "PreconditionFailed");
        }
        if !self.users(path).is_empty() {
            return rejection(400, "PublicIPAddressCannotBeDeleted");
        }
        // A dynamic address that is no longer used goes to another owner.
        let used: Vec<_> = self
            .documents
            .keys()
            .filter(|one| !self.users(one).is_empty())
            .cloned()
            .collect();
        self.documents.remove(path);
        for address in used {
            let is_free = self.users(&address).is_empty();
            if let Some(document) = self.documents.get_mut(&address).filter(|_| is_free)
                && document["properties"]["publicIPAllocationMethod"] != "Static"
            {
                document["properties"]["ipAddress"] = json!("lost");
            }
        }
        self.writes.push(format!("delete {path}"));
        (StatusCode::OK, Value::Null)
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Answer {
        let id = request.uri().path();
        let path = id.to_ascii_lowercase();
        let if_match = request
            .headers()
            .get("if-match")
            .map(|etag| etag.to_str().unwrap());
        match *request.method() {
            // Kinds are followed by a name, collections are not.
            Method::GET if path.split('/').count().is_multiple_of(2) => {
                (StatusCode::OK, self.list(&path))
            }
            Method::GET => match self.seen(&path) {
                Some(document) => (StatusCode::OK, document),
                None => rejection(404, "ResourceNotFound"),
            },
            Method::PUT => {
                let body = serde_json::from_slice(request.body()).unwrap();
                self.put(&path, id, if_match, body)
            }
            Method::DELETE => self.delete(&path, if_match),
            _ => rejection(405, "MethodNotAllowed"),
        }
    }
}

impl tower_service::Service<Request<Bytes>> for FakeArm {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (status, body) = self.0.lock().answer(&request);
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert("content-type", json);
        ready(Ok(response))
    }
}
