use fontis_call::quality::{self, Impairment};
use fontis_sim::analysis::fairness::{Notion, SharedNode, User, allocate, cascade};
use fontis_sim::analysis::loss_model::{LossModel, n_difference, n_difference_printed};
use fontis_sim::analysis::share::{
    Demand, hop_by_hop_shares, max_min_network, max_min_shares, printed_shares,
};
use fontis_sim::analysis::{fountain, quantile};

use super::value::Value;
use super::{multipath, probes, tfrc};
use crate::statistics;

/// The value of a function of numbers and lists.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    if name == "probe" {
        let [which] = arguments else { return Err("it takes one name".to_owned()) };
        return probes::probe(which.text()?);
    }
    let numbers = || arguments.iter().map(Value::number).collect::<Result<Vec<f64>, String>>();
    if let Some(value) = arithmetic(name, arguments)? {
        return Ok(value);
    }
    if let Some(value) = fairness(name, arguments)? {
        return Ok(value);
    }
    if let Some(value) = of_lists(name, arguments)? {
        return Ok(value);
    }
    let numbers = numbers()?;
    formula(name, &numbers).map(Value::Number)
}

fn arithmetic(name: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
    let each = |of: fn(f64) -> f64| match arguments {
        [value] => value.zip(&Value::Number(0.0), |a, _| of(a)).map(Some),
        _ => Err("it takes one value".to_owned()),
    };
    match name {
        "abs" => each(f64::abs),
        "sqrt" => each(f64::sqrt),
        "ln" => each(f64::ln),
        "exp" => each(f64::exp),
        "mos" => each(quality::mos),
        "cbrt" => each(f64::cbrt),
        "ceil" => each(f64::ceil),
        "round" => each(f64::round),
        "not" => each(|a| f64::from(u8::from(a == 0.0))),
        _ => Ok(None),
    }
}

/// Shares of users by weighted α-fairness: `alpha_fair(CAPACITY, α, WEIGHTS)` at a node;
/// `cascade(C1, α1, C2, α2, WEIGHTS)` behind two in a row.
fn fairness(name: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
    let (nodes, weights) = match (name, arguments) {
        ("alpha_fair", [capacity, alpha, weights]) => (vec![(capacity, alpha)], weights),
        ("cascade", [c1, a1, c2, a2, weights]) => (vec![(c1, a1), (c2, a2)], weights),
        ("alpha_fair" | "cascade", _) => return Err("capacity, α, ..., weights".to_owned()),
        _ => return Ok(None),
    };
    let users: Vec<User> = weights.list()?.into_iter().map(User::of).collect();
    let node = |(capacity, alpha): (&Value, &Value)| {
        let alpha = alpha.number()?;
        let notion = Notion::of(alpha).ok_or_else(|| format!("{alpha} is no α"))?;
        Ok(SharedNode { capacity: capacity.number()?, notion, is_cell: false })
    };
    let nodes: Vec<SharedNode> = nodes.into_iter().map(node).collect::<Result<_, String>>()?;
    let shares = match &nodes[..] {
        [node] => allocate(node.capacity, &users, node.notion),
        nodes => cascade(nodes, &users).map(|mut rows| rows.pop().unwrap_or_default()),
    };
    shares.map(|shares| Some(Value::List(shares))).map_err(|error| error.to_string())
}

