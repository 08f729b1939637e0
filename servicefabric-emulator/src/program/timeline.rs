use program_kit::{Failure, print, read};
use servicefabric_emulator::timeline::Script;

use super::cli::{self, Format};

/// Runs a script and prints what happens.
pub(super) fn run(options: &cli::TimelineArgs) -> Result<(), Failure> {
    let text = read(&options.file)?;
    let script = Script::read(&text).map_err(|errors| {
        Failure::new(format!(
            "{} is no script:\n{errors}",
            options.file.display()
        ))
    })?;
    let timeline = script.run();
    match options.format {
        Format::Text => print(&timeline.to_string()),
        Format::Json => {
            let json = serde_json::to_string_pretty(&timeline)
                .map_err(|error| Failure::new(format!("the timeline is no JSON: {error}")))?;
            print(&format!("{json}\n"))
        }
    }
}
