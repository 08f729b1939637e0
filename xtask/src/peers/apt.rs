//! Debian's package client with private state: lists, caches and database of the system are not
//! changed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Invocation;
use crate::say;

use super::{FETCH_LIMIT, download, last_lines};

/// Packages of the program loader, which must match the loader of the system.
const NEVER_UNPACKED: [&str; 2] = ["libc6", "libc-bin"];

/// A package to download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
}

/// An `apt-get` that reads the system's sources and keys, and writes only below its own directory.
pub(super) struct Apt {
    directory: PathBuf,
    /// The release to download from, in place of the system's sources.
    release: Option<&'static str>,
    /// The result of fetching the lists in this run, with the error if a part of them could not be
    /// fetched.
    lists: Option<Option<String>>,
}

impl Apt {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            release: None,
            lists: None,
        }
    }

    /// Creates a client for another release, from the mirror of the system.
    pub(super) fn of_release(directory: &Path, release: &'static str) -> Self {
        Self {
            release: Some(release),
            ..Self::new(directory)
        }
    }

    /// Downloads packages and their missing dependencies into `into`. Returns their number.
    pub(super) fn download(&mut self, packages: &[&str], into: &Path) -> crate::Result<usize> {
        self.update()?;
        let wanted = self.resolve(packages)?;
        say!("    {} packages", wanted.len());
        fs::create_dir_all(into)?;
        let exact = wanted
            .iter()
            .map(|package| format!("{}={}", package.name, package.version));
        download(&self.apt_get("download").args(exact).in_directory(into))?;
        Ok(wanted.len())
    }

    /// Fetches the lists of packages, once per run.
    fn update(&mut self) -> crate::Result<()> {
        if self.lists.is_some() {
            return Ok(());
        }
        if super::on_path("apt-get").is_none() || super::on_path("dpkg-deb").is_none() {
            return Err("this machine has no apt-get and dpkg-deb: it is no Debian".into());
        }
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(self.directory.join(part))?;
        }
        fs::write(self.directory.join("status"), "")?;
        let mut text = configuration(&self.directory);
        if let Some(release) = self.release {
            let sources = self.directory.join("sources.list");
            fs::write(&sources, format!("deb {} {release} main\n", mirror()?))?;
            text.push_str(&only_these_sources(&sources));
        }
        fs::write(self.configuration(), text)?;
        // A single failing source is no error: the packages may be found in others.
        let problem = download(&self.apt_get("update")).err();
        self.lists = Some(problem.map(|error| error.to_string()));
        Ok(())
    }

    /// Returns the packages to download.
    fn resolve(&self, packages: &[&str]) -> crate::Result<Vec<Package>> {
        // First with the state of the system; if that is broken, as if nothing were installed.
        let empty = ["-o".to_owned(), status_option(&self.directory)];
        let mut rejected = String::new();
        for status in [&[][..], &empty[..]] {
            let simulation = self
                .apt_get("install")
                .args(status)
                .args(["--simulate", "--reinstall", "--no-install-recommends"])
                .args(packages);
            let (ended, output) = simulation.capture(FETCH_LIMIT)?;
            if ended.is_success() {
                return Ok(packages_to_install(&output));
            }
            rejected = last_lines(&output);
        }
        let lists = self.lists.iter().flatten();
        Err(lists
            .fold(rejected, |why, lists| format!("{why}\n    {lists}"))
            .into())
    }

    fn apt_get(&self, verb: &str) -> Invocation {
        Invocation::new("apt-get")
            .args([OsStr::new("-q"), OsStr::new("-y"), OsStr::new("-c")])
            .arg(self.configuration())
            .arg(verb)
            // The output of a simulation is parsed.
            .env("LC_ALL", "C.UTF-8")
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("apt.conf")
    }
}

/// The Debian mirror of the system.
fn mirror() -> crate::Result<String> {
    let list = Invocation::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]);
    let (ended, output) = list.capture(FETCH_LIMIT)?;
    let found = mirror_among(&output).filter(|_| ended.is_success());
    found.ok_or_else(|| "the system's sources have no mirror of Debian".into())
}

