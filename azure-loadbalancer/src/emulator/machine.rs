//! The state of the emulator: resources, operations and the log of requests.

use http::StatusCode;
use serde_json::Value;

use super::fault::{Fault, Faults};
use super::json::{self, Object, key};
use super::kinds::{self, Context};
use super::log::RequestLog;
use super::operation::{Effect, Failing, Operations, PendingOperation};
use super::options::EmulatorOptions;
use super::path::{Kind, RequestTarget, ResourcePath};
use super::references::{References, owner};
use super::rejection::Rejection;
use super::store::{Group, ProvisioningPhase, Store, StoredResource};
use super::{LoggedRequest, RequestCounts};

/// An in-memory resource manager, without I/O and without a clock: its time is the number of requests.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) options: EmulatorOptions,
    pub(super) store: Store,
    pub(super) operations: Operations,
    pub(super) faults: Faults,
    pub(super) log: RequestLog,
    pub(super) now: u64,
    pub(super) random: fastrand::Rng,
}

/// The result of a write.
pub(super) struct WriteResult {
    /// True if the resource is new.
    pub(super) is_new: bool,
    /// The number of the write's operation.
    pub(super) operation: u64,
}

/// The conditions of a request on the etag of a resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) if_match: Option<String>,
    pub(super) if_none_match: Option<String>,
}

impl Machine {
    /// Creates an empty resource manager.
    pub fn new(options: EmulatorOptions) -> Self {
        Self {
            random: fastrand::Rng::with_seed(options.id_casing_seed.unwrap_or_default()),
            options,
            store: Store::default(),
            operations: Operations::default(),
            faults: Faults::default(),
            log: RequestLog::default(),
            now: 0,
        }
    }

    /// Adds a resource group.
    pub fn add_group(&mut self, subscription: &str, name: &str, location: &str) {
        self.store.add_group(Group {
            subscription: subscription.to_owned(),
            name: name.to_owned(),
            location: location.to_owned(),
        });
    }

    /// Writes a resource like another client, completes the operation at once, and returns the resource.
    ///
    /// # Errors
    ///
    /// The rejection of the resource manager.
    pub fn put(&mut self, id: &str, body: Value) -> Result<Value, Rejection> {
        let place = resource_place(id)?;
        let Value::Object(body) = body else {
            return Err(Rejection::bad(
                "InvalidRequestContent",
                "The request content is not an object.",
            ));
        };
        self.write(&place, body, &Conditions::default(), None)?;
        self.finish(&place.key());
        self.get(id).ok_or_else(|| Rejection::not_found(id))
    }

    /// Deletes a resource like another client. A missing resource is no error.
    ///
    /// # Errors
    ///
    /// The rejection of the resource manager.
    pub fn delete(&mut self, id: &str) -> Result<(), Rejection> {
        let place = resource_place(id)?;
        self.remove(&place, &Conditions::default(), None)?;
        self.finish(&place.key());
        Ok(())
    }

    /// Returns a resource as clients see it, without logging a request.
    pub fn get(&self, id: &str) -> Option<Value> {
        let resource = self.store.find(id)?;
        Some(kinds::render(&References::of(&self.store), resource))
    }

    /// All resources as clients see them, by id.
    pub fn resources(&self) -> Vec<Value> {
        let references = References::of(&self.store);
        self.store
            .all()
            .map(|resource| kinds::render(&references, resource))
            .collect()
    }

