//! The state of this machine that `run` needs: files, certificates, ports. `run` and `check` share these checks.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use program_kit::with_causes;
use proxy_model::json::Origins;
use proxy_model::{Problem, Problems, Severity, pointer_to};
use proxy_runtime::server::{BindError, probe};
use proxy_runtime::upstream::TlsClient;

use crate::certificates;
use crate::settings::Settings;
use crate::traces;

/// Returns problems with files: errors keep `run` from starting, warnings do not, such as expired certificates.
/// Ports are not checked.
pub(crate) fn files(settings: &Settings, origins: &Origins) -> Problems {
    let mut problems = certificates::unusable(settings);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    if let Err(error) = TlsClient::new(provider) {
        let message = format!("the system's trusted certificates cannot be read: {error}");
        problems.push(
            Problem::error("", "no_trusted_certificates", message)
                .with_suggestion("on Debian the package ca-certificates has them"),
        );
    }
    if let Some(keys) = &settings.server.affinity_keys {
        problems.extend(keys.unusable());
    }
    let admin = settings.admin.as_ref();
    if let Some(tokens) = admin.and_then(|admin| admin.tokens.as_ref()) {
        problems.extend(tokens.unusable());
    }
    if let Err(unreadable) = settings.server.error_pages.load() {
        problems.extend(unreadable);
    }
    let log = settings.telemetry.access_log.as_ref();
    if let Some(path) = log.and_then(|log| log.file.as_deref())
        && let Err(error) = writable(path)
    {
        let message = format!(
            "the access log cannot be written to {}: {error}",
            path.display()
        );
        let pointer = "/Telemetry/AccessLog/File";
        problems.push(Problem::error(pointer, "unwritable_file", message));
    }
    if let Some(path) = &settings.server.handover
        && let Err(error) = new_file_beside(path)
    {
        let message = format!("no socket can be made at {}: {error}", path.display());
        problems.push(Problem::error(
            "/Server/Handover",
            "unwritable_file",
            message,
        ));
    }
    for (section, path) in settings.sources.kept() {
        let usable = discovery_core::check_directory(&path).and_then(|()| new_file_beside(&path));
        if let Err(error) = usable {
            let message = format!(
                "discovered services cannot be stored in {}, so a restart begins without them: {error}",
                path.display()
            );
            let pointer = pointer_to(&pointer_to("", section), "Persist");
            problems.push(Problem::warning(pointer, "unwritable_file", message));
        }
    }
    problems.extend(settings.sources.unusable());
    problems.extend(traces::unusable());
    origins.place(&mut problems);
    problems
}

/// Returns the addresses on which `run` could not listen, as errors. No address is listened on.
pub(crate) fn ports(settings: &Settings, origins: &Origins) -> Problems {
    // A running instance hands its sockets over.
    let has_predecessor = settings
        .server
        .handover
        .as_ref()
        .is_some_and(|path| path.exists());
    let listeners = settings.listeners.iter();
    let addresses: Vec<_> = listeners.clone().map(|listener| listener.address).collect();
    let listeners =
        listeners.map(|l| (pointer_to("/Listeners", &l.name), l.address, &addresses[..]));
    // The admin page has a socket of its own.
    let admin = settings
        .admin
        .as_ref()
        .map(|admin| ("/Admin".to_owned(), admin.address, &[][..]));
    let mut problems = Problems::new();
    for (pointer, address, all) in listeners.chain(admin) {
        match probe(address, all) {
            Ok(()) => {}
            Err(BindError::InUse { .. }) if has_predecessor => {}
            Err(error) => {
                let pointer = pointer_to(&pointer, "Address");
                let problem = Problem::error(pointer, "unusable_address", with_causes(&error));
                problems.push(match error {
                    BindError::InUse { .. } => problem
                        .with_suggestion("that is right if it is the instance that runs already"),
                    _ => problem,
                });
            }
        }
    }
    origins.place(&mut problems);
    problems
}

/// Returns the problems of this machine without those of sections that have an error of the configuration: a wrong
/// address is one mistake, not two.
pub(crate) fn not_said_yet(of_machine: Problems, said: &Problems) -> Problems {
    let is_said = |one: &Problem| {
        let inside = format!("{}/", one.pointer);
        !one.pointer.is_empty()
            && said
                .errors()
                .any(|error| error.pointer.starts_with(&inside))
    };
    let others = of_machine.into_iter().filter(|one| !is_said(one));
    others.collect()
}

