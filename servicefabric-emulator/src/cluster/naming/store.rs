//! Names and their properties.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use super::{Property, PropertyValue, SubNames};
use crate::cluster::{Cluster, ErrorCode, FabricError, FabricName, Page, PageRequest};
use crate::hosting::Timestamp;

/// The maximum number of names.
const MAX_NAMES: usize = 500_000;
/// The maximum number of properties of a name.
const MAX_PROPERTIES: usize = 1000;
/// The maximum length of a property's name, in bytes.
const MAX_PROPERTY_NAME: usize = 800;
/// The maximum size of a property's value, in bytes.
pub(super) const MAX_VALUE: usize = 1024 * 1024;
/// The maximum size of all values of a name, in bytes.
const MAX_ALL_VALUES: usize = 16 * 1024 * 1024;

/// The names of a cluster.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct NameStore {
    pub(super) names: BTreeMap<FabricName, NameEntry>,
    /// The number that grows with each change.
    pub(super) sequence: i64,
}

/// A name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameEntry {
    /// True if the name is that of an application or a service.
    is_system: bool,
    /// True if a client created the name.
    is_user: bool,
    pub(super) properties: BTreeMap<String, Property>,
}

impl NameStore {
    /// Adds the name of an application or a service.
    pub(in crate::cluster) fn insert_system(&mut self, name: &FabricName, _now: Timestamp) {
        self.names.entry(name.clone()).or_default().is_system = true;
    }

    /// Removes the name of a deleted application or service, with its properties. A name that a client has
    /// created as well stays.
    pub(in crate::cluster) fn remove_system(&mut self, name: &FabricName) {
        let Some(entry) = self.names.get_mut(name) else {
            return;
        };
        entry.is_system = false;
        if !entry.is_user {
            self.names.remove(name);
        }
    }

    pub(super) fn entry(&self, name: &FabricName) -> Result<&NameEntry, FabricError> {
        self.names.get(name).ok_or_else(|| no_name(name))
    }

    /// Checks the limits before a property is written: its name, its size, and the total size.
    pub(super) fn check_put(
        &self,
        name: &FabricName,
        property: &str,
        value: &PropertyValue,
    ) -> Result<(), FabricError> {
        let entry = self.entry(name)?;
        if property.is_empty() {
            return Err(FabricError::invalid_argument("a property has a name"));
        }
        let too_large = |what: String| Err(FabricError::new(ErrorCode::ValueTooLarge, what));
        if property.len() > MAX_PROPERTY_NAME {
            return too_large(format!(
                "the name of a property has at most {MAX_PROPERTY_NAME} bytes"
            ));
        }
        if value.size() > MAX_VALUE {
            return too_large(format!(
                "the value of '{property}' has more than {MAX_VALUE} bytes"
            ));
        }
        // The new value replaces the one of the same name, which does not count.
        let others = entry
            .properties
            .iter()
            .filter(|(other, _)| *other != property);
        let (count, bytes) = others.fold((0, 0), |(count, bytes), (_, other)| {
            (count + 1, bytes + other.value.size())
        });
        if count >= MAX_PROPERTIES || bytes + value.size() > MAX_ALL_VALUES {
            return too_large(format!(
                "'{name}' has too many properties, or too large ones"
            ));
        }
        Ok(())
    }

    pub(super) fn put(
        &mut self,
        name: &FabricName,
        property: &str,
        value: PropertyValue,
        custom_type: &str,
        now: Timestamp,
    ) {
        self.sequence += 1;
        let sequence_number = self.sequence;
        let Some(entry) = self.names.get_mut(name) else {
            return;
        };
        let put = Property {
            name: property.to_owned(),
            value,
            custom_type: custom_type.to_owned(),
            parent: name.clone(),
            modified_at: now,
            sequence_number,
        };
        entry.properties.insert(property.to_owned(), put);
    }
}

/// Names and properties. Those of applications and services are managed automatically.
impl Cluster {
    /// Returns true if the name exists.
    pub fn name_exists(&self, name: &FabricName) -> bool {
        self.names.names.contains_key(name)
    }

    /// Creates a name, and the missing names above it.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_ALREADY_EXISTS`.
    pub fn create_name(&mut self, name: FabricName) -> Result<(), FabricError> {
        if self.name_exists(&name) {
            return Err(FabricError::new(
                ErrorCode::NameAlreadyExists,
                format!("there is a name '{name}' already"),
            ));
        }
        if self.names.names.len() >= MAX_NAMES {
            return Err(FabricError::new(
                ErrorCode::Fail,
                format!("there are {MAX_NAMES} names already"),
            ));
        }
        // Missing parents are created as well.
        let mut next = Some(name);
        while let Some(name) = next {
            next = name.parent();
            let entry = self.names.names.entry(name).or_default();
            entry.is_user = true;
        }
        Ok(())
    }

