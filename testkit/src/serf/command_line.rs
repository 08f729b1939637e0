use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Deserialize;

use super::agent::SerfAgent;
use crate::peers::{PeerOutput, output};
use crate::time::eventually;

/// A member as `serf members` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ListedMember {
    /// The node's name.
    pub name: String,
    /// The gossip address.
    pub addr: SocketAddr,
    /// `alive`, `leaving`, `left` or `failed`.
    pub status: String,
    /// The tags; bytes that are not UTF-8 are replaced.
    pub tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Listed {
    members: Vec<ListedMember>,
}

/// Commands of the `serf` command line.
impl SerfAgent {
    /// Runs `serf <command> <arguments>` against this agent.
    ///
    /// # Panics
    ///
    /// When it does not end in time.
    pub async fn run(&self, command: &str, arguments: &[&str]) -> PeerOutput {
        let mut serf = self.recipe.program.command();
        serf.arg(command);
        serf.arg(format!("-rpc-addr={}", self.rpc_addr()));
        if let Some(key) = &self.recipe.auth_key {
            serf.arg(format!("-rpc-auth={key}"));
        }
        serf.args(arguments);
        output(serf).await
    }

    /// The members as this agent sees them, in the order of their names.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn members(&self) -> Vec<ListedMember> {
        let listed = self.run("members", &["-format=json"]).await;
        let listed = listed.expect_success().stdout;
        match serde_json::from_str::<Listed>(&listed) {
            Ok(mut listed) => {
                listed.members.sort_by(|a, b| a.name.cmp(&b.name));
                listed.members
            }
            Err(error) => panic!("`serf members` answered {listed:?}: {error}"),
        }
    }

    /// The tags of this agent.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn own_tags(&self) -> BTreeMap<String, String> {
        let members = self.members().await;
        let own = members.into_iter().find(|m| m.name == self.name());
        own.expect("an agent is a member of its own cluster").tags
    }

    /// Waits until this agent sees a member in a status.
    ///
    /// # Panics
    ///
    /// When that takes too long.
    pub async fn wait_for(&self, name: &str, status: &str) {
        let what = format!("{} sees {name} {status}", self.name());
        eventually(what, || async {
            let members = self.members().await;
            members.iter().any(|m| m.name == name && m.status == status)
        })
        .await;
    }

    /// Sets a tag of this agent. Returns when the agent knows it; other agents follow a moment
    /// later.
    ///
    /// # Panics
    ///
    /// Panics if the agent rejects it.
    pub async fn set_tag(&self, key: &str, value: &str) {
        let tag = format!("{key}={value}");
        self.run("tags", &["-set", &tag]).await.expect_success();
    }

    /// Deletes one of its tags.
    ///
    /// # Panics
    ///
    /// Panics if the agent rejects it.
    pub async fn delete_tag(&self, key: &str) {
        self.run("tags", &["-delete", key]).await.expect_success();
    }

    /// Makes the agent leave its cluster, and waits for its end.
    ///
    /// # Panics
    ///
    /// Panics if it rejects, or does not exit with success.
    pub async fn leave(&mut self) {
        self.run("leave", &[]).await.expect_success();
        let status = self.ended().await;
        assert!(status.success(), "{}: {status}", self.name());
    }
}
