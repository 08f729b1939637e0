use program_kit::{Failure, print};

use super::Found;
use super::cli::{Format, PlanArgs};
use super::inputs::PlanInputs;
use super::migrate;
use super::show::{self, Style};
use super::target::Azure;

/// Shows a plan. Fails if the request of a service cannot be met.
pub(super) async fn run(options: &PlanArgs) -> Result<Found, Failure> {
    let wanted = PlanInputs::read(&options.inputs, Some(&options.members)).await?;
    let azure = Azure::open(&options.target, &wanted.settings)?;
    if options.migrate_to_standard {
        return migrate::show(options, &wanted, &azure).await;
    }
    let planned = azure
        .executor
        .forecast(&wanted.services, &wanted.nodes)
        .await;
    let plan = planned.map_err(|error| Failure::from_error(&error))?;
    let text = match options.format {
        Format::Text => show::forecast(&plan, Style::of_stdout())
            .map_err(|error| Failure::from_error(&error))?,
        Format::Json => {
            serde_json::to_string_pretty(&plan).map_err(|error| Failure::from_error(&error))? + "\n"
        }
    };
    print(&text)?;
    let is_bad = plan.services().any(|(_, outcome)| outcome.error.is_some());
    let is_pending = options.detailed_exitcode && plan.actions().next().is_some();
    Ok(match (is_bad, is_pending) {
        (true, _) => Found::Bad,
        (false, true) => Found::Pending,
        (false, false) => Found::Good,
    })
}