    /// Deletes a name.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`; `FABRIC_E_NAME_NOT_EMPTY` if it has names below it, has properties, or
    /// is that of an application or a service.
    pub fn delete_name(&mut self, name: &FabricName) -> Result<(), FabricError> {
        let entry = self.names.entry(name)?;
        let used = entry.is_system
            || !entry.properties.is_empty()
            || self.names_below(name).next().is_some();
        if used {
            return Err(FabricError::new(
                ErrorCode::NameNotEmpty,
                format!(
                    "'{name}' has names or properties, or is that of an application or a service"
                ),
            ));
        }
        self.names.names.remove(name);
        Ok(())
    }

    /// Returns all names below a name, in order. They are adjacent, since all begin with the name and `/`.
    fn names_below(&self, name: &FabricName) -> impl Iterator<Item = &FabricName> {
        // The slash excludes names that only begin with the same text.
        let prefix = format!("{name}/");
        let names = self
            .names
            .names
            .range::<str, _>((Excluded(prefix.as_str()), Unbounded));
        names
            .map(|(found, _)| found)
            .take_while(move |found| found.as_str().starts_with(&prefix))
    }

    /// Returns the names below a name: directly below it, or at any depth.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`.
    pub fn sub_names(
        &self,
        name: &FabricName,
        recursive: bool,
        page: &PageRequest,
    ) -> Result<SubNames, FabricError> {
        self.names.entry(name)?;
        let depth = name.path().split('/').count() + 1;
        let names = self.names_below(name);
        let names = names.filter(|found| {
            (recursive || found.path().split('/').count() == depth)
                && page
                    .lower_bound()
                    .is_none_or(|bound| found.as_str() > bound)
        });
        let page = Page::take(names.cloned(), page, FabricName::to_string);
        Ok(SubNames {
            names: page.items,
            continuation_token: page.continuation_token,
        })
    }

    /// Writes a property. `custom_type` is the writer's own name for the type of the value, or empty.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`; `FABRIC_E_VALUE_TOO_LARGE` for a name of more than 800 bytes, a value
    /// of more than 1 MiB, more than 1000 properties or more than 16 MiB together.
    pub fn put_property(
        &mut self,
        name: &FabricName,
        property: &str,
        value: PropertyValue,
        custom_type: &str,
    ) -> Result<(), FabricError> {
        self.names.check_put(name, property, &value)?;
        self.names.put(name, property, value, custom_type, self.now);
        Ok(())
    }

    /// A property.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`, `FABRIC_E_PROPERTY_DOES_NOT_EXIST`.
    pub fn property(&self, name: &FabricName, property: &str) -> Result<&Property, FabricError> {
        let entry = self.names.entry(name)?;
        entry
            .properties
            .get(property)
            .ok_or_else(|| no_property(name, property))
    }

    /// Deletes a property.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`, `FABRIC_E_PROPERTY_DOES_NOT_EXIST`.
    pub fn delete_property(
        &mut self,
        name: &FabricName,
        property: &str,
    ) -> Result<(), FabricError> {
        self.property(name, property)?;
        if let Some(entry) = self.names.names.get_mut(name) {
            entry.properties.remove(property);
            self.names.sequence += 1;
        }
        Ok(())
    }

    /// The properties of a name, by their names.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_NAME_DOES_NOT_EXIST`.
    pub fn properties(
        &self,
        name: &FabricName,
        page: &PageRequest,
    ) -> Result<Page<&Property>, FabricError> {
        let entry = self.names.entry(name)?;
        let bound = page.lower_bound().map_or(Unbounded, Excluded);
        let properties = entry
            .properties
            .range::<str, _>((bound, Unbounded))
            .map(|(_, found)| found);
        Ok(Page::take(properties, page, |found| found.name.clone()))
    }
}

fn no_name(name: &FabricName) -> FabricError {
    FabricError::new(
        ErrorCode::NameDoesNotExist,
        format!("there is no name '{name}'"),
    )
}

pub(super) fn no_property(name: &FabricName, property: &str) -> FabricError {
    let shown: String = property.chars().take(120).collect();
    FabricError::new(
        ErrorCode::PropertyDoesNotExist,
        format!("'{name}' has no property '{shown}'"),
    )
}