/// Returns the first place that has Debian itself, not its security updates.
fn mirror_among(places: &str) -> Option<String> {
    let places = places.lines().map(str::trim);
    let mut mirrors = places.filter(|place| place.ends_with("/debian/"));
    mirrors.next().map(str::to_owned)
}

/// Settings that replace the system's sources. The keys stay those of the system.
fn only_these_sources(list: &Path) -> String {
    let list = list.display();
    format!("Dir::Etc::SourceList \"{list}\";\nDir::Etc::SourceParts \"-\";\n")
}

fn status_option(directory: &Path) -> String {
    format!("Dir::State::status={}", directory.join("status").display())
}

/// Settings that are read after those of the system.
fn configuration(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        r#"// Written by `cargo xtask peers`.
Dir::State::Lists "{directory}/lists";
Dir::Cache "{directory}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
// The directory may not be accessible to apt's own user.
APT::Sandbox::User "root";
// Otherwise an unreachable source is a warning, and nothing is retried.
APT::Update::Error-Mode "any";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
// These would clean up or notify others on the system.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"#
    )
}

/// Parses the output of `apt-get --simulate install`: lines like
/// `Inst libssl3 [3.0.20] (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64]) []`.
fn packages_to_install(simulation: &str) -> Vec<Package> {
    simulation
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
            let version = rest.split_once('(')?.1.split_whitespace().next()?;
            Some(Package {
                name: name.to_owned(),
                version: version.to_owned(),
            })
        })
        .filter(|package| !NEVER_UNPACKED.contains(&package.name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_simulation_names_what_to_download() {
        let output = "\
Reading package lists...
The following NEW packages will be installed:
  chromium libatomic1:i386
Inst libc6 (2.36-9+deb12u14 Debian:12.15/oldstable [amd64])
Inst libssl3 [3.0.20-1~deb12u1] (3.0.22-1~deb12u2 Debian-Security:12/oldstable-security [amd64]) []
Inst libatomic1:i386 (12.2.0-14 Debian:12.15/oldstable [i386])
Inst zlib1g (1:1.2.13.dfsg-1 Debian:12.15/oldstable [amd64])
Inst broken-line
Conf zlib1g (1:1.2.13.dfsg-1 Debian:12.15/oldstable [amd64])
";
        assert_eq!(
            packages_to_install(output),
            [
                package("libssl3", "3.0.22-1~deb12u2"),
                package("libatomic1:i386", "12.2.0-14"),
                package("zlib1g", "1:1.2.13.dfsg-1"),
            ]
        );
    }

    #[test]
    fn nothing_to_install_is_nothing_to_download() {
        assert_eq!(
            packages_to_install("curl is already the newest version.\n"),
            []
        );
    }

    #[test]
    fn the_mirror_is_the_system_s_own_and_not_that_of_security_updates() {
        let places = "http://deb.example/debian-security/\nhttp://deb.example/debian/\n";
        let mirror = mirror_among(places);
        assert_eq!(mirror.as_deref(), Some("http://deb.example/debian/"));
        assert_eq!(mirror_among("http://archive.example/ubuntu/\n"), None);
        let text = only_these_sources(Path::new("/somewhere/sources.list"));
        assert_eq!(
            text,
            "Dir::Etc::SourceList \"/somewhere/sources.list\";\nDir::Etc::SourceParts \"-\";\n"
        );
    }

    #[test]
    fn apt_writes_below_its_own_directory_and_runs_no_hook_of_the_system() {
        let text = configuration(Path::new("/somewhere/apt"));
        assert!(text.contains("Dir::State::Lists \"/somewhere/apt/lists\";"));
        assert!(text.contains("Dir::Cache \"/somewhere/apt/cache\";"));
        assert!(text.contains("#clear APT::Update::Post-Invoke;"));
        assert_eq!(
            status_option(Path::new("/somewhere/apt")),
            "Dir::State::status=/somewhere/apt/status"
        );
    }
}
