//! The state of a pipeline for the admin API, the metrics and the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::PipelineStatus;
use crate::admin::{Quarantine, QuarantineEntry, WarningEntry};
use crate::assemble::Reason;
use crate::sources::SourceStatus;

impl PipelineStatus {
    /// Returns the services that are not served as requested, by owner: those with resources that Envoy
    /// would reject, those with an unusable form in a source, and those that are partly served differently.
    #[must_use]
    pub fn not_as_wanted(&self) -> Vec<QuarantineEntry> {
        let mut entries: BTreeMap<String, QuarantineEntry> = BTreeMap::new();
        let mut add = |owner: String, reasons: Vec<String>, serves_last_known_good: bool| {
            let entry = entries
                .entry(owner)
                .or_insert_with_key(|owner| QuarantineEntry {
                    owner: owner.clone(),
                    reasons: Vec::new(),
                    serves_last_known_good: false,
                });
            entry.reasons.extend(reasons);
            entry.serves_last_known_good |= serves_last_known_good;
        };
        for it in &self.quarantined {
            let reasons = it.reasons.iter().map(ToString::to_string).collect();
            add(it.owner.to_string(), reasons, it.serves_last_known_good);
        }
        for source in &self.sources {
            for it in source.left_out.iter() {
                let owner = format!("{}/{}", source.name, it.service);
                add(owner, it.reasons.clone(), it.serves_last_known_good);
            }
        }
        for warning in &self.warnings {
            let reason = format!("{} ({})", warning.message, warning.code);
            add(warning.owner.to_string(), vec![reason], false);
        }
        entries.into_values().collect()
    }

    /// Returns all findings that need attention, each once: services that are kept from being served,
    /// differences between served and requested resources, problems of sources, and a failed write to disk.
    #[must_use]
    pub fn findings(&self) -> Vec<WarningEntry> {
        let quarantined = self.quarantined.iter().flat_map(|it| {
            let code = code_of(it.serves_last_known_good);
            let entry =
                move |reason: &Reason| found(it.owner.to_string(), code, reason.to_string());
            it.reasons.iter().map(entry)
        });
        let warnings = self.warnings.iter();
        let warnings = warnings.map(|it| found(it.owner.to_string(), it.code, it.message.clone()));
        let sources = self.sources.iter().flat_map(of_source);
        let persist = self.persist_failure.iter();
        let persist = persist.map(|why| found("persist".to_owned(), "not_kept", why.to_string()));
        quarantined
            .chain(warnings)
            .chain(sources)
            .chain(persist)
            .collect()
    }
}

fn found(owner: String, code: &str, message: String) -> WarningEntry {
    WarningEntry {
        owner,
        code: code.to_owned(),
        message,
    }
}

fn of_source(source: &SourceStatus) -> Vec<WarningEntry> {
    let mut entries = Vec::new();
    for it in source.left_out.iter() {
        for why in &it.reasons {
            let owner = format!("{}/{}", source.name, it.service);
            entries.push(found(
                owner,
                code_of(it.serves_last_known_good),
                why.clone(),
            ));
        }
    }
    let name = || source.name.to_string();
    if let Some(why) = &source.failure {
        entries.push(found(name(), "source_failing", why.to_string()));
    }
    // What keeps a service out is there already.
    let is_told = |why: &str| {
        let mut reasons = source.left_out.iter().flat_map(|it| &it.reasons);
        reasons.any(|reason| reason.contains(why))
    };
    let problems = source.problems.iter().filter(|why| !is_told(why));
    entries.extend(problems.map(|why| found(name(), "source_problem", why.clone())));
    entries
}

fn code_of(serves_last_known_good: bool) -> &'static str {
    match serves_last_known_good {
        true => "serves_last_good",
        false => "not_served",
    }
}

impl Quarantine for watch::Receiver<Arc<PipelineStatus>> {
    fn entries(&self) -> Vec<QuarantineEntry> {
        self.borrow().not_as_wanted()
    }

    fn warnings(&self) -> Vec<WarningEntry> {
        self.borrow().findings()
    }

    fn waiting_for(&self) -> Vec<String> {
        let status = self.borrow();
        let waiting = status.sources.iter().filter(|source| !source.is_ready);
        waiting
            .map(|source| match &source.failure {
                Some(failure) => format!("{}: {failure}", source.name),
                None => source.name.to_string(),
            })
            .collect()
    }
}
