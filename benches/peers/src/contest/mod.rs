//! One case: all proxies are started, measured in turn in each round, and stopped.

mod latency;
mod measure;
mod score;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::case::{Case, Pains, Shape};
use crate::origin::Origin;
use crate::proxies::{Certificate, Kind, Ports, Programs, Protocol, Running, Setup, guarded};
use crate::system::{self, Cores};

pub(crate) use self::latency::Latency;
pub(crate) use self::score::{Contestant, Outcome, Score};

/// The shared state of all cases.
pub(crate) struct Field<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) kinds: &'a [Kind],
    pub(crate) pains: Pains,
    /// True if two workers are measured even if they share cores with the load.
    pub(crate) crowded: bool,
    pub(crate) directory: &'a Path,
    pub(crate) certificate: &'a Certificate,
    pub(crate) tls: &'a Arc<ClientConfig>,
    pub(crate) open_files: usize,
    pub(crate) cores: &'a [usize],
}

/// A running proxy.
struct Entrant {
    score: Score,
    running: Option<Running>,
    address: SocketAddr,
}

/// The reason for the user why a case was left out.
pub(crate) struct LeftOut(pub(crate) String);

impl From<io::Error> for LeftOut {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl Field<'_> {
    /// Measures one case, and prints its progress.
    pub(crate) fn measure(
        &self,
        case: &'static Case,
        with_syscalls: bool,
    ) -> Result<Outcome, LeftOut> {
        let contestants = self.contestants(case);
        let workers = contestants
            .iter()
            .map(|each| each.workers)
            .max()
            .unwrap_or(1);
        let cores = Cores::plan(self.cores, workers)
            .ok_or_else(|| LeftOut("there are fewer cores than workers".to_owned()))?;
        if workers > 1 && !cores.are_apart() && !self.crowded {
            let needed = workers + 2;
            return Err(LeftOut(format!(
                "{workers} workers, origin and generator need {needed} cores, and there are {}; `--crowded` measures all the same",
                self.cores.len()
            )));
        }
        let origin = Origin::start(Some(vec![cores.origin]))?;
        let mut entrants = Vec::new();
        for contestant in contestants {
            entrants.push(self.enter(case, contestant, &origin, &cores)?);
        }
        system::pin(&[cores.generator])?;
        for round in 0..self.rounds(case) {
            self.round(case, round, &mut entrants);
        }
        if with_syscalls {
            self.count_syscalls(case, &mut entrants);
        }
        Ok(Outcome {
            case,
            scores: entrants.into_iter().map(|entrant| entrant.score).collect(),
        })
    }

    fn contestants(&self, case: &Case) -> Vec<Contestant> {
        if let Shape::Workers { .. } = case.shape {
            return [1, 2]
                .map(|workers| Contestant {
                    kind: Kind::Gateway,
                    workers,
                })
                .to_vec();
        }
        let speak = self.kinds.iter().filter(|kind| case.has(**kind));
        speak
            .map(|kind| Contestant {
                kind: *kind,
                workers: 1,
            })
            .collect()
    }

    /// The number of rounds: one for memory, which varies little and cannot be measured twice.
    fn rounds(&self, case: &Case) -> usize {
        match case.shape {
            Shape::Idle { .. } => 1,
            _ => self.pains.rounds,
        }
    }

    /// Starts a contestant on the proxy cores. One that fails to start stays, with the reason.
    fn enter(
        &self,
        case: &Case,
        contestant: Contestant,
        origin: &Origin,
        cores: &Cores,
    ) -> io::Result<Entrant> {
        let mut score = Score::new(contestant);
        let ports = Ports::choose()?;
        let directory =
            self.directory
                .join(format!("{}-{}", contestant.kind.name(), contestant.workers));
        fs::create_dir_all(&directory)?;
        let setup = Setup {
            directory: &directory,
            ports,
            http2_origins: false,
            origins: origin.addresses(),
            workers: contestant.workers,
            large_bodies: case.has_large_bodies(),
            open_files: self.open_files,
            certificate: self.certificate,
        };
        // Child processes inherit the affinity of this thread.
        system::pin(&cores.proxy[..contestant.workers])?;
        let started = self.programs.find(contestant.kind).and_then(|program| {
            let command = contestant
                .kind
                .command(&program, &setup)
                .and_then(|command| guarded(contestant.kind, &command))
                .map_err(|error| error.to_string())?;
            let mut running = Running::start(contestant.kind, command, &directory)
                .map_err(|error| error.to_string())?;
            let forwarded = running.ready(contestant.kind.address(ports, Protocol::Http1))?;
            Ok((running, forwarded))
        });
        let running = match started {
            Ok((running, forwarded)) => {
                score.missing = forwarded.missing().filter(|_| contestant.kind.forwards());
                Some(running)
            }
            Err(why) => {
                println!("    {}: CANNOT BE MEASURED: {why}", contestant.label());
                score.complaints.push(why);
                None
            }
        };
        Ok(Entrant {
            score,
            running,
            address: contestant.kind.address(ports, case.protocol),
        })
    }

    /// Measures all contestants in turn.
    fn round(&self, case: &Case, round: usize, entrants: &mut [Entrant]) {
        for index in order(round, entrants.len()) {
            let entrant = &mut entrants[index];
            let Some(running) = &entrant.running else {
                entrant.score.values.push(None);
                entrant.score.latency.push(None);
                continue;
            };
            let measured = match case.shape {
                Shape::Idle { connections } => {
                    let value = self.idle(case, connections, entrant.address, running);
                    value.map(|value| (value, None))
                }
                _ => self.busy(case, entrant.address, running, &mut entrant.score),
            };
            if let Err(why) = &measured {
                let label = entrant.score.contestant.label();
                println!("    ROUND {} OF {label} DISCARDED: {why}", round + 1);
                entrant
                    .score
                    .complaints
                    .push(format!("round {}: {why}", round + 1));
            }
            let (value, latency) = measured.ok().unzip();
            entrant.score.values.push(value);
            entrant.score.latency.push(latency.flatten());
        }
        let seen: Vec<_> = entrants
            .iter()
            .filter_map(|entrant| {
                let value = entrant.score.values.last().copied().flatten()?;
                Some(format!("{} {value:.1}", entrant.score.contestant.label()))
            })
            .collect();
        println!(
            "    round {}/{}: {}",
            round + 1,
            self.rounds(case),
            seen.join(", ")
        );
    }
}

/// The order of contestants: reversed in every second round, so that none always follows the same
/// one.
fn order(round: usize, entrants: usize) -> Vec<usize> {
    let forwards = 0..entrants;
    if round.is_multiple_of(2) {
        forwards.collect()
    } else {
        forwards.rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn rounds_go_there_and_back() {
        let rounds: Vec<_> = (0..4).map(|round| order(round, 3)).collect();
        assert_eq!(rounds, [[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0]]);
    }
}
