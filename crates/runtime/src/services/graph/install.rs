//! Installing services with their needs and offers, and taking them out.
//! Not for: whether they run (`up`, `down`).

use std::rc::Rc;

use prony_base::Instant;

use super::{
    AnyTable, Asked, Attachment, Edge, Filter, Graph, Index, Interface, Links, List, NONE, Need,
    Offer, Properties, Rare, Recipe, Rule, Slot, Spec, State, Text,
};

/// The contents of a freed service, to be dropped when nothing is borrowed.
pub(in crate::services) type Freed = (Rc<dyn Recipe>, Option<Box<Rare>>);

impl Graph {
    /// The number of an interface, which is new or known.
    pub fn intern(&mut self, spec: &Spec) -> u32 {
        let Graph {
            by_type,
            interfaces,
            ..
        } = self;
        *by_type.entry(spec.type_id).or_insert_with(|| {
            interfaces.push(Interface {
                type_id: spec.type_id,
                name: (spec.name)().into(),
                table: (spec.table)(),
                offers: List::default(),
                plain: List::default(),
                filtered: List::default(),
                many: List::default(),
                index: Index::default(),
                version: 0,
                free_places: Vec::new(),
                places: 0,
            });
            interfaces.len() as u32 - 1
        })
    }

    /// Installs a service without needs, offers and recipe; it is not armed yet. It is
    /// found once [`set_recipe`](Graph::set_recipe) gives it its recipe.
    pub fn insert(&mut self, name: Text, properties: Properties, constructed: bool) -> u32 {
        let generation = self.slots.next_place().map_or(0, |slot| slot.generation);
        self.slots.insert(Slot {
            generation,
            state: State::Stopped,
            wanted: true,
            removing: false,
            constructed,
            start_queued: false,
            leave_queued: false,
            leave_after_start: false,
            awaited: false,
            unmet: 0,
            type_number: 0,
            needs: NONE,
            offers: NONE,
            dependents: List::default(),
            order: Links::default(),
            asked_by: NONE,
            factory_edge: NONE,
            starts: 0,
            name,
            properties,
            recipe: None,
            since: Instant::ZERO,
            start_took: None,
            stop_took: None,
            rare: None,
        })
    }

    /// Gives a service that was inserted its recipe.
    pub fn set_recipe(&mut self, service: u32, recipe: Rc<dyn Recipe>) {
        self.slots[service].recipe = Some(recipe);
    }

    /// Adds a need at the end of a service's chain, whose last one is `after`.
    pub fn add_need(
        &mut self,
        service: u32,
        after: u32,
        which: u32,
        what: (u32, Rule),
        filter: Option<Rc<Filter>>,
    ) -> u32 {
        let (interface, rule) = what;
        if let Some((name, _)) = filter.as_ref().and_then(|filter| filter.equality()) {
            self.learn(interface, name);
        }
        let need = self.needs.insert(Need {
            service,
            interface,
            which,
            next: NONE,
            rule,
            listed: false,
            asked: Asked::No,
            links: Links::default(),
            edges: List::default(),
            made: NONE,
            version: 0,
            filter,
        });
        match after {
            NONE => self.slots[service].needs = need,
            after => self.needs[after].next = need,
        }
        need
    }

    /// Indexes a property of the providers of an interface.
    fn learn(&mut self, interface: u32, name: &Text) {
        if self.interfaces[interface as usize].index.knows(name) {
            return;
        }
        let offers: Vec<u32> = self.installed(interface).collect();
        let index = &mut self.interfaces[interface as usize].index;
        index.learn(name);
        for offer in offers {
            let provider = self.offers[offer].service;
            index.add_offer(&self.slots[provider].properties, offer);
        }
    }

