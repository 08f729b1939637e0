//! Parts of resources with their own paths.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::answer::{Reply, RequestContext, method_not_allowed};
use super::json::{self, Object, key, name, object_at};
use super::kinds::{collections, render, scale_set};
use super::machine::{Machine, child};
use super::operation::Effect;
use super::page;
use super::path::{Kind, ResourcePath};
use super::references::References;
use super::rejection::Rejection;
use super::store::{Store, StoredResource};

/// Handles a call for a part of a resource.
pub(super) fn answer(
    machine: &mut Machine,
    call: &RequestContext<'_>,
    parent: &ResourcePath,
    rest: &[String],
) -> Result<Reply, Rejection> {
    if machine.store.get(&parent.key()).is_none() {
        return Err(Rejection::not_found(&parent.id()));
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let rest = rest.as_slice();
    if parent.kind == Kind::ScaleSet {
        return in_scale_set(machine, call, parent, rest);
    }
    if let (Kind::LoadBalancer, [part]) = (parent.kind, rest)
        && part.eq_ignore_ascii_case("networkInterfaces")
    {
        return match *call.method {
            Method::GET => {
                let members = interfaces_of(&machine.store, parent);
                machine.listed(call, members)
            }
            ref method => Err(method_not_allowed(method)),
        };
    }
    let known = collections(parent.kind);
    let found = rest.first().and_then(|wanted| {
        known
            .iter()
            .find(|(one, _)| one.eq_ignore_ascii_case(wanted))
    });
    let Some((collection, is_writable)) = found.copied() else {
        return Err(no_such_part(parent, rest));
    };
    match (call.method, rest) {
        (&Method::GET, [_]) => {
            let shown = machine.show(parent)?;
            page::reply(
                call,
                json::children(&shown, collection).to_vec(),
                machine.options.page_size,
            )
        }
        (&Method::GET, [_, wanted]) => {
            let shown = machine.show(parent)?;
            let found = child(&shown, collection, wanted);
            let id = format!("{}/{collection}/{wanted}", parent.id());
            Ok(Reply::ok(
                found
                    .cloned()
                    .ok_or_else(|| Rejection::part_not_found(&id))?,
            ))
        }
        (&Method::PUT, [_, wanted]) if is_writable => {
            put_child(machine, call, parent, collection, wanted)
        }
        (&Method::DELETE, [_, wanted]) if is_writable => {
            delete_child(machine, call, parent, collection, wanted)
        }
        (method, [_] | [_, _]) => Err(method_not_allowed(method)),
        _ => Err(no_such_part(parent, rest)),
    }
}

/// Returns the network interfaces in pools of a load balancer, including those of scale sets.
fn interfaces_of(store: &Store, balancer: &ResourcePath) -> Vec<Value> {
    let references = References::of(store);
    let own = balancer.key();
    let members = references.below(&own).filter_map(|(_, id)| {
        let id = key(id);
        let (interface, _) = id.rsplit_once("/ipconfigurations/")?;
        Some(interface.to_owned())
    });
    let members: BTreeSet<String> = members.collect();
    let shown = members.iter().filter_map(|id| {
        if let Some(interface) = store.get(id) {
            return Some(render(&references, interface));
        }
        // An id without a resource may be that of an instance of a scale set.
        let (set, rest) = id.split_once("/virtualmachines/")?;
        let (machine, _) = rest.split_once('/')?;
        let set = store.get(set)?;
        let mut instances = scale_set::instances(set).iter();
        let instance = instances.find(|one| one["instanceId"] == machine)?;
        let mut interfaces = scale_set::render_interfaces(set, instance).into_iter();
        interfaces.find(|one| one["id"].as_str().is_some_and(|own| key(own) == *id))
    });
    shown.collect()
}

fn no_such_part(parent: &ResourcePath, rest: &[&str]) -> Rejection {
    let message = format!("{} has no {}.", parent.id(), rest.join("/"));
    Rejection::new(StatusCode::NOT_FOUND, "NotFound", message)
}

/// Writes one child. The whole resource with the child is validated.
fn put_child(
    machine: &mut Machine,
    call: &RequestContext<'_>,
    parent: &ResourcePath,
    collection: &str,
    wanted: &str,
) -> Result<Reply, Rejection> {
    json::check_name(wanted)?;
    let mut body = json::object(call.body)?;
    body.insert("name".to_owned(), json!(wanted));
    let mut is_new = true;
    let whole = edited(machine, parent, collection, |children| {
        let same = children
            .iter_mut()
            .find(|one| key(name(one)) == key(wanted));
        match same {
            Some(same) => {
                is_new = false;
                // An existing child keeps the letter case of its name.
                body.insert("name".to_owned(), json!(name(same)));
                *same = Value::Object(body);
            }
            None => children.push(Value::Object(body)),
        }
    })?;
    // A child is written as part of its parent, which gets a new etag.
    let written = machine.write(parent, whole, &call.conditions, call.failing.clone())?;
    let shown = machine.show(parent)?;
    let found = child(&shown, collection, wanted).cloned();
    let mut reply = Reply::ok(found.unwrap_or(Value::Null));
    if is_new {
        reply.status = StatusCode::CREATED;
    }
    reply.headers = machine.poll_headers(call, parent, written.operation, false);
    Ok(reply)
}

fn delete_child(
    machine: &mut Machine,
    call: &RequestContext<'_>,
    parent: &ResourcePath,
    collection: &str,
    wanted: &str,
) -> Result<Reply, Rejection> {
    let mut is_there = false;
    let whole = edited(machine, parent, collection, |children| {
        let before = children.len();
        children.retain(|one| key(name(one)) != key(wanted));
        is_there = children.len() != before;
    })?;
    if !is_there {
        return Ok(Reply {
            status: StatusCode::NO_CONTENT,
            body: None,
            headers: Vec::new(),
        });
    }
    let written = machine.write(parent, whole, &call.conditions, call.failing.clone())?;
    let headers = machine.poll_headers(call, parent, written.operation, true);
    Ok(Reply {
        status: StatusCode::ACCEPTED,
        body: None,
        headers,
    })
}

/// Returns the body of a resource with one of its lists changed.
fn edited(
    machine: &Machine,
    parent: &ResourcePath,
    collection: &str,
    edit: impl FnOnce(&mut Vec<Value>),
) -> Result<Object, Rejection> {
    let found = machine
        .store
        .get(&parent.key())
        .ok_or_else(|| Rejection::not_found(&parent.id()))?;
    let mut body = found.body.as_object().cloned().unwrap_or_default();
    let properties = object_at(&mut body, "properties")?;
    let slot = properties.entry(collection).or_insert_with(|| json!([]));
    if let Some(children) = slot.as_array_mut() {
        edit(children);
    }
    Ok(body)
}

fn in_scale_set(
    machine: &mut Machine,
    call: &RequestContext<'_>,
    parent: &ResourcePath,
    rest: &[&str],
) -> Result<Reply, Rejection> {
    let is = |text: &str, word: &str| text.eq_ignore_ascii_case(word);
    let place = parent.key();
    let found = machine
        .store
        .get(&place)
        .ok_or_else(|| Rejection::not_found(&parent.id()))?;
    match (call.method, rest) {
        (&Method::POST, [action]) if is(action, "manualupgrade") => {
            machine.check_idle(&place)?;
            let ids = Value::Object(json::object(call.body)?);
            let before = References::of(&machine.store);
            if let Some(resource) = machine.store.get_mut(&place) {
                scale_set::upgrade(resource, &ids)?;
            }
            // Resources with changed references get new etags.
            machine.touch_changed(&before);
            let number = machine.begin(place, Effect::Settle, call.failing.clone());
            let headers = machine.poll_headers(call, parent, number, true);
            Ok(Reply {
                status: StatusCode::ACCEPTED,
                body: None,
                headers,
            })
        }
        (&Method::GET, [machines]) if is(machines, "virtualMachines") => {
            let shown = scale_set::instances(found)
                .iter()
                .map(|one| scale_set::render_instance(found, one))
                .collect();
            page::reply(call, shown, machine.options.page_size)
        }
        (&Method::GET, [machines, id]) if is(machines, "virtualMachines") => {
            let instance = instance(found, parent, id)?;
            Ok(Reply::ok(scale_set::render_instance(found, instance)))
        }
        (&Method::GET, [machines, id, interfaces])
            if is(machines, "virtualMachines") && is(interfaces, "networkInterfaces") =>
        {
            let instance = instance(found, parent, id)?;
            page::reply(
                call,
                scale_set::render_interfaces(found, instance),
                machine.options.page_size,
            )
        }
        (method, [one] | [one, _]) if is(one, "virtualMachines") || is(one, "manualupgrade") => {
            Err(method_not_allowed(method))
        }
        _ => Err(no_such_part(parent, rest)),
    }
}

fn instance<'a>(
    of: &'a StoredResource,
    parent: &ResourcePath,
    id: &str,
) -> Result<&'a Value, Rejection> {
    let found = scale_set::instances(of)
        .iter()
        .find(|one| one["instanceId"] == *id);
    found.ok_or_else(|| Rejection::part_not_found(&format!("{}/virtualMachines/{id}", parent.id())))
}