fn of_lists(name: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
    let Some(first) = arguments.first() else { return Ok(None) };
    let Ok(list) = first.list() else { return Ok(None) };
    let second = || arguments.get(1).map_or(Ok(0.0), Value::number);
    let count = list.len().max(1) as f64;
    let mean = list.iter().sum::<f64>() / count;
    let deviation = || (list.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count).sqrt();
    let sorted = || {
        let mut sorted = list.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    Ok(Some(match name {
        "mean" => Value::Number(mean),
        "sum" => Value::Number(list.iter().sum()),
        "min" => Value::Number(list.iter().copied().fold(f64::INFINITY, f64::min)),
        "max" => Value::Number(list.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "median" => Value::Number(sorted()[list.len() / 2]),
        "deviation" => Value::Number(deviation()),
        "first" => Value::Number(list[0]),
        "last" => Value::Number(*list.last().unwrap_or(&f64::NAN)),
        "count" => Value::Number(list.len() as f64),
        "all" => Value::truth(list.iter().all(|x| *x != 0.0)),
        "any" => Value::truth(list.iter().any(|x| *x != 0.0)),
        "nth" => Value::Number(
            *list.get(second()? as usize).ok_or_else(|| format!("{} values only", list.len()))?,
        ),
        // Each value is no more than so much below, or above, the largest, or smallest, before it.
        "increasing" => Value::truth(is_rising(list.iter().copied(), second()?)),
        "decreasing" => Value::truth(is_rising(list.iter().map(|x| -x), second()?)),
        // The slope relative to the mean, from a straight line through equally spaced values.
        "slope" => {
            let middle = (count - 1.0) / 2.0;
            let (mut up, mut down) = (0.0, 0.0);
            for (index, value) in list.iter().enumerate() {
                up += (index as f64 - middle) * (value - mean);
                down += (index as f64 - middle) * (index as f64 - middle);
            }
            Value::Number(up / down.max(f64::MIN_POSITIVE))
        }
        // Spearman's rank correlation with the place in the list.
        "trend" => Value::Number(spearman(&list)),
        "jain" => Value::Number(fontis_sim::recording::metrics::jain(&list)),
        // The 95 % interval of one list's mean, or median, over another's, by bootstrap.
        "ratio_low" => bootstrap(&list, &of_second(arguments)?, statistics::mean, 0.025),
        "ratio_high" => bootstrap(&list, &of_second(arguments)?, statistics::mean, 0.975),
        "median_low" => bootstrap(&list, &of_second(arguments)?, statistics::median, 0.025),
        "median_high" => bootstrap(&list, &of_second(arguments)?, statistics::median, 0.975),
        "max_min" => Value::List(max_min_shares(list[0], &list[1..])),
        "printed_shares" => Value::List(printed_shares(list[0], &list[1..])),
        _ => return Ok(None),
    }))
}

fn of_second(arguments: &[Value]) -> Result<Vec<f64>, String> {
    arguments.get(1).ok_or("it takes two lists")?.list()
}

/// A quantile of the ratio of a statistic of two lists by bootstrap.
fn bootstrap(a: &[f64], b: &[f64], statistic: fn(&mut [f64]) -> f64, quantile: f64) -> Value {
    let [value] = statistics::ratio(a, b, statistic, [quantile]);
    Value::Number(value)
}

fn is_rising(values: impl Iterator<Item = f64>, slack: f64) -> bool {
    let mut most = f64::NEG_INFINITY;
    for value in values {
        if value < most - slack {
            return false;
        }
        most = most.max(value);
    }
    true
}

fn spearman(list: &[f64]) -> f64 {
    let rank = |value: f64| {
        let below = list.iter().filter(|x| **x < value).count() as f64;
        let equal = list.iter().filter(|x| **x == value).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let middle = (list.len() as f64 - 1.0) / 2.0;
    let (mut both, mut of_places, mut of_ranks) = (0.0, 0.0, 0.0);
    for (place, value) in list.iter().enumerate() {
        let (a, b) = (place as f64 - middle, rank(*value) - middle);
        both += a * b;
        of_places += a * a;
        of_ranks += b * b;
    }
    if of_ranks > 0.0 { both / (of_places * of_ranks).sqrt() } else { 0.0 }
}

fn impairment(equipment: f64, robustness: f64) -> Impairment {
    Impairment { equipment, robustness }
}

fn formula(name: &str, numbers: &[f64]) -> Result<f64, String> {
    let gilbert = |p, q| LossModel::Gilbert { p, q };
    let pair = |flows: f64, first: f64, second: f64, access: f64| {
        let flow = |links: &[usize]| Demand { limit: access, links: links.to_vec() };
        let mut demands = vec![flow(&[0]); flows as usize];
        if let Some(demand) = demands.first_mut() {
            *demand = flow(&[0, 1]);
        }
        ([first, second], demands)
    };
    Ok(match (name, numbers) {
        // Jain's index of so many users of whom k have a weight and the others 1, at one node.
        ("jain_of_two", [users, k, weight, alpha]) => {
            let (users, k) = (*users as usize, *k as usize);
            let of = |place: usize| User::of(if place < k { *weight } else { 1.0 });
            let notion = Notion::of(*alpha).ok_or("there is no such α")?;
            let shares = allocate(1.0, &(0..users).map(of).collect::<Vec<_>>(), notion);
            fontis_sim::recording::metrics::jain(&shares.map_err(|error| error.to_string())?)
        }
        ("n_star", [k, p, q, success]) => {
            f64::from(gilbert(*p, *q).n_star_clt(*k as u32, *success))
        }
        ("n_star_exact", [k, p, q, success]) => {
            let exact = gilbert(*p, *q).n_star_exact(*k as u32, *success);
            f64::from(exact.ok_or("too many packets")?)
        }
        ("n_mean", [k, p, q]) => gilbert(*p, *q).sent(*k as u32).0,
        ("n_deviation", [k, p, q]) => gilbert(*p, *q).sent(*k as u32).1,
        ("n_difference", [k, p, q, success]) => n_difference(*k as u32, *p, *q, *success),
        ("n_difference_printed", [k, p, q, success]) => {
            n_difference_printed(*k as u32, *p, *q, *success)
        }
        ("quantile", [p]) => quantile(*p),
        ("goodput_of", [share, redundancy]) => fountain::goodput(*share, *redundancy),
        ("redundancy_cost", [redundancy]) => fountain::redundancy_cost(*redundancy),
        ("success_ratio", [access, share]) => fountain::success_ratio(*access, *share),
        ("burst_length", [access, share]) => fountain::burst_length(*access, *share),
        ("packets_to_send", [k, redundancy, success]) => {
            fountain::packets_to_send(*k, *redundancy, *success)
        }
        ("transmission_redundancy", [success]) => fountain::transmission_redundancy(*success),
        ("equivalent_redundancy", [seconds, capacity, bits, flows]) => {
            fountain::equivalent_redundancy(*seconds, *capacity, *bits, *flows)
        }
        ("rate_increase", [equivalent, practical]) => {
            fountain::rate_increase(*equivalent, *practical)
        }
        // Sums over so many flows of which the first crosses a second bottleneck.
        ("blind_total", [flows, first, second, access]) => {
            let (capacities, demands) = pair(*flows, *first, *second, *access);
            hop_by_hop_shares(&capacities, &demands).iter().sum()
        }
        ("best_total", [flows, first, second, access]) => {
            let (capacities, demands) = pair(*flows, *first, *second, *access);
            max_min_network(&capacities, &demands).iter().sum()
        }
        // Delays in ms, losses as shares, then the codec's Ie and Bpl.
        ("r_factor", [delay, loss, equipment, robustness]) => {
            quality::r_factor(*delay, *loss, impairment(*equipment, *robustness))
        }
        ("r_factor_simple", [delay, loss, equipment, robustness]) => {
            quality::r_factor_simple(*delay, *loss, impairment(*equipment, *robustness))
        }
        ("mos_of_video", [rate, frames, loss]) => quality::mos_of_video(*rate, *frames, *loss),
        _ => {
            let none = || format!("there is no such function of {} numbers", numbers.len());
            let of_paths = || multipath::formula(name, numbers);
            return tfrc::formula(name, numbers).or_else(of_paths).ok_or_else(none);
        }
    })
}
