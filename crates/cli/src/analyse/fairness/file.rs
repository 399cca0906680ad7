//! The file of a network.

use std::collections::HashMap;
use std::path::Path;

use fontis_base::Rate;
use fontis_sim::analysis::fairness::{Notion, User};
use serde::Deserialize;
use toml::Spanned;

use crate::failure::Failure;

/// A network as its file has it.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) notion: Option<Notion>,
    pub(super) nodes: Vec<Node>,
    pub(super) groups: Vec<Group>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// Mbit/s.
    pub(super) capacity: f64,
}

/// Users that are alike.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) user: User,
    /// Places of nodes.
    pub(super) route: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkText {
    notion: Option<Spanned<NotionText>>,
    #[serde(default)]
    node: Vec<NodeEntry>,
    #[serde(default)]
    user: Vec<UserEntry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NotionText {
    Name(String),
    Alpha(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    name: Spanned<String>,
    capacity: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    name: Spanned<String>,
    route: Spanned<Vec<Spanned<String>>>,
    weight: Option<Spanned<f64>>,
    cap: Option<Spanned<String>>,
    count: Option<Spanned<u32>>,
}

/// Users in all at most.
pub(super) const MOST_USERS: u64 = 1_000_000;
/// Nodes at most: the solver's matrix has the square of them.
const MOST_NODES: usize = 2_000;

pub(super) fn read(path: &Path) -> Result<Network, Failure> {
    let wrong = |error: String| Failure::Usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(&text).map_err(wrong)
}

fn parse(text: &str) -> Result<Network, String> {
    let line = |byte: usize| 1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count();
    let parsed: NetworkText = toml::from_str(text).map_err(|error| {
        let place =
            error.span().map_or(String::new(), |span| format!("line {}: ", line(span.start)));
        format!("{place}{}", error.message().replace('\n', ", "))
    })?;
    let at = |byte: usize, message: String| format!("line {}: {message}", line(byte));
    if parsed.node.is_empty() || parsed.user.is_empty() {
        return Err("a network needs at least one [[node]] and one [[user]]".to_owned());
    }
    if parsed.node.len() > MOST_NODES {
        return Err(format!("{} nodes are more than {MOST_NODES}", parsed.node.len()));
    }
    let notion = parsed.notion.map(|notion| {
        let start = notion.span().start;
        let notion = match notion.into_inner() {
            NotionText::Name(name) => name,
            NotionText::Alpha(alpha) => alpha.to_string(),
        };
        notion.parse().map_err(|error| at(start, format!("{error}")))
    });
    let mut places = HashMap::new();
    let mut nodes = Vec::new();
    for NodeEntry { name, capacity } in parsed.node {
        let rate = rate(&capacity).map_err(|error| at(capacity.span().start, error))?;
        if rate == Rate::ZERO {
            let message = format!("the capacity of {:?} must be more than zero", name.get_ref());
            return Err(at(capacity.span().start, message));
        }
        if places.insert(name.get_ref().clone(), nodes.len()).is_some() {
            return Err(at(name.span().start, format!("two nodes are named {:?}", name.get_ref())));
        }
        nodes.push(Node { name: name.into_inner(), capacity: rate.as_mbps_f64() });
    }
    let mut names = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for entry in parsed.user {
        let group = group(&entry, &places).map_err(|(byte, message)| at(byte, message))?;
        if names.insert(group.name.clone(), ()).is_some() {
            return Err(at(
                entry.name.span().start,
                format!("two users are named {:?}", group.name),
            ));
        }
        groups.push(group);
    }
    let all: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    if all > MOST_USERS {
        return Err(format!("{all} users are more than {MOST_USERS}"));
    }
    Ok(Network { notion: notion.transpose()?, nodes, groups })
}

fn rate(text: &Spanned<String>) -> Result<Rate, String> {
    text.get_ref().parse::<Rate>().map_err(|error| error.to_string())
}

/// A group of users; an error has the byte that it is about.
fn group(entry: &UserEntry, places: &HashMap<String, usize>) -> Result<Group, (usize, String)> {
    let name = entry.name.get_ref().clone();
    let mut route = Vec::new();
    for node in entry.route.get_ref() {
        let place = *places.get(node.get_ref()).ok_or_else(|| {
            (node.span().start, format!("user {name:?}: there is no node {:?}", node.get_ref()))
        })?;
        if route.contains(&place) {
            let message = format!("user {name:?} crosses node {:?} twice", node.get_ref());
            return Err((node.span().start, message));
        }
        route.push(place);
    }
    if route.is_empty() {
        let message = format!("user {name:?}: the route must name at least one node");
        return Err((entry.route.span().start, message));
    }
    let weight = entry.weight.as_ref().map_or(1.0, |weight| *weight.get_ref());
    if !(weight > 0.0 && weight.is_finite()) {
        let start = entry.weight.as_ref().map_or(0, |weight| weight.span().start);
        let message = format!("user {name:?}: the weight must be a finite number above zero");
        return Err((start, message));
    }
    let cap = match &entry.cap {
        Some(cap) => rate(cap).map_err(|error| (cap.span().start, error))?.as_mbps_f64(),
        None => f64::INFINITY,
    };
    let count = entry.count.as_ref().map_or(1, |count| *count.get_ref());
    if count == 0 {
        let start = entry.count.as_ref().map_or(0, |count| count.span().start);
        return Err((start, format!("user {name:?}: the count must be at least one")));
    }
    Ok(Group { name, count, user: User { cap, ..User::of(weight) }, route })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "[[node]]\nname = \"a\"\ncapacity = \"10Mbit/s\"\n";

    #[test]
    fn a_file_is_read_with_its_defaults() {
        let user = "[[user]]\nname = \"x\"\nroute = [\"a\"]\n";
        let network = parse(&format!("notion = 0.5\n{NODE}{user}")).expect("a network");
        assert_eq!(network.notion, Some(Notion::Alpha(0.5)));
        let Group { count, user, route, .. } = &network.groups[0];
        assert_eq!((*count, *user, route.as_slice()), (1, User::of(1.0), &[0][..]));
    }

    #[test]
    fn an_error_names_the_line_and_the_fault() {
        let user = |rest: &str| format!("{NODE}[[user]]\nname = \"x\"\n{rest}");
        let node = |capacity: &str| format!("[[node]]\nname = \"a\"\ncapacity = {capacity}\n");
        let twice = format!("{}[[user]]\nname = \"x\"\nroute = [\"a\"]", user("route = [\"a\"]\n"));
        for (text, expected) in [
            (user("route = [\"b\"]"), "line 6: user \"x\": there is no node \"b\""),
            (user("route = []"), "line 6: user \"x\": the route must name at least one node"),
            (user("route = [\"a\", \"a\"]"), "line 6: user \"x\" crosses node \"a\" twice"),
            (user("route = [\"a\"]\nweight = -1"), "line 7: user \"x\": the weight must be"),
            (user("route = [\"a\"]\nweight = nan"), "line 7: user \"x\": the weight must be"),
            (user("route = [\"a\"]\nweight = 1e999"), "line 7: "),
            (user("route = [\"a\"]\nweight = \"x\""), "line 7: invalid type: string \"x\""),
            (user("route = [\"a\"]\ncap = \"-5Mbit/s\""), "line 7: \"-5Mbit/s\""),
            (user("route = [\"a\"]\ncount = 0"), "line 7: user \"x\": the count"),
            (user("route = [\"a\"]\ncount = 5000000000"), "line 7: "),
            (user("route = [\"a\"]\ncount = 2000000"), "2000000 users are more than 1000000"),
            (user("route = [\"a\"]\nwieght = 1"), "line 7: unknown field `wieght`"),
            (user(""), "line 4: missing field `route`"),
            (format!("{NODE}{NODE}"), "a network needs at least one [[node]]"),
            (user("route = [\"a\"]\n") + NODE, "line 8: two nodes are named \"a\""),
            (twice, "line 8: two users are named \"x\""),
            (node("\"-1Mbit/s\"") + "[[user]]\nname=\"x\"\nroute=[]", "line 3: \"-1Mbit/s\""),
            (node("\"0Mbit/s\"") + "[[user]]\nname=\"x\"\nroute=[]", "line 3: the capacity of"),
            (node("\"1e40Mbit/s\"") + "[[user]]\nname=\"x\"\nroute=[]", "line 3: "),
            (node("10"), "line 3: invalid type: integer `10`, expected a string"),
            (format!("notion = \"fair\"\n{}", user("route = [\"a\"]")), "line 1: \"fair\" is not"),
            ("node = [".to_owned(), "line 1: "),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.starts_with(expected) && !error.contains('\n'), "{text}\n{error}");
        }
    }
}
