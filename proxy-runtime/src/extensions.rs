//! The filters and layers that a program registered, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use proxy_model::compiled::Route;
use proxy_model::config::TransformConfig;
use proxy_model::{Problem, Problems, pointer_to, same_id};

use crate::contain::contained_call;
use crate::filter::{Filter, Filters, NamedFilter};
use crate::layer::{BoxLayer, RouteLayers, RouteService, boxed};
use crate::policy::{Around, PolicySource, RoutePolicies};

/// The filters and layers of the program, by name, which is compared ignoring case.
#[derive(Default)]
pub(crate) struct Extensions {
    filters: BTreeMap<Arc<str>, Arc<dyn Filter>>,
    layers: BTreeMap<Arc<str>, Arc<BoxLayer>>,
    /// The program's own transforms: functions that create filters, by key.
    transforms: BTreeMap<Arc<str>, Arc<MakeTransform>>,
    /// Functions that create filters for all routes.
    hooks: Vec<Arc<RouteHook>>,
    policies: Option<Arc<dyn PolicySource>>,
    /// The innermost service, inside all layers; present if there are layers or policies.
    rest: Option<RouteService>,
}

/// Creates a filter from an entry of `Transforms`, or returns the problem with the entry.
pub(crate) type MakeTransform =
    dyn Fn(&TransformConfig) -> Result<Arc<dyn Filter>, String> + Send + Sync;

/// Creates filters for a route.
pub(crate) type RouteHook = dyn Fn(&Route) -> Vec<Arc<dyn Filter>> + Send + Sync;

/// The policies, filters and layers of one route. There is at least one.
pub(crate) struct RouteExtensions {
    /// The policies of the route, which are around its layers if it has any.
    policies: Option<Arc<dyn RoutePolicies>>,
    filters: Option<Filters>,
    layers: Option<RouteLayers>,
}

impl Extensions {
    /// Adds a filter; the last one of a name counts.
    pub(crate) fn register_filter(&mut self, name: Arc<str>, filter: Arc<dyn Filter>) {
        register(&mut self.filters, name, filter);
    }

    /// Registers a layer around the `rest` of a route. If a name is registered twice, the last one counts.
    pub(crate) fn register_layer(
        &mut self,
        name: Arc<str>,
        layer: Arc<BoxLayer>,
        rest: RouteService,
    ) {
        self.rest = Some(rest);
        register(&mut self.layers, name, layer);
    }

    /// Adds a transform; the last one of a key counts.
    pub(crate) fn register_transform(&mut self, key: Arc<str>, make: Arc<MakeTransform>) {
        register(&mut self.transforms, key, make);
    }

    /// Adds filters to all routes.
    pub(crate) fn register_hook(&mut self, hook: Arc<RouteHook>) {
        self.hooks.push(hook);
    }

    /// Returns the keys of the program's transforms, with the functions that create their filters.
    pub(crate) fn transforms(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<MakeTransform>)> {
        self.transforms.iter()
    }

    /// Sets the source of policies around the `rest` of a route.
    pub(crate) fn register_policies(&mut self, source: Arc<dyn PolicySource>, rest: RouteService) {
        self.rest = Some(rest);
        self.policies = Some(source);
    }

    /// The factory of policies.
    pub(crate) fn policies(&self) -> Option<&Arc<dyn PolicySource>> {
        self.policies.as_ref()
    }

