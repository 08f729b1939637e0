//! The size of a service's configuration. A label that is written once may be copied for each partition,
//! listener and role, so the size of the result is limited before it is made.

use proxy_model::Problem;

use super::Layout;
use crate::labels::options::ListenerMode;
use crate::labels::partitions::Division;
use crate::labels::read::Settings;
use crate::labels::yarp::PREFIX;

/// Maximum number of bytes of labels that may be copied for one service.
const MAX_BYTES: usize = 64 << 20;

/// Number of parts with own clusters that the partitions make.
pub(super) fn groups(division: Division, order: &[usize]) -> usize {
    match division {
        Division::Merged => 1,
        Division::ById | Division::ByKey => order.len(),
    }
}

/// Maximum number of listeners, beyond which the service is too large regardless of its other parts.
pub(super) fn most_listeners(settings: &Settings, groups: usize, candidates: usize) -> usize {
    let each = groups
        .saturating_add(candidates)
        .saturating_mul(settings.roles.pools().len());
    settings.max_generated / each.max(1)
}

/// Rejects a service that would become too large.
pub(super) fn check(layout: &Layout<'_>) -> Result<(), Problem> {
    let labelled = layout.labelled;
    let (listeners, pools) = (layout.listeners.len(), layout.pools.len());
    let groups = groups(layout.division, &layout.order);
    let clusters = product(&[groups, listeners, pools]);
    let destinations = product(&[layout.candidates.len(), listeners, pools]);
    // A route has a copy, or an entry, for each group.
    let copies = product(&[groups, pools]);
    let routes = product(&[labelled.routes.len(), copies]);
    let all = clusters.saturating_add(destinations).saturating_add(routes);
    let most = labelled.settings.max_generated;
    if all > most {
        // Names of listeners are not looked for any longer once there are too many.
        let at_least = match labelled.settings.listeners {
            ListenerMode::PerListener => "at least ",
            ListenerMode::One => "",
        };
        let message = format!(
            "the service would become {at_least}{clusters} clusters with {destinations} destinations and {routes} routes or \
             entries of routes, together more than {most}: it has {} routes, {} replicas, {} partitions and {listeners} \
             listeners",
            labelled.routes.len(),
            layout.candidates.len(),
            layout.order.len(),
        );
        let problem = Problem::error("", "too_large", message);
        return Err(problem.with_suggestion(
            "use `PartitionMode` = `Merge` or `ListenerMode` = `One`, or raise the limit",
        ));
    }
    let bytes = [
        ("Backend.", clusters),
        ("Destinations.", destinations),
        ("Routes.", copies),
    ]
    .iter()
    .map(|&(part, times)| bytes_of(layout, part).saturating_mul(times))
    .fold(0, usize::saturating_add);
    if bytes > MAX_BYTES {
        let message = format!(
            "the labels of the service, copied for all its parts, would have {bytes} bytes"
        );
        return Err(Problem::error("", "too_large", message));
    }
    Ok(())
}

fn product(factors: &[usize]) -> usize {
    factors
        .iter()
        .fold(1, |product, &factor| product.saturating_mul(factor))
}

/// Number of bytes of the labels of one part.
fn bytes_of(layout: &Layout<'_>, part: &str) -> usize {
    let begin = PREFIX.len();
    layout
        .service
        .labels
        .iter()
        .filter(|(key, _)| key.get(begin..).is_some_and(|rest| rest.starts_with(part)))
        .map(|(key, value)| key.len() + value.len())
        .sum()
}
