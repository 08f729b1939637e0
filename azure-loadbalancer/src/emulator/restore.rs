//! Restoring of a saved state.

use serde_json::Value;

use super::json::{Object, children, name};
use super::machine::{Conditions, Machine};
use super::path::{Kind, RequestTarget, ResourcePath};
use super::rejection::Rejection;

impl Machine {
    /// Creates resources as they were shown, with their former addresses, and their resource groups. The
    /// order does not matter.
    ///
    /// # Errors
    ///
    /// The first resource that cannot be created: its id is invalid, or a reference cannot be resolved.
    pub fn restore(&mut self, resources: Vec<Value>) -> Result<(), Rejection> {
        let mut placed = Vec::new();
        for resource in resources {
            let id = resource["id"].as_str().unwrap_or_default().to_owned();
            let RequestTarget::Resource(place) = RequestTarget::parse(&id)? else {
                let message = format!("`{id}` is not the id of a resource.");
                return Err(Rejection::bad("InvalidRequestUri", message));
            };
            let Value::Object(body) = resource else {
                return Err(Rejection::bad(
                    "InvalidRequestContent",
                    format!("`{id}` is not an object."),
                ));
            };
            placed.push((rank(place.kind), place, body));
        }
        // Referenced resources come first.
        placed.sort_by_key(|(rank, place, _)| (*rank, place.key()));
        for (_, place, body) in placed {
            self.restore_one(&place, body)?;
        }
        Ok(())
    }

    fn restore_one(&mut self, place: &ResourcePath, body: Object) -> Result<(), Rejection> {
        let location = body
            .get("location")
            .and_then(Value::as_str)
            .unwrap_or("westus")
            .to_owned();
        if self
            .store
            .group(&place.subscription, &place.group)
            .is_none()
        {
            self.add_group(&place.subscription, &place.group, &location);
        }
        let shown = Value::Object(body.clone());
        self.write(place, body, &Conditions::default(), None)?;
        self.finish_operations();
        let Some(resource) = self.store.get_mut(&place.key()) else {
            return Ok(());
        };
        match place.kind {
            Kind::PublicIp => {
                let address = &shown["properties"]["ipAddress"];
                if address.is_string() {
                    resource.body["properties"]["ipAddress"] = address.clone();
                }
            }
            Kind::LoadBalancer => {
                let before = children(&shown, "frontendIPConfigurations");
                let frontends =
                    resource.body["properties"]["frontendIPConfigurations"].as_array_mut();
                for frontend in frontends.into_iter().flatten() {
                    let same = before.iter().find(|one| name(one) == name(frontend));
                    let address = same.map(|one| &one["properties"]["privateIPAddress"]);
                    if let Some(address) = address.filter(|address| address.is_string()) {
                        frontend["properties"]["privateIPAddress"] = address.clone();
                    }
                }
            }
            Kind::SecurityGroup
            | Kind::VirtualNetwork
            | Kind::Interface
            | Kind::Machine
            | Kind::ScaleSet => {}
        }
        Ok(())
    }
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::SecurityGroup | Kind::PublicIp => 0,
        Kind::VirtualNetwork => 1,
        Kind::LoadBalancer => 2,
        Kind::Interface | Kind::ScaleSet => 3,
        Kind::Machine => 4,
    }
}
