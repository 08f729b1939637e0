//! The calls for resources and groups, and the polling of writes.

use http::StatusCode;
use http::header::{LOCATION, RETRY_AFTER};
use serde_json::{Value, json};

use super::answer::{Reply, RequestContext};
use super::casing::scramble;
use super::json::{self, Object, object_at};
use super::kinds;
use super::machine::Machine;
use super::operation;
use super::page;
use super::path::{Kind, ResourcePath, group_id};
use super::references::References;
use super::rejection::Rejection;
use super::store::Group;

impl Machine {
    pub(super) fn put_group(
        &mut self,
        call: &RequestContext<'_>,
        subscription: &str,
        name: &str,
    ) -> Result<Reply, Rejection> {
        let body = json::object(call.body)?;
        let Some(location) = body.get("location").and_then(Value::as_str) else {
            return Err(Rejection::bad(
                "LocationRequired",
                "The location property is required for this definition.",
            ));
        };
        json::check_name(name)?;
        let is_new = self.store.group(subscription, name).is_none();
        if is_new && self.store.groups(subscription).count() >= self.options.max_resources {
            return Err(Rejection::conflict(
                "QuotaExceeded",
                "There are too many resource groups.",
            ));
        }
        self.add_group(subscription, name, location);
        let group = self
            .store
            .group(subscription, name)
            .ok_or_else(|| group_not_found(name))?;
        let mut reply = Reply::ok(show_group(group));
        if is_new {
            reply.status = StatusCode::CREATED;
        }
        Ok(reply)
    }

    pub(super) fn list(
        &mut self,
        call: &RequestContext<'_>,
        wanted: impl Fn(&str, Kind) -> bool,
    ) -> Result<Reply, Rejection> {
        let references = References::of(&self.store);
        let all = self
            .store
            .all()
            .filter(|one| wanted(&one.place.key(), one.place.kind));
        let found = all
            .map(|resource| kinds::render(&references, resource))
            .collect();
        self.listed(call, found)
    }

    pub(super) fn listed(
        &mut self,
        call: &RequestContext<'_>,
        mut items: Vec<Value>,
    ) -> Result<Reply, Rejection> {
        // Azure varies the letter case of ids, and clients have to accept that.
        if self.options.id_casing_seed.is_some() {
            for item in &mut items {
                scramble(item, &mut self.random);
            }
        }
        page::reply(call, items, self.options.page_size)
    }

    /// Returns a resource in the form for clients.
    pub(super) fn show(&mut self, place: &ResourcePath) -> Result<Value, Rejection> {
        let found = self
            .store
            .get(&place.key())
            .ok_or_else(|| Rejection::not_found(&place.id()))?;
        let mut shown = kinds::render(&References::of(&self.store), found);
        if self.options.id_casing_seed.is_some() {
            scramble(&mut shown, &mut self.random);
        }
        Ok(shown)
    }

    pub(super) fn read(&mut self, place: &ResourcePath) -> Result<Reply, Rejection> {
        Ok(Reply::ok(self.show(place)?))
    }

    pub(super) fn put_resource(
        &mut self,
        call: &RequestContext<'_>,
        place: &ResourcePath,
        body: Object,
    ) -> Result<Reply, Rejection> {
        let written = self.write(place, body, &call.conditions, call.failing.clone())?;
        let mut reply = Reply::ok(self.show(place)?);
        if written.is_new {
            reply.status = StatusCode::CREATED;
        }
        reply.headers = self.poll_headers(call, place, written.operation, false);
        Ok(reply)
    }

    /// Adds or replaces the given tags. Nothing else can be patched.
    pub(super) fn patch_tags(
        &mut self,
        call: &RequestContext<'_>,
        place: &ResourcePath,
    ) -> Result<Reply, Rejection> {
        let patch = json::object(call.body)?;
        let found = self
            .store
            .get(&place.key())
            .ok_or_else(|| Rejection::not_found(&place.id()))?;
        call.conditions.check(&place.id(), Some(found))?;
        self.check_idle(&place.key())?;
        let version = self.store.next_version();
        if let Some(resource) = self.store.get_mut(&place.key())
            && let Some(tags) = patch.get("tags").and_then(Value::as_object)
            && let Some(body) = resource.body.as_object_mut()
        {
            let own = object_at(body, "tags")?;
            own.extend(tags.clone());
            resource.version = version;
        }
        self.read(place)
    }

    pub(super) fn operation(&self, id: &str, is_result: bool) -> Result<Reply, Rejection> {
        let found = self.operations.find(id).ok_or_else(|| {
            let message = format!("Operation {id} is not known, or has been over for long.");
            Rejection::new(StatusCode::NOT_FOUND, "OperationNotFound", message)
        })?;
        let mut reply = match is_result {
            false => Reply::ok(found.body()),
            true if !found.is_over => Reply::empty(StatusCode::ACCEPTED),
            true => match &found.failing {
                Some(failing) => {
                    return Err(Rejection::conflict(&failing.code, failing.message.clone()));
                }
                None => Reply::empty(StatusCode::NO_CONTENT),
            },
        };
        if !found.is_over {
            reply
                .headers
                .push((RETRY_AFTER.as_str(), self.options.retry_after.to_string()));
        }
        Ok(reply)
    }

    /// Returns the headers with the URLs for polling a write.
    pub(super) fn poll_headers(
        &self,
        call: &RequestContext<'_>,
        place: &ResourcePath,
        number: u64,
        with_location: bool,
    ) -> Vec<(&'static str, String)> {
        let region = self
            .store
            .get(&place.key())
            .and_then(|one| one.body["location"].as_str());
        let version = call.parameter("api-version").unwrap_or_default();
        let address = |what: &str| {
            format!(
                "{}/subscriptions/{}/providers/{}/locations/{}/{what}/{}?api-version={version}",
                call.origin,
                place.subscription,
                place.kind.provider(),
                region
                    .unwrap_or("global")
                    .replace(' ', "")
                    .to_ascii_lowercase(),
                operation::id(number)
            )
        };
        let mut headers = vec![("azure-asyncoperation", address("operations"))];
        if with_location {
            headers.push((LOCATION.as_str(), address("operationResults")));
        }
        headers.push((RETRY_AFTER.as_str(), self.options.retry_after.to_string()));
        headers
    }
}

pub(super) fn group_not_found(name: &str) -> Rejection {
    let message = format!("Resource group '{name}' could not be found.");
    Rejection::new(StatusCode::NOT_FOUND, "ResourceGroupNotFound", message)
}

pub(super) fn show_group(group: &Group) -> Value {
    json!({
        "id": group_id(&group.subscription, &group.name),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": group.location,
        "properties": { "provisioningState": "Succeeded" },
    })
}
