//! Steps for one service and one class of resources at a time, like the functions of Kubernetes' provider.
//!
//! Each step is the planner, restricted to one class of resources and to one service. All others stay as they
//! are, and orphans are not removed. To plan for many services at once, use [`crate::plan()`].

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
    /// Makes the service reachable, like [`Ensure`](Self::Ensure): the existing state does not matter.
    Update,
    /// Removes the resources of the service.
    EnsureDeleted,
}

/// A step of a call. The current resources are read again before each step.
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
    /// Returns the steps of the call, in order.
    ///
    /// When breaking first, the order is that of Kubernetes' provider of 2018: the parts on the other load
    /// balancer, the public address, the load balancer. That order alone cannot change an address, which
    /// cannot be deleted while the frontend uses it, so public addresses are checked again at the end. The
    /// old address is no longer known when a shared security rule is checked: it stays there until a full
    /// plan runs with [`Config::exclusive_security_group`] set.
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
            // An address can be removed from a shared security rule only while it is known.
            (Self::EnsureDeleted, _) => &[SecurityGroup, LoadBalancer, PublicIp],
        }
    }

    /// Returns true if the service keeps resources after the call.
    pub fn wants(self) -> bool {
        !matches!(self, Self::EnsureDeleted)
    }
}

/// The steps for one service, from the current resources.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    config: &'a Config,
    services: &'a [Service],
    nodes: &'a [Node],
    snapshot: &'a Snapshot,
}

impl<'a> Steps<'a> {
    /// Creates the steps for these services, nodes and resources. The service of a step must be among the
    /// services.
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

    /// Plans a step of a call for a service.
    ///
    /// # Errors
    ///
    /// The reason why the request of the service cannot be met. No write is planned then.
    pub fn step(&self, call: Call, step: Step, service: &ServiceKey) -> Result<Plan, PlanError> {
        match step {
            Step::FlippedLoadBalancer => self.reconcile_flipped_load_balancer(service),
            Step::PublicIp => self.reconcile_public_ip(service, call.wants()),
            Step::LoadBalancer => self.reconcile_load_balancer(service, call.wants()),
            Step::SecurityGroup => self.reconcile_security_group(service, None, call.wants()),
        }
    }

    /// Returns the load balancer of a service. If it has none: the one that it would get if `want` is true, else
    /// the cluster's.
    ///
    /// # Errors
    ///
    /// The reason why none can be chosen.
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

    /// Plans the service's frontend, rules and probes, or their removal. An empty load balancer is deleted. A
    /// missing public address is created.
    ///
    /// # Errors
    ///
    /// The reason why the request of the service cannot be met. No write is planned then.
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

    /// Plans the removal of the service's own parts from the load balancer of the other kind.
    ///
    /// # Errors
    ///
    /// The reason why the request of the service cannot be met. No write is planned then.
    pub fn reconcile_flipped_load_balancer(&self, service: &ServiceKey) -> Result<Plan, PlanError> {
        let classes = Classes {
            load_balancers: Balancers::Flipped,
            ..NOTHING
        };
        self.plan(self.request(service, true, classes))
    }

    /// Plans the service's security rules, or their removal. The group is never created.
    ///
    /// `address` is the destination of the rules, in place of the service's current address. Empty: any.
    ///
    /// # Errors
    ///
    /// The reason why the request of the service cannot be met, for example [`PlanError::AddressUnknown`]. No
    /// write is planned then.
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

    /// Plans the service's public address, and the deletion of tagged addresses that it no longer needs.
    ///
    /// # Errors
    ///
    /// The reason why the request of the service cannot be met. No write is planned then.
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