    pub(crate) fn filter_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.filters.keys()
    }

    pub(crate) fn layer_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.layers.keys()
    }

    /// Returns the extensions of a route, `None` if it has none. Existing layers keep their state.
    ///
    /// # Errors
    ///
    /// The route names some that are not registered.
    pub(crate) fn resolve(
        &self,
        route: &Route,
        policies: Option<Arc<dyn RoutePolicies>>,
        before: Option<&RouteExtensions>,
    ) -> Result<Option<Box<RouteExtensions>>, Problems> {
        let names_none = route.filters().is_empty() && route.transforms().own().is_empty();
        if names_none && self.hooks.is_empty() && route.layers().is_empty() && policies.is_none() {
            return Ok(None);
        }
        // Without layers the policies are asked directly.
        let inside = policies.as_ref().filter(|_| !route.layers().is_empty());
        let around = inside.map(|policies| {
            let (policies, route) = (Arc::clone(policies), Arc::new(route.clone()));
            boxed(Around { policies, route })
        });
        let mut problems = Problems::new();
        let filters = self.filters_of(route, &mut problems);
        let kept = before.and_then(|before| before.layers.as_ref());
        let layers = match kept.filter(|kept| kept.are(route.layers())) {
            Some(kept) => Some(kept.clone()),
            None => self.layers_of(route, &mut problems),
        };
        let layers = layers.map(|layers| layers.inside(around.as_deref()));
        if problems.has_errors() {
            return Err(problems);
        }
        if policies.is_none() && filters.is_none() && layers.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(RouteExtensions {
            policies,
            filters,
            layers,
        })))
    }

    fn filters_of(&self, route: &Route, problems: &mut Problems) -> Option<Filters> {
        let mut filters = Vec::with_capacity(route.filters().len());
        for (position, name) in route.filters().iter().enumerate() {
            match find(&self.filters, name) {
                Some((name, filter)) => filters.push(NamedFilter {
                    name: Arc::clone(name),
                    filter: Arc::clone(filter),
                }),
                None => problems.push(not_registered(route, "Filters", position, name)),
            }
        }
        self.add_transforms(route, &mut filters, problems);
        for hook in &self.hooks {
            let made = contained_call(|| hook(route)).unwrap_or_else(|panic| {
                problems.push(Problem::error(
                    pointer_to("/Routes", route.id().as_str()),
                    "route_hook",
                    format!("a hook for routes panicked: {}", panic.0),
                ));
                Vec::new()
            });
            filters.extend(made.into_iter().map(|filter| NamedFilter {
                name: Arc::from("hook"),
                filter,
            }));
        }
        (!filters.is_empty()).then(|| Filters::new(filters))
    }

    /// Adds the filters of the program's transforms, in the order of the list.
    fn add_transforms(
        &self,
        route: &Route,
        filters: &mut Vec<NamedFilter>,
        problems: &mut Problems,
    ) {
        let entries = route.config().transforms.as_deref().unwrap_or_default();
        for &position in route.transforms().own() {
            let mut pointer = pointer_to("/Routes", route.id().as_str());
            pointer.push_str(&format!("/Transforms/{position}"));
            let Some(entry) = entries.get(position) else {
                continue;
            };
            let is_its = |key: &str| {
                entry
                    .keys()
                    .any(|written| written.eq_ignore_ascii_case(key))
            };
            // The configuration may have been compiled with the options of another builder.
            let Some((key, make)) = self.transforms.iter().find(|(key, _)| is_its(key)) else {
                let message = "this proxy has no transform for this entry";
                let suggestion = "register it with `ProxyBuilder::transform`";
                let problem = Problem::error(pointer, "unknown_transform", message);
                problems.push(problem.with_suggestion(suggestion));
                continue;
            };
            match make_filter(&**make, entry) {
                Ok(filter) => filters.push(NamedFilter {
                    name: Arc::clone(key),
                    filter,
                }),
                Err(reason) => problems.push(Problem::error(
                    pointer,
                    "invalid_transform_value",
                    format!("`{key}` of the program: {reason}"),
                )),
            }
        }
    }

    fn layers_of(&self, route: &Route, problems: &mut Problems) -> Option<RouteLayers> {
        if route.layers().is_empty() {
            return None;
        }
        let mut service = self.rest.clone();
        // The first of the list is the last to be put around.
        for (position, name) in route.layers().iter().enumerate().rev() {
            match find(&self.layers, name) {
                Some((_, layer)) => service = service.map(&**layer),
                None => problems.push(not_registered(route, "Layers", position, name)),
            }
        }
        service.map(|service| RouteLayers::new(route.layers(), service))
    }
}

/// Creates the filter of an entry. A panic is an error of the entry.
pub(crate) fn make_filter(
    make: &MakeTransform,
    entry: &TransformConfig,
) -> Result<Arc<dyn Filter>, String> {
    contained_call(|| make(entry)).unwrap_or_else(|panic| Err(format!("it panicked: {}", panic.0)))
}

fn register<T: ?Sized>(registered: &mut BTreeMap<Arc<str>, Arc<T>>, name: Arc<str>, new: Arc<T>) {
    registered.retain(|known, _| !same_id(known, &name));
    registered.insert(name, new);
}

fn find<'a, T: ?Sized>(
    registered: &'a BTreeMap<Arc<str>, Arc<T>>,
    name: &str,
) -> Option<(&'a Arc<str>, &'a Arc<T>)> {
    registered.iter().find(|(known, _)| same_id(known, name))
}

fn not_registered(route: &Route, list: &str, position: usize, name: &str) -> Problem {
    let (kind, code, method) = match list {
        "Filters" => ("filter", "unknown_filter", "filter"),
        _ => ("layer", "unknown_layer", "layer"),
    };
    let route = pointer_to("/Routes", route.id().as_str());
    Problem::error(
        format!("{route}/{list}/{position}"),
        code,
        format!("this proxy has no {kind} called `{name}`"),
    )
    .with_suggestion(format!("register it with `ProxyBuilder::{method}`"))
}

impl RouteExtensions {
    /// The policies of a route without layers, which have them around.
    pub(crate) fn policies(&self) -> Option<&dyn RoutePolicies> {
        match self.layers {
            None => self.policies.as_deref(),
            Some(_) => None,
        }
    }

    /// The policies of the route, wherever they are asked.
    pub(crate) fn all_policies(&self) -> Option<&dyn RoutePolicies> {
        self.policies.as_deref()
    }

    pub(crate) fn filters(&self) -> Option<&Filters> {
        self.filters.as_ref()
    }

    pub(crate) fn layers(&self) -> Option<&RouteLayers> {
        self.layers.as_ref()
    }
}

impl fmt::Debug for RouteExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteExtensions")
            .field("policies", &self.policies.is_some())
            .field("filters", &self.filters)
            .field("layers", &self.layers)
            .finish()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("filters", &self.filters.keys())
            .field("layers", &self.layers.keys())
            .field("transforms", &self.transforms.keys())
            .field("policies", &self.policies.is_some())
            .finish()
    }
}