/// Returns problems of this machine as warnings, for a configuration that is checked on another machine. A variable
/// that no machine could use stays an error.
pub(crate) fn elsewhere(problems: Problems) -> Problems {
    let is_of_machine = |problem: &Problem| problem.code != traces::INVALID_VARIABLE;
    let (of_machine, others): (Vec<_>, Vec<_>) = problems.into_iter().partition(is_of_machine);
    let mut all = Problems::from_iter(others);
    all.extend(as_warnings(Problems::from_iter(of_machine)));
    all
}

/// Returns problems of this machine as warnings, for a configuration that is checked beside the program that runs
/// with it.
pub(crate) fn as_warnings(problems: Problems) -> Problems {
    with_severity(problems, Severity::Warning)
}

/// Returns problems as errors, for a configuration that is checked on the machine that it is for.
pub(crate) fn as_errors(problems: Problems) -> Problems {
    with_severity(problems, Severity::Error)
}

fn with_severity(problems: Problems, severity: Severity) -> Problems {
    let same = problems.into_iter().map(|mut problem| {
        problem.severity = severity;
        problem
    });
    same.collect()
}

/// Returns an error if a file could not be appended to. Nothing is written, and no file stays.
fn writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => {
            OpenOptions::new().append(true).open(path).map(|_| ())
        }
        // To open a pipe would wait for its reader.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => new_file_beside(path),
        Err(error) => Err(error),
    }
}

/// Returns an error if no file can be made in the directory of `path`.
fn new_file_beside(path: &Path) -> io::Result<()> {
    let mut name = path
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_owned();
    name.push(format!(".{}.check", std::process::id()));
    let trial = path.with_file_name(name);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&trial)?;
    fs::remove_file(trial)
}

#[cfg(test)]
mod tests {
    use proxy_model::json::{Layer, Layered};

    use super::*;

    fn examined(text: &str) -> (Settings, Origins) {
        let layer = Layer::File {
            name: "file".to_owned(),
            text: text.to_owned(),
        };
        let document = Layered::new(vec![layer]).unwrap();
        let settings = Settings::read(&document.node, &mut Problems::new());
        (settings, document.origins)
    }

    fn codes(problems: &Problems) -> Vec<(String, String)> {
        let codes = problems
            .iter()
            .map(|p| (p.pointer.clone(), p.code.to_string()));
        codes.collect()
    }

    #[test]
    fn files_that_cannot_be_written_are_named_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let text = |log: &str, handover: &str| {
            serde_json::json!({
                "Telemetry": { "AccessLog": { "File": log } },
                "Server": { "Handover": handover },
            })
            .to_string()
        };
        let (settings, origins) = examined(&text(&path("access.log"), &path("h.sock")));
        assert!(files(&settings, &origins).is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let (settings, origins) = examined(&text(&path("none/access.log"), &path("none/h.sock")));
        let problems = files(&settings, &origins);
        let mut expected = vec![(
            "/Telemetry/AccessLog/File".to_owned(),
            "unwritable_file".to_owned(),
        )];
        if cfg!(target_os = "linux") {
            expected.push(("/Server/Handover".to_owned(), "unwritable_file".to_owned()));
        }
        assert_eq!(codes(&problems), expected);
        assert!(problems.has_errors() && !as_warnings(problems).has_errors());

        let (settings, origins) =
            examined(&text(&folder.path().display().to_string(), &path("h.sock")));
        assert_eq!(files(&settings, &origins).len(), 1);
    }

    #[test]
    fn addresses_in_use_are_named_unless_a_predecessor_has_them() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("h.sock");
        let text = serde_json::json!({
            "Listeners": {
                "taken": { "Address": taken.local_addr().unwrap().to_string() },
                "free": { "Address": "127.0.0.1:0" },
                "elsewhere": { "Address": "192.0.2.1:0" },
            },
            "Admin": { "Enabled": false },
            "Server": { "Handover": socket.display().to_string() },
        });
        let (settings, origins) = examined(&text.to_string());
        let at = |name: &str| {
            (
                format!("/Listeners/{name}/Address"),
                "unusable_address".to_owned(),
            )
        };
        let problems = ports(&settings, &origins);
        assert_eq!(codes(&problems), [at("elsewhere"), at("taken")]);
        assert!(
            problems
                .iter()
                .all(|problem| problem.origin.as_deref() == Some("file:1"))
        );
        if cfg!(target_os = "linux") {
            fs::write(&socket, "").unwrap();
            assert_eq!(codes(&ports(&settings, &origins)), [at("elsewhere")]);
        }
    }
}
