//! The served resources, as JSON.

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::AdminResponse;
use super::parameter;
use crate::server::{ServerHandle, resource_json};
use crate::snapshot::{Resource, ResourceType, Subscription};

pub(super) fn answer(server: &ServerHandle, query: &str) -> AdminResponse {
    let Some(snapshot) = server.snapshot() else {
        return AdminResponse::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "nothing has been read yet that could be served",
        );
    };
    let Some(wanted) = parameter(query, "type") else {
        let types = ResourceType::MAKE_BEFORE_BREAK.map(|resource_type| {
            let set = snapshot.resources(resource_type);
            let resources: Vec<_> = set
                .iter()
                .map(|resource| name_and_version(resource))
                .collect();
            let of_type = json!({ "version": set.version().to_string(), "resources": resources });
            (resource_type.to_string(), of_type)
        });
        return AdminResponse::json(&serde_json::Map::from_iter(types));
    };
    let resource_type = ResourceType::MAKE_BEFORE_BREAK
        .into_iter()
        .find(|resource_type| resource_type.to_string() == wanted);
    let Some(resource_type) = resource_type else {
        return AdminResponse::error(
            StatusCode::BAD_REQUEST,
            "type has to be cds, eds, lds or rds",
        );
    };
    let subscription = match parameter(query, "via").as_deref() {
        None | Some("aggregated") => Subscription::Aggregated,
        Some("separate") => Subscription::Separate,
        Some("rest") => Subscription::Rest,
        Some(_) => {
            return AdminResponse::error(
                StatusCode::BAD_REQUEST,
                "via has to be aggregated, separate or rest",
            );
        }
    };
    let set = snapshot.resources(resource_type);
    let shown = |resource: &Resource| {
        let mut shown = name_and_version(resource);
        shown["resource"] = resource_json(resource_type, resource.body(subscription));
        shown
    };
    let resources: Vec<_> = match parameter(query, "name") {
        Some(name) => set
            .get(&name)
            .map(|resource| shown(resource))
            .into_iter()
            .collect(),
        None => set.iter().map(|resource| shown(resource)).collect(),
    };
    AdminResponse::json(&json!({ "version": set.version().to_string(), "resources": resources }))
}

fn name_and_version(resource: &Resource) -> Value {
    json!({ "name": resource.name(), "version": resource.version().to_string() })
}
