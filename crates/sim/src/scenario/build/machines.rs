//! From `[[host]]` and `[[group]]` to machines with interfaces, and groups of them.

use fontis_base::{Duration, Rate, Time};

use crate::experiment::spec::{
    GroupSpec, InterfaceIndex, InterfaceSpec, LinkSpec, MachineSpec, MemberSpec,
};
use crate::scenario::build::topology::{Place, Topology};
use crate::settings::error::{ScenarioError, invalid};
use crate::settings::reader::Reader;
use crate::settings::suggestion::closest;

/// The most hosts that one `[[host]]` stands for.
const MOST_ALIKE: u64 = 20_000;

impl Topology {
    /// Reads which `[[host]]` stand for several.
    pub(super) fn read_families(&mut self, read: Reader<'_>) -> Result<(), ScenarioError> {
        for entry in &read.settings.hosts {
            let read = read.of("host", entry);
            let (name, count) = (read.text("host.name"), read.count("host.count"));
            if !(1..=MOST_ALIKE).contains(&count) {
                return invalid(format!("host {name:?}: host.count must be 1 to {MOST_ALIKE}"));
            }
            if count > 1 {
                self.families.insert(name, count);
            }
        }
        Ok(())
    }

    /// How many links a `[[link]]` between these stands for: one for each host of a family.
    ///
    /// # Errors
    /// If two families have not as many hosts.
    pub(super) fn count(&self, ends: &[String; 2]) -> Result<u64, ScenarioError> {
        let [from, to] = ends.each_ref().map(|end| self.families.get(end).copied());
        match (from, to) {
            (Some(one), Some(other)) if one != other => {
                let [from, to] = ends;
                invalid(format!(
                    "a link joins {one} hosts {from:?} and {other} hosts {to:?}: give both the \
                     same host.count, or put a router between them"
                ))
            }
            _ => Ok(from.or(to).unwrap_or(1)),
        }
    }

    /// The name and the ends of the link at a place among those that a `[[link]]` stands for.
    pub(super) fn of_family(
        &self,
        ends: &[String; 2],
        name: &str,
        at: u64,
    ) -> (String, [String; 2]) {
        let numbered = |text: &String| match self.families.contains_key(text) {
            true => alike(text, at),
            false => text.clone(),
        };
        let of = [numbered(&ends[0]), numbered(&ends[1])];
        let name = match (name.is_empty(), of == *ends) {
            (true, _) => format!("{}-{}", of[0], of[1]),
            (false, true) => name.to_owned(),
            (false, false) => alike(name, at),
        };
        (name, of)
    }

    /// The hosts that a name stands for.
    fn family(&self, name: &str) -> Vec<String> {
        match self.families.get(name) {
            Some(count) => (0..*count).map(|at| alike(name, at)).collect(),
            None => vec![name.to_owned()],
        }
    }

    /// Reads `[[host]]`: each link that begins at a host is an interface.
    pub(super) fn read_machines(&mut self, read: Reader<'_>) -> Result<(), ScenarioError> {
        for (number, entry) in (1..).zip(&read.settings.hosts) {
            let name = read.of("host", entry).text("host.name");
            if name.is_empty() || name.contains('/') {
                return invalid(format!("host {number} needs a \"name\" without a slash"));
            }
            for name in self.family(&name) {
                self.add_machine(name)?;
            }
        }
        for link in &self.links {
            let [from, to] = [link.from, link.to].map(|vertex| self.machine_at(vertex));
            if let (Some(from), Some(to)) = (from, to) {
                let [from, to] = [from, to].map(|machine| &*self.machines[machine].name);
                return invalid(format!(
                    "link {:?} joins the hosts {from:?} and {to:?}: put a router between them",
                    link.name
                ));
            }
        }
        Ok(())
    }

    fn add_machine(&mut self, name: String) -> Result<(), ScenarioError> {
        if self.machines.iter().any(|machine| machine.name == name) {
            return invalid(format!("two hosts are called {name:?}"));
        }
        let Some(vertex) = self.names.iter().position(|known| *known == name) else {
            let hint = closest(&name, self.names.iter().cloned());
            let hint = hint.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            return invalid(format!("no link begins at host {name:?}{hint}"));
        };
        let interfaces = interfaces(&self.links, &name, vertex)?;
        self.machines.push(MachineSpec { name, vertex, interfaces });
        Ok(())
    }

    /// Reads `[[group]]`.
    pub(super) fn read_groups(&mut self, read: Reader<'_>) -> Result<(), ScenarioError> {
        for (number, entry) in (1..).zip(&read.settings.groups) {
            let read = read.of("group", entry);
            let name = read.text("group.name");
            if name.is_empty() {
                return invalid(format!("group {number} needs a \"name\""));
            }
            let is_taken = self.names.contains(&name);
            if is_taken || self.groups.iter().any(|group| group.name == name) {
                return invalid(format!("two of routers, hosts and groups are called {name:?}"));
            }
            let mut members = Vec::new();
            let listed = read.list("group.members");
            for member in listed.iter().flat_map(|member| self.family(member)) {
                let at = self.member(&name, &member)?;
                members.push(MemberSpec { at, join: Time::ZERO, leave: None });
            }
            for (join, member) in self.changes(&read, &name, "join")? {
                members.push(MemberSpec { at: member, join, leave: None });
            }
            for (leave, member) in self.changes(&read, &name, "leave")? {
                // It leaves what it joined last before.
                let joined = members.iter_mut().filter(|known| {
                    known.at == member && known.join <= leave && known.leave.is_none()
                });
                let Some(joined) = joined.max_by_key(|known| known.join) else {
                    let host = &self.machines[member.machine].name;
                    return invalid(format!("group.{name}: {host:?} leaves before it has joined"));
                };
                joined.leave = Some(leave);
            }
            if members.is_empty() {
                return invalid(format!("group {name:?} has no members"));
            }
            self.groups.push(GroupSpec { name, members });
        }
        Ok(())
    }

