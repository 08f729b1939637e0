//! The same resources in another form: parts in another order, ids in another letter case.

use azure_loadbalancer::Snapshot;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The seed that varies the form of returned resources; zero returns them unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Echo(pub(crate) u64);

impl Echo {
    pub(crate) fn of(&mut self, snapshot: &Snapshot) -> Snapshot {
        if self.0 == 0 {
            return snapshot.clone();
        }
        let mut seen = snapshot.clone();
        seen.load_balancers = self.all(&seen.load_balancers);
        seen.public_ips = self.all(&seen.public_ips);
        seen.security_group = seen.security_group.map(|group| self.one(&group));
        seen.virtual_machines = self.all(&seen.virtual_machines);
        seen.network_interfaces = self.all(&seen.network_interfaces);
        seen
    }

    fn next(&mut self) -> u64 {
        // xorshift64, which never reaches zero.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn all<T: Serialize + DeserializeOwned>(&mut self, resources: &[T]) -> Vec<T> {
        let mut seen: Vec<T> = resources
            .iter()
            .map(|resource| self.one(resource))
            .collect();
        if !seen.is_empty() {
            let by = usize::try_from(self.next() % 7).unwrap_or(0) % seen.len();
            seen.rotate_left(by);
        }
        seen
    }

    fn one<T: Serialize + DeserializeOwned>(&mut self, resource: &T) -> T {
        let mut value = serde_json::to_value(resource).expect("resources are JSON");
        self.stir(&mut value);
        serde_json::from_value(value).expect("and are read again")
    }

    fn stir(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    match field {
                        Value::String(id) if key == "id" => {
                            *id = match self.next() % 3 {
                                0 => id.to_uppercase(),
                                1 => id.to_lowercase(),
                                _ => id.clone(),
                            };
                        }
                        other => self.stir(other),
                    }
                }
            }
            Value::Array(items) => {
                for item in items.iter_mut() {
                    self.stir(item);
                }
                if !items.is_empty() {
                    let by = usize::try_from(self.next() % 5).unwrap_or(0) % items.len();
                    items.rotate_left(by);
                }
            }
            _ => {}
        }
    }
}
