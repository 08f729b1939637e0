//! The evaluation of a single service: from the source's data to a fragment of configuration that is known
//! to be good.

use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::ProxyConfig;
use proxy_model::{CompileOptions, Problem, Problems, Snapshot};

use crate::contain::contained_call;
use crate::discovery::{DiscoveredService, ServiceContent};
use crate::filter::{ConfigFilter, FilterContext, filter_config, filter_shared};
use crate::labels::LabelsParser;

/// The evaluation of a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Evaluation {
    /// The service's configuration. `None` if the service did not opt in to be served. It has no meaning if
    /// there are errors.
    pub(super) fragment: Option<Arc<ProxyConfig>>,
    /// The service's problems.
    pub(super) problems: Problems,
    /// The service's last known good rules with its current destinations, in case the fragment is unusable.
    pub(super) fallback: Option<Arc<ProxyConfig>>,
    /// True if some cluster of the fallback has no destination although there are instances.
    pub(super) has_unusable: bool,
}

impl Evaluation {
    /// Returns true if the service can serve in this form.
    pub(super) fn is_good(&self) -> bool {
        !self.problems.has_errors()
    }

    pub(super) fn rejected(problem: Problem) -> Self {
        Self {
            fragment: None,
            problems: problem.into(),
            fallback: None,
            has_unusable: false,
        }
    }
}

/// Evaluates services. Everything here is synchronous and may take its time.
#[derive(Clone)]
pub(super) struct Evaluator {
    pub(super) source: Arc<str>,
    pub(super) parser: Arc<dyn LabelsParser>,
    pub(super) filters: Vec<Arc<dyn ConfigFilter>>,
    pub(super) compile: CompileOptions,
    /// The time for which unreadable destinations continue to serve.
    pub(super) unread_grace: Duration,
}

impl Evaluator {
    pub(super) fn evaluate(&self, service: &DiscoveredService) -> Evaluation {
        let mut problems = service.problems.clone();
        let fragment = match &service.content {
            ServiceContent::Config(config) => Some(Arc::clone(config)),
            ServiceContent::NotEnabled => None,
            ServiceContent::Labelled(described) => {
                match contained_call(|| self.parser.parse(&service.name, described)) {
                    Ok(parsed) => {
                        problems.append(parsed.problems);
                        parsed.fragment.map(Arc::new)
                    }
                    Err(broken) => {
                        let message = format!("the labels parser {broken}");
                        problems.push(Problem::error("", "parser_failed", message));
                        None
                    }
                }
            }
            ServiceContent::Failed => {
                if !problems.has_errors() {
                    let message = "the source could not read the service";
                    problems.push(Problem::error("", "service_unreadable", message));
                }
                None
            }
        };
        let fragment = fragment.and_then(|fragment| self.check(fragment, &mut problems));
        Evaluation {
            fragment,
            problems,
            fallback: None,
            has_unusable: false,
        }
    }

    /// Filters and compiles a fragment.
    fn check(
        &self,
        mut fragment: Arc<ProxyConfig>,
        problems: &mut Problems,
    ) -> Option<Arc<ProxyConfig>> {
        problems.append(filter_shared(&self.filters, &self.context(), &mut fragment));
        self.check_compiles(&fragment, problems);
        Some(fragment)
    }

    /// Runs the filters over a fragment.
    pub(super) fn filter(&self, fragment: &mut ProxyConfig) -> Problems {
        filter_config(&self.filters, &self.context(), fragment)
    }

    fn context(&self) -> FilterContext<'_> {
        FilterContext {
            provider: &self.source,
        }
    }

    /// Reports what keeps a fragment from serving.
    pub(super) fn check_compiles(&self, fragment: &Arc<ProxyConfig>, problems: &mut Problems) {
        match Snapshot::compile(Arc::clone(fragment), &self.compile) {
            Ok((_, warnings)) => problems.append(warnings),
            Err(errors) => problems.append(errors),
        }
    }
}