    /// The entries of `group.join` or `group.leave`.
    fn changes(
        &self,
        read: &Reader<'_>,
        group: &str,
        key: &str,
    ) -> Result<Vec<(Time, InterfaceIndex)>, ScenarioError> {
        let mut changes = Vec::new();
        for text in read.list(&format!("group.{key}")) {
            let parsed = text.split_once(':');
            let parsed = parsed.and_then(|(at, host)| Some((at.trim().parse().ok()?, host.trim())));
            let Some((at, host)) = parsed else {
                return invalid(format!("group.{key}: {text:?} must be TIME:HOST"));
            };
            let at: Duration = at;
            for host in self.family(host) {
                changes.push((Time::ZERO + at, self.member(group, &host)?));
            }
        }
        Ok(changes)
    }

    /// The interface of a group's member: the one named, or the host's first.
    fn member(&self, group: &str, text: &str) -> Result<InterfaceIndex, ScenarioError> {
        let place = self.place(&format!("group {group:?}"), "group.members", text, None)?;
        place.interface.map_or_else(
            || invalid(format!("group {group:?}: {text:?} is a router; members are hosts")),
            Ok,
        )
    }

    /// The machine at a vertex, if there is one.
    pub(super) fn machine_at(&self, vertex: usize) -> Option<usize> {
        self.machines.iter().position(|machine| machine.vertex == vertex)
    }

    /// An interface.
    pub(super) fn interface(&self, at: InterfaceIndex) -> InterfaceSpec {
        self.machines[at.machine].interfaces[at.interface]
    }

    /// The rate of the link by which packets leave an interface.
    pub(super) fn interface_rate(&self, at: InterfaceIndex) -> Rate {
        self.links[self.interface(at).out].config.rate
    }

    /// The vertex that a key names: `NAME` or `HOST/LINK`.
    pub(super) fn vertex_of(
        &self,
        subject: &str,
        key: &str,
        text: &str,
    ) -> Result<usize, ScenarioError> {
        let name = text.split_once('/').map_or(text, |(host, _)| host);
        let vertex = self.names.iter().position(|known| known == name);
        vertex.map_or_else(
            || {
                let names = self.names.join(", ");
                match name {
                    "" => invalid(format!(
                        "{subject}: {key} must name a router or a host; there are {names}"
                    )),
                    name => invalid(format!(
                        "{subject}: {key}: no link leads to {name:?}; there are {names}"
                    )),
                }
            },
            Ok,
        )
    }

    /// The place that a key names: a router, or a host with the link that follows its name, or with
    /// the one that leads `towards` another vertex, or with its first.
    pub(super) fn place(
        &self,
        subject: &str,
        key: &str,
        text: &str,
        towards: Option<usize>,
    ) -> Result<Place, ScenarioError> {
        let vertex = self.vertex_of(subject, key, text)?;
        let link = text.split_once('/').map(|(_, link)| link);
        let Some(machine) = self.machine_at(vertex) else {
            return match link {
                None => Ok(Place { vertex, interface: None }),
                Some(_) => invalid(format!("{subject}: {key}: {text:?}: only hosts have links")),
            };
        };
        let interfaces = &self.machines[machine].interfaces;
        let interface = match (link, towards) {
            (Some(link), _) => {
                let named = |spec: &InterfaceSpec| {
                    let [out, back] = [spec.out, spec.back].map(|at| &*self.links[at].name);
                    out == link || back == link
                };
                interfaces.iter().position(named)
            }
            (None, Some(to)) if to != vertex => {
                let way = self.graph().route(vertex, to);
                let first = way.and_then(|way| way.first().copied());
                interfaces.iter().position(|spec| Some(spec.out) == first)
            }
            (None, _) => Some(0),
        };
        let Some(interface) = interface else {
            let names = interfaces.iter().map(|spec| &*self.links[spec.out].name);
            let names = names.collect::<Vec<_>>().join(", ");
            return invalid(format!(
                "{subject}: {key}: no link of the host leads there: {text:?}; it has {names}"
            ));
        };
        Ok(Place { vertex, interface: Some(InterfaceIndex { machine, interface }) })
    }
}

/// The name of the host or link at a place among those that are alike, as flows of a count have it.
fn alike(name: &str, at: u64) -> String {
    format!("{name}.{}", at + 1)
}

/// The interfaces of a host: each link that begins there, with the next link back from the same
/// router.
fn interfaces(
    links: &[LinkSpec],
    name: &str,
    vertex: usize,
) -> Result<Vec<InterfaceSpec>, ScenarioError> {
    let mut interfaces: Vec<InterfaceSpec> = Vec::new();
    for (out, link) in links.iter().enumerate().filter(|(_, link)| link.from == vertex) {
        let is_free = |back: &usize| interfaces.iter().all(|known| known.back != *back);
        let mut back = (0..links.len())
            .filter(|back| links[*back].to == vertex && links[*back].from == link.to);
        let Some(back) = back.find(is_free) else {
            return invalid(format!(
                "host {name:?}: no link leads back to it beside {:?}: leave link.one_way out, or add \
                 one",
                link.name
            ));
        };
        interfaces.push(InterfaceSpec { out, back });
    }
    match interfaces.is_empty() {
        true => invalid(format!("no link begins at host {name:?}")),
        false => Ok(interfaces),
    }
}