    /// Injects a fault.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Removes the pending faults.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Returns the last requests, at most 10,000.
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.log.requests()
    }

    /// Returns the numbers of requests.
    pub fn counts(&self) -> RequestCounts {
        self.log.counts()
    }

    /// Clears the log of requests.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// Completes all pending operations.
    pub fn finish_operations(&mut self) {
        self.settle(u64::MAX);
    }

    /// Advances the time by one request.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        self.settle(self.now);
    }

    /// Completes the pending operations, if the resource has one.
    fn finish(&mut self, key: &str) {
        // Otherwise the operations of other resources keep their time.
        if self.operations.is_busy(key) {
            self.settle(u64::MAX);
        }
    }

    fn settle(&mut self, now: u64) {
        for operation in self.operations.end(now) {
            self.carry_out(&operation);
        }
    }

    fn carry_out(&mut self, operation: &PendingOperation) {
        let Some(resource) = self.store.get_mut(&operation.key) else {
            return;
        };
        resource.state = match &operation.failing {
            Some(failing) if failing.status == "Canceled" => ProvisioningPhase::Canceled,
            Some(_) => ProvisioningPhase::Failed,
            None => ProvisioningPhase::Succeeded,
        };
        if operation.failing.is_some() {
            self.store.touch(&operation.key);
            return;
        }
        match operation.effect {
            Effect::Settle => {
                if resource.place.kind == Kind::PublicIp {
                    kinds::public_ip::settle(&mut self.store, &operation.key);
                }
                // The etag of a resource changes once more when the write completes.
                self.store.touch(&operation.key);
            }
            Effect::Remove => {
                let before = References::of(&self.store);
                self.store.remove(&operation.key);
                self.touch_changed(&before);
            }
        }
    }

    /// Stores a resource and begins its operation.
    pub(super) fn write(
        &mut self,
        place: &ResourcePath,
        body: Object,
        conditions: &Conditions,
        failing: Option<Failing>,
    ) -> Result<WriteResult, Rejection> {
        if self
            .store
            .group(&place.subscription, &place.group)
            .is_none()
        {
            let message = format!("Resource group '{}' could not be found.", place.group);
            return Err(Rejection::new(
                StatusCode::NOT_FOUND,
                "ResourceGroupNotFound",
                message,
            ));
        }
        let key = place.key();
        let previous = self.store.get(&key);
        conditions.check(&place.id(), previous)?;
        self.check_idle(&key)?;
        if previous.is_none() && self.store.len() >= self.options.max_resources {
            let message = format!("There can be {} resources.", self.options.max_resources);
            return Err(Rejection::conflict("QuotaExceeded", message));
        }
        let is_new = previous.is_none();
        let before = References::of(&self.store);
        let context = Context {
            store: &self.store,
            references: &before,
            place,
            previous,
        };
        let accepted = kinds::accept(&context, body)?;
        // A failing write changes only the state.
        let body = match (&failing, previous) {
            (Some(_), Some(previous)) => previous.body.clone(),
            _ => accepted,
        };
        self.store.put(place, body, ProvisioningPhase::Updating);
        self.touch_changed(&before);
        let operation = self.begin(key, Effect::Settle, failing);
        Ok(WriteResult { is_new, operation })
    }

    /// Begins to delete a resource. `None` if it does not exist.
    pub(super) fn remove(
        &mut self,
        place: &ResourcePath,
        conditions: &Conditions,
        failing: Option<Failing>,
    ) -> Result<Option<u64>, Rejection> {
        let key = place.key();
        let Some(resource) = self.store.get(&key) else {
            return Ok(None);
        };
        conditions.check(&place.id(), Some(resource))?;
        self.check_idle(&key)?;
        let references = References::of(&self.store);
        check_delete(&references, resource)?;
        if let Some(resource) = self.store.get_mut(&key) {
            resource.state = ProvisioningPhase::Deleting;
        }
        Ok(Some(self.begin(key, Effect::Remove, failing)))
    }

    /// Begins an operation on a resource that already has its final content.
    pub(super) fn begin(&mut self, key: String, effect: Effect, failing: Option<Failing>) -> u64 {
        let due = self.now + self.options.operation_requests;
        let operation = PendingOperation {
            key,
            effect,
            due,
            failing,
            is_over: false,
        };
        let number = self.operations.begin(operation);
        // Operations that take no requests end here.
        self.settle(self.now);
        number
    }

    /// Checks that no other write of the resource is in progress.
    pub(super) fn check_idle(&self, key: &str) -> Result<(), Rejection> {
        if !self.operations.is_busy(key) {
            return Ok(());
        }
        let message =
            format!("Another operation on this or dependent resource is in progress: {key}.");
        let mut rejection = Rejection::conflict("AnotherOperationInProgress", message);
        rejection.retry_after = Some(self.options.retry_after);
        Err(rejection)
    }

    /// Changes the etags of resources whose references from others have changed.
    pub(super) fn touch_changed(&mut self, before: &References) {
        let after = References::of(&self.store);
        for key in before.changed(&after) {
            self.store.touch(owner(&key));
        }
    }
}

impl Conditions {
    pub(super) fn check(
        &self,
        id: &str,
        resource: Option<&StoredResource>,
    ) -> Result<(), Rejection> {
        let etag = resource.map(StoredResource::etag);
        // Azure's etags are weak and compared all the same.
        let has = |list: &str| {
            list.split(',').map(str::trim).any(|one| match &etag {
                Some(etag) => one == "*" || one == etag || one == etag.trim_start_matches("W/"),
                None => false,
            })
        };
        let holds = self.if_match.as_deref().is_none_or(has)
            && !self.if_none_match.as_deref().is_some_and(has);
        holds
            .then_some(())
            .ok_or_else(|| Rejection::etag_mismatch(id))
    }
}

/// Checks that a resource can be deleted: no other resource uses it.
fn check_delete(references: &References, resource: &StoredResource) -> Result<(), Rejection> {
    let id = resource.place.id();
    let key = resource.place.key();
    let user = references.below(&key).map(|(_, user)| user).next();
    let (code, what) = match resource.place.kind {
        Kind::LoadBalancer => return kinds::load_balancer::check_delete(references, resource),
        Kind::PublicIp => ("PublicIPAddressCannotBeDeleted", "Public IP address"),
        Kind::SecurityGroup => (
            "InUseNetworkSecurityGroupCannotBeDeleted",
            "Network security group",
        ),
        Kind::VirtualNetwork => ("InUseSubnetCannotBeDeleted", "Virtual network"),
        Kind::Interface | Kind::Machine | Kind::ScaleSet => return Ok(()),
    };
    user.map_or(Ok(()), |user| {
        let message = format!(
            "{what} {id} can not be deleted since it is still allocated to resource {user}."
        );
        Err(Rejection::bad(code, message))
    })
}

fn resource_place(id: &str) -> Result<ResourcePath, Rejection> {
    match RequestTarget::parse(id)? {
        RequestTarget::Resource(place) => Ok(place),
        _ => Err(Rejection::bad(
            "InvalidRequestUri",
            format!("`{id}` is not the id of a resource."),
        )),
    }
}

/// Returns the child of a rendered resource with this name.
pub(super) fn child<'a>(rendered: &'a Value, collection: &str, wanted: &str) -> Option<&'a Value> {
    json::children(rendered, collection)
        .iter()
        .find(|one| key(json::name(one)) == key(wanted))
}
