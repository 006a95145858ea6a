//! Providers and waiting needs of one interface by the value of a property, so
//! that a filter by equality costs a look-up and not a walk.
//! Not for: predicates, which have to be asked.

use std::collections::{BTreeSet, HashMap};

use super::properties::{Properties, Text, Value};

/// Offers and needs with one value of one property.
#[derive(Default)]
pub(super) struct Group {
    pub offers: BTreeSet<u32>,
    pub needs: BTreeSet<u32>,
}

/// By property, then by value. A property is in it once a filter names it.
#[derive(Default)]
pub(super) struct Index(HashMap<Text, HashMap<Value, Group>>);

impl Index {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn knows(&self, name: &Text) -> bool {
        self.0.contains_key(name)
    }

    /// From now on `name` is indexed: the caller adds the offers that are there.
    pub fn learn(&mut self, name: &Text) {
        self.0.entry(name.clone()).or_default();
    }

    pub fn group(&self, name: &Text, value: &Value) -> Option<&Group> {
        self.0.get(name)?.get(value)
    }

    pub fn add_need(&mut self, name: &Text, value: &Value, need: u32) {
        let values = self.0.entry(name.clone()).or_default();
        values.entry(value.clone()).or_default().needs.insert(need);
    }

    pub fn take_need(&mut self, name: &Text, value: &Value, need: u32) {
        self.change(name, value, |group| group.needs.remove(&need));
    }

    pub fn add_offer(&mut self, properties: &Properties, offer: u32) {
        for property in properties.iter() {
            if let Some(values) = self.0.get_mut(&property.name) {
                let group = values.entry(property.value.clone()).or_default();
                group.offers.insert(offer);
            }
        }
    }

    pub fn take_offer(&mut self, properties: &Properties, offer: u32) {
        for property in properties.iter() {
            self.change(&property.name, &property.value, |group| {
                group.offers.remove(&offer)
            });
        }
    }

    /// The needs that wait for a provider with one of these properties.
    pub fn waiting_for(&self, properties: &Properties) -> Vec<u32> {
        let groups = properties
            .iter()
            .filter_map(|one| self.group(&one.name, &one.value));
        groups
            .flat_map(|group| group.needs.iter().copied())
            .collect()
    }

    /// Changes a group and forgets it when nothing is left in it.
    fn change(&mut self, name: &Text, value: &Value, change: impl FnOnce(&mut Group) -> bool) {
        let Some(values) = self.0.get_mut(name) else {
            return;
        };
        let Some(group) = values.get_mut(value) else {
            return;
        };
        change(group);
        if group.offers.is_empty() && group.needs.is_empty() {
            values.remove(value);
        }
    }
}
