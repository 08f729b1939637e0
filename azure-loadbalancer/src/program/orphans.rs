use std::fmt::Write;

use azure_loadbalancer::config::OrphanPolicy;
use program_kit::{Failure, print};

use super::Found;
use super::cli::{Format, Orphans};
use super::inputs::PlanInputs;
use super::show;
use super::target::Azure;

/// Shows the resources that belong to no service. Fails if there are any.
pub(super) async fn run(options: &Orphans) -> Result<Found, Failure> {
    let mut wanted = PlanInputs::read(&options.inputs, None).await?;
    wanted.settings.config.orphans = OrphanPolicy::Report;
    let azure = Azure::open(&options.target, &wanted.settings)?;
    let planned = azure.executor.plan(&wanted.services, &wanted.nodes).await;
    let (plan, _) = planned.map_err(|error| Failure::from_error(&error))?;
    let orphans = &plan.orphans;
    let text = match options.format {
        Format::Json => {
            serde_json::to_string_pretty(orphans).map_err(|error| Failure::from_error(&error))?
                + "\n"
        }
        Format::Text if orphans.is_empty() => "Everything belongs to a service.\n".to_owned(),
        Format::Text => {
            let mut text = String::new();
            for orphan in orphans {
                // Writing to a string cannot fail.
                let line = format!("{} (of {})", orphan.id, orphan.owner);
                let _ = writeln!(text, "{}", show::plain(&line));
            }
            text
        }
    };
    print(&text)?;
    Ok(if orphans.is_empty() {
        Found::Good
    } else {
        Found::Bad
    })
}
