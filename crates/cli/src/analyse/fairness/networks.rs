//! Notions in a network.

use fontis_sim::analysis::fairness::{FairnessError, Notion, User, network};
use fontis_sim::recording::metrics::jain;
use serde_json::{Value, json};

use super::file::Network;
use crate::analyse::table::{aligned, cell};
use crate::failure::Failure;
use crate::text;

pub(super) fn allocations(
    of: &Network,
    notion: Option<Notion>,
) -> Result<(Value, Vec<String>), Failure> {
    let notions = match notion.or(of.notion) {
        Some(notion) => vec![(notion.to_string(), notion)],
        None => [Notion::MaxMin, Notion::Alpha(1.0), Notion::Alpha(2.0)]
            .into_iter()
            .zip(["max-min", "proportional", "delay"])
            .map(|(notion, name)| (name.to_owned(), notion))
            .collect(),
    };
    let mut users: Vec<User> = Vec::new();
    let mut routes = Vec::new();
    for group in &of.groups {
        users.extend(std::iter::repeat_n(group.user, group.count as usize));
        routes.extend(std::iter::repeat_n(group.route.clone(), group.count as usize));
    }
    let capacities: Vec<f64> = of.nodes.iter().map(|node| node.capacity).collect();
    let mut values = Vec::new();
    let mut heading = vec!["Mbit/s of a user".to_owned(), "count".to_owned()];
    let mut rows: Vec<Vec<String>> = of
        .groups
        .iter()
        .map(|group| vec![text::safe(&group.name), group.count.to_string()])
        .collect();
    let mut sums = vec!["sum".to_owned(), users.len().to_string()];
    let mut indices = vec!["Jain's index".to_owned(), String::new()];
    let mut nodes: Vec<Vec<String>> =
        of.nodes.iter().map(|node| vec![text::safe(&node.name), cell(node.capacity)]).collect();
    for (name, notion) in &notions {
        let shares =
            network(&capacities, &users, &routes, *notion).map_err(|error| match error {
                FairnessError::Unsettled => Failure::Failed(error.to_string()),
                _ => Failure::Usage(error.to_string()),
            })?;
        let mut loads = vec![0.0; capacities.len()];
        for (route, share) in routes.iter().zip(&shares) {
            route.iter().for_each(|node| loads[*node] += share);
        }
        let mut at = 0;
        let mut of_groups = Vec::new();
        for group in &of.groups {
            of_groups.push(shares[at]);
            at += group.count as usize;
        }
        heading.push(name.clone());
        rows.iter_mut().zip(&of_groups).for_each(|(row, share)| row.push(cell(*share)));
        nodes.iter_mut().zip(&loads).for_each(|(row, load)| row.push(cell(*load)));
        let (sum, index) = (shares.iter().sum::<f64>(), jain(&shares));
        sums.push(cell(sum));
        indices.push(cell(index));
        let user = |(group, share): (&super::file::Group, &f64)| json!({ "name": group.name, "count": group.count, "mbps": share });
        let node = |(node, load): (&super::file::Node, &f64)| json!({ "name": node.name, "capacity_mbps": node.capacity, "carried_mbps": load });
        values.push(json!({
            "name": name, "jain": index, "sum_mbps": sum,
            "users": of.groups.iter().zip(&of_groups).map(user).collect::<Vec<_>>(),
            "nodes": of.nodes.iter().zip(&loads).map(node).collect::<Vec<_>>(),
        }));
    }
    let mut table = vec![heading];
    table.append(&mut rows);
    table.extend([sums, indices]);
    let mut carried = vec!["Mbit/s carried".to_owned(), "capacity".to_owned()];
    carried.extend(notions.into_iter().map(|(name, _)| name));
    table.push(carried);
    table.append(&mut nodes);
    Ok((json!({ "allocations": values }), aligned(&table)))
}