    /// Adds an offer at the end of a service's chain, whose last one is `after`.
    pub fn add_offer(&mut self, service: u32, after: u32, mut offer: Offer) -> u32 {
        offer.service = service;
        let (interface, private) = (offer.interface as usize, offer.private);
        offer.place = self.interfaces[interface].take_place();
        let place = self.offers.insert(offer);
        match after {
            NONE => self.slots[service].offers = place,
            after => self.offers[after].next = place,
        }
        if !private {
            let interface = &mut self.interfaces[interface];
            let list = &mut interface.offers;
            list.push(&mut self.offers, place, |offer| &mut offer.links);
            interface
                .index
                .add_offer(&self.slots[service].properties, place);
            interface.version = interface.version.wrapping_add(1);
        }
        place
    }

    /// Binds a service to the factory that made it for a need.
    pub fn bind_to_factory(&mut self, service: u32, need: u32, factory: u32) {
        let edge = self.edges.insert(Edge {
            need: NONE,
            dependent: service,
            provider: factory,
            offer: NONE,
            attachment: Attachment::Detached,
            by_provider: Links::default(),
            by_need: Links::default(),
        });
        let dependents = &mut self.slots[factory].dependents;
        dependents.push(&mut self.edges, edge, |edge| &mut edge.by_provider);
        self.slots[service].factory_edge = edge;
        self.slots[service].asked_by = need;
        self.needs[need].made = service;
        self.needs[need].asked = Asked::No;
    }

    /// Takes the last of its offers out of a service that is being freed: the
    /// table and place to be cleared when nothing is borrowed.
    pub fn take_offer(&mut self, service: u32) -> Option<(Rc<dyn AnyTable>, u32)> {
        let offer = self.slots[service].offers;
        if offer == NONE {
            return None;
        }
        self.slots[service].offers = self.offers[offer].next;
        let interface = self.offers[offer].interface;
        if !self.offers[offer].private {
            let at = &mut self.interfaces[interface as usize];
            at.offers
                .take(&mut self.offers, offer, |offer| &mut offer.links);
            at.index.take_offer(&self.slots[service].properties, offer);
            at.version = at.version.wrapping_add(1);
            // Fewer candidates may be one candidate.
            let (left, plain, filtered) = (at.offers.len, at.plain, at.filtered);
            if left <= 2 {
                self.seek_all(plain);
            }
            self.seek_all(filtered);
            self.seek_indexed(interface, service);
        }
        self.offers.free(offer);
        let place = self.offers[offer].place;
        let interface = &mut self.interfaces[interface as usize];
        interface.free_places.push(place);
        Some((interface.table.clone(), place))
    }

    /// Frees a service that has stopped and has no offers any more; its recipe is
    /// to be dropped when nothing is borrowed.
    pub fn free(&mut self, service: u32) -> Option<Freed> {
        self.note_news(service);
        let mut need = self.slots[service].needs;
        while need != NONE {
            let made = self.needs[need].made;
            if made != NONE {
                self.slots[made].asked_by = NONE;
                self.remove(made);
            }
            let next = self.needs[need].next;
            self.needs[need].filter = None;
            if self.needs[need].asked == Asked::Queued {
                self.needs[need].asked = Asked::Gone;
            } else {
                self.needs.free(need);
            }
            need = next;
        }
        let slot = &mut self.slots[service];
        let (asked_by, factory_edge) = (slot.asked_by, slot.factory_edge);
        let recipe = slot.recipe.take()?;
        let rare = slot.rare.take();
        slot.generation = slot.generation.wrapping_add(1);
        slot.properties = Properties::default();
        slot.name = Text::from("");
        self.slots.free(service);
        if factory_edge != NONE {
            self.unlink(factory_edge);
        }
        if asked_by != NONE {
            self.needs[asked_by].made = NONE;
            self.seek(asked_by);
        }
        Some((recipe, rare))
    }

    /// Wants a service gone.
    pub fn remove(&mut self, service: u32) {
        let slot = &mut self.slots[service];
        slot.removing = true;
        slot.wanted = false;
        self.queue_leave(service);
    }
}
