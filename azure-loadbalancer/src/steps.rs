//! One service at a time, one class of resources at a time: the functions that Kubernetes' provider is made of.
//!
//! Each is the planner, restricted to one class of resources and to one service; all others stay as they are, and nothing that
//! belongs to nobody is removed. Who has many services plans for all of them at once, with [`crate::plan()`].

use crate::config::{Config, FlipOrder};
use crate::node::Node;
use crate::plan::{
    Balancers, Classes, Located, Only, Plan, PlanError, Request, Snapshot, locate, plan_request,
};
use crate::service::{Service, ServiceKey};

/// The call of a cloud provider for a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Returns the addresses of the service. Writes nothing.
    Get,
    /// Makes the service reachable.
    Ensure,
    /// The same: what is there does not matter.
    Update,
    /// Removes the resources of the service.
    EnsureDeleted,
}

/// One of the steps of which a call is made. What is there is read again before each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Removes the parts of the service from the load balancer of the other kind (internal or external).
    FlippedLoadBalancer,
    /// Creates the public address of the service, and deletes the ones that it no longer needs.
    PublicIp,
    /// Creates or removes the frontend, rules and probes of the service.
    LoadBalancer,
    /// Creates or removes the security rules of the service.
    SecurityGroup,
}

impl Call {
    /// The steps of the call, in their order.
    ///
    /// Breaking first, what a service has on the other load balancer goes before its public address, and that before the load
    /// balancer, as Kubernetes' provider of 2018 did it. That order alone cannot change an address, which is deleted while the
    /// frontend uses it; so public addresses are looked at once more in the end. And the old address of a service is not known any
    /// more when a security rule that others use is looked at: it stays there until a plan for all services is made by who has said that
    /// the group is this cluster's alone ([`Config::exclusive_security_group`]).
    pub fn steps(self, order: FlipOrder) -> &'static [Step] {
        use Step::{FlippedLoadBalancer, LoadBalancer, PublicIp, SecurityGroup};
        match (self, order) {
            (Self::Get, _) => &[],
            (Self::Ensure | Self::Update, FlipOrder::BreakFirst) => &[
                FlippedLoadBalancer,
                PublicIp,
                LoadBalancer,
                SecurityGroup,
                PublicIp,
            ],
            (Self::Ensure | Self::Update, FlipOrder::MakeBeforeBreak) => &[
                PublicIp,
                LoadBalancer,
                SecurityGroup,
                FlippedLoadBalancer,
                PublicIp,
            ],
            // A security rule that others share can be left only while the address is known.
            (Self::EnsureDeleted, _) => &[SecurityGroup, LoadBalancer, PublicIp],
        }
    }

    /// Returns true if the service keeps resources after the call.
    pub fn wants(self) -> bool {
        !matches!(self, Self::EnsureDeleted)
    }
}

/// The steps for one service, given what is there.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    config: &'a Config,
    services: &'a [Service],
    nodes: &'a [Node],
    snapshot: &'a Snapshot,
}

impl<'a> Steps<'a> {
    /// Steps given these services, nodes and resources. The service that a step is about must be among the services.
    pub fn new(
        config: &'a Config,
        services: &'a [Service],
        nodes: &'a [Node],
        snapshot: &'a Snapshot,
    ) -> Self {
        Self {
            config,
            services,
            nodes,
            snapshot,
        }
    }

    /// The step of a call for a service.
    ///
    /// # Errors
    ///
    /// Why the service cannot have what it asks for; then nothing is to be written.
    pub fn step(&self, call: Call, step: Step, service: &ServiceKey) -> Result<Plan, PlanError> {
        match step {
            Step::FlippedLoadBalancer => self.reconcile_flipped_load_balancer(service),
            Step::PublicIp => self.reconcile_public_ip(service, call.wants()),
            Step::LoadBalancer => self.reconcile_load_balancer(service, call.wants()),
            Step::SecurityGroup => self.reconcile_security_group(service, None, call.wants()),
        }
    }

    /// The load balancer that a service has, or, if one is wanted, would get; else that of the cluster.
    ///
    /// # Errors
    ///
    /// Why none can be chosen.
    pub fn get_service_load_balancer(
        &self,
        service: &ServiceKey,
        want: bool,
    ) -> Result<Located, PlanError> {
        let request = self.request(service, want, NOTHING);
        locate(
            self.config,
            &request,
            self.services,
            self.nodes,
            self.snapshot,
            service,
        )
    }

    /// Makes the service's frontend, rules and probes what it asks for, or removes them. A load balancer of which nothing is left
    /// is deleted. A public address that is missing is made.
    ///
    /// # Errors
    ///
    /// Why the service cannot have what it asks for; then nothing is to be written.
    pub fn reconcile_load_balancer(
        &self,
        service: &ServiceKey,
        want: bool,
    ) -> Result<Plan, PlanError> {
        let classes = Classes {
            load_balancers: Balancers::All,
            ..NOTHING
        };
        self.plan(self.request(service, want, classes))
    }

    /// Removes what the service has on the load balancer of the kind that it does not ask for, its own excepted.
    ///
    /// # Errors
    ///
    /// Why the service cannot have what it asks for; then nothing is to be written.
    pub fn reconcile_flipped_load_balancer(&self, service: &ServiceKey) -> Result<Plan, PlanError> {
        let classes = Classes {
            load_balancers: Balancers::Flipped,
            ..NOTHING
        };
        self.plan(self.request(service, true, classes))
    }

    /// Makes the service's security rules what it asks for, or removes them. The group is never created.
    ///
    /// `address` is what rules lead to, in place of the address that the service has; empty is any.
    ///
    /// # Errors
    ///
    /// Why the service cannot have what it asks for, [`PlanError::AddressUnknown`] among it; then nothing is to be written.
    pub fn reconcile_security_group(
        &self,
        service: &ServiceKey,
        address: Option<&str>,
        want: bool,
    ) -> Result<Plan, PlanError> {
        let classes = Classes {
            security_group: true,
            ..NOTHING
        };
        let mut request = self.request(service, want, classes);
        if let Some(only) = &mut request.only {
            only.address = address.map(str::to_owned);
        }
        self.plan(request)
    }

    /// Makes the service's public address, and deletes those that are tagged as its own and that it does not need.
    ///
    /// # Errors
    ///
    /// Why the service cannot have what it asks for; then nothing is to be written.
    pub fn reconcile_public_ip(&self, service: &ServiceKey, want: bool) -> Result<Plan, PlanError> {
        let classes = Classes {
            public_ips: true,
            ..NOTHING
        };
        self.plan(self.request(service, want, classes))
    }

    fn request(&self, service: &ServiceKey, want: bool, classes: Classes) -> Request {
        let only = Only {
            key: service.clone(),
            want,
            address: None,
        };
        Request {
            only: Some(only),
            classes,
            ..Request::EVERYTHING
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "a request is made for one plan"
    )]
    fn plan(&self, request: Request) -> Result<Plan, PlanError> {
        let plan = plan_request(
            self.config,
            &request,
            self.services,
            self.nodes,
            self.snapshot,
        );
        let key = request.only.as_ref().map(|only| &only.key);
        let error = key.and_then(|key| plan.services.get(key)?.error.clone());
        match error {
            Some(error) => Err(error),
            None => Ok(plan),
        }
    }
}

const NOTHING: Classes = Classes {
    public_ips: false,
    load_balancers: Balancers::None,
    security_group: false,
};
