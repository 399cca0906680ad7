use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{LazyLock, Mutex};

use fontis_sim::scenario::{Form, Language, Run, Scenario};

/// What the code does with each part that a run uses: a hash by the part's name. Parts are the
/// transports, with the algorithms that the run chooses for them, the queue disciplines, and the
/// links.
///
/// The hash covers the metrics of a golden run: a short experiment, always the same, in which the
/// part meets loss, a full buffer and a competitor. It changes if the code does something else
/// there, and not if only its text changes. A change that shows under other conditions only is not
/// seen.
pub fn behaviour(run: &Run) -> BTreeMap<String, String> {
    let hash = |part: Part| (part.name(), part.hash());
    parts(&run.settings).into_iter().map(hash).collect()
}

/// A part of the code that has a golden run of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A transport, by its protocol, and the algorithms chosen for it: (key, value).
    Transport(String, Vec<(String, String)>),
    /// A queue discipline, and its choices.
    Queue(String, Vec<(String, String)>),
    /// The links, with what can happen to a packet on them.
    Links,
    /// A swarm, which has none of the others.
    Swarm,
}

/// The metrics of golden runs that count. A new metric is not a new behaviour, so it is not among
/// them by itself.
const METRICS: [&str; 19] = [
    "aggregate_error",
    "completed",
    "connected",
    "delivery_time",
    "drop_rate",
    "fct",
    "goodput",
    "goodput_variation",
    "jain",
    "loss_rate",
    "mean_queue",
    "network_utilisation",
    "occupancy",
    "queue_variation",
    "swarm_origin_share",
    "swarm_sent_share",
    "swarm_time",
    "utilisation",
    "wasted_symbols",
];

/// Golden runs that were made: their hashes.
static KNOWN: LazyLock<Mutex<BTreeMap<Part, String>>> = LazyLock::new(Mutex::default);

impl Part {
    fn name(&self) -> String {
        let with = |name: &str, choices: &[(String, String)]| {
            let choices = choices.iter().map(|(key, value)| format!(", {key} {value}"));
            format!("{name}{}", choices.collect::<String>())
        };
        match self {
            Self::Transport(protocol, choices) => with(protocol, choices),
            Self::Queue(discipline, choices) => with(&format!("queue {discipline}"), choices),
            Self::Links => "links".to_owned(),
            Self::Swarm => "swarm".to_owned(),
        }
    }

    /// The hash of its golden runs.
    fn hash(&self) -> String {
        if let Some(hash) = KNOWN.lock().expect("no thread panics with it").get(self) {
            return hash.clone();
        }
        let mut text = String::new();
        for scenario in self.scenarios() {
            // What cannot run by its name alone has the same hash as long as it cannot.
            let runs = Scenario::parse(&scenario).and_then(|scenario| scenario.runs());
            let recording = match &runs {
                Ok(runs) => runs.first().and_then(|run| run.experiment.run(|| false)),
                Err(_) => None,
            };
            let Some(recording) = recording else { continue };
            for ((metric, subject), value) in recording.metrics() {
                if METRICS.contains(&&*metric) {
                    let _ = writeln!(text, "{metric} {subject} {value:.6e}");
                }
            }
        }
        let hash = blake3::hash(text.as_bytes()).to_hex().as_str()[..8].to_owned();
        KNOWN.lock().expect("no thread panics with it").insert(self.clone(), hash.clone());
        hash
    }

    fn scenarios(&self) -> Vec<String> {
        const LOSSY: &str = "loss = \"0.5%\"\n";
        const MANY: &str = "reorder = \"1%\"\nduplicate = \"1%\"\n\
             corrupt = \"0.5%\"\nloss = \"gilbert:0.5%,20%\"\noutage = \"4 s:100 ms\"\n\
             rate_changes = [\"2 s: 5 Mbit/s\", \"3 s: 10 Mbit/s\"]\n";
        match self {
            Self::Transport(protocol, choices) => {
                // Not every transport carries both.
                let with = |app| golden(protocol, app, "fifo", LOSSY, choices);
                let mut scenarios = vec![with("bulk"), with("voice")];
                if protocol == "dccp" {
                    scenarios.push(long(protocol, choices));
                }
                scenarios
            }
            Self::Queue(discipline, choices) => {
                // One that slows down, and one that does not.
                let with = |protocol| golden(protocol, "bulk", discipline, "", choices);
                vec![with("cubic"), with("dfcp-published")]
            }
            Self::Links => vec![golden("cubic", "bulk", "fifo", MANY, &[])],
            Self::Swarm => vec![SWARM.to_owned()],
        }
    }
}

/// A small swarm in which everything happens that can.
const SWARM: &str = "[scenario]\nid = \"golden\"\n[swarm]\npeers = 20\nblocks = 40\nup_ratio = 4\n\
    loss = \"5%\"\nsilent = \"10%\"\nliars = 1\nleaving = \"20%\"\narrivals = \"3 s\"\n\
    origin_leaves = 2\nneighbours = 6\npartition = \"4s:1s\"\n";

/// A scenario of two flows on a buffer that overflows; the second begins later. `link` has more
/// keys of the topology; `choices` are (key, value).
fn golden(
    protocol: &str,
    app: &str,
    queue: &str,
    link: &str,
    choices: &[(String, String)],
) -> String {
    let tables = tables(choices);
    format!(
        "[scenario]\nid = \"golden\"\nduration = \"6 s\"\nwarmup = \"1 s\"\nsample = \"100 ms\"\n\
         [topology]\nrate = \"10 Mbit/s\"\naccess = \"20 Mbit/s\"\nrtt = \"40 ms\"\n\
         buffer = \"20 packets\"\nqueue = \"{queue}\"\n{link}\
         [[flow]]\nname = \"first\"\nprotocol = \"{protocol}\"\napp = \"{app}\"\n\
         [[flow]]\nname = \"second\"\nprotocol = \"{protocol}\"\napp = \"{app}\"\nstart = \"500 ms\"\n{tables}"
    )
}

/// A scenario whose timers matter: voice over a long path that is away for five seconds.
/// `choices` are (key, value).
fn long(protocol: &str, choices: &[(String, String)]) -> String {
    let tables = tables(choices);
    format!(
        "[scenario]\nid = \"golden\"\nduration = \"50 s\"\nwarmup = \"1 s\"\nsample = \"1 s\"\n\
         [topology]\nrate = \"1 Mbit/s\"\nrtt = \"600 ms\"\nbuffer = \"20 packets\"\n\
         loss = \"1%\"\noutage = \"20 s:5 s\"\n\
         [[flow]]\nname = \"call\"\nprotocol = \"{protocol}\"\napp = \"voice\"\n{tables}"
    )
}

/// Choices (key, value) as tables of a scenario.
fn tables(choices: &[(String, String)]) -> String {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    for (key, value) in choices {
        let Some((table, key)) = key.split_once('.') else { continue };
        let _ = writeln!(tables.entry(table).or_default(), "{key} = {value:?}");
    }
    tables.iter().map(|(table, keys)| format!("[{table}]\n{keys}")).collect()
}

/// The parts that a run with these settings uses.
fn parts(settings: &[(String, String)]) -> BTreeSet<Part> {
    let language = Language::standard();
    // The key without the number of its entry: `flow[2].protocol` is `flow.protocol`.
    let plain = |path: &str| match (path.find('['), path.find(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &path[..open], &path[close + 1..])
        }
        _ => path.to_owned(),
    };
    let values = |wanted: &[&str]| -> BTreeSet<String> {
        let of = settings.iter().filter(|(key, _)| wanted.contains(&&*plain(key)));
        of.map(|(_, value)| value.clone()).collect()
    };
    let choices = |table: &str| -> Vec<(String, String)> {
        // A word where a number may stand names an algorithm, too: `dfcp.rate = "friendly"`.
        let is_choice = |path: &str, value: &str| {
            let is_word = value.chars().all(|letter| letter.is_alphabetic() || letter == '-');
            match language.catalogue().find(path).map(|key| &key.form) {
                Some(Form::Names(_) | Form::Flag) => true,
                Some(Form::Text) => is_word && !value.is_empty(),
                _ => false,
            }
        };
        let found = settings.iter().filter_map(|(path, value)| {
            let path = plain(path);
            // A flow's own table counts as that of all.
            let path =
                path.strip_prefix("flow.").filter(|rest| rest.contains('.')).unwrap_or(&path);
            let is_of_table = path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
            (is_of_table && is_choice(path, value)).then(|| (path.to_owned(), value.clone()))
        });
        found.collect::<BTreeMap<_, _>>().into_iter().collect()
    };
    if settings.iter().any(|(key, _)| key == "swarm.peers") {
        return BTreeSet::from([Part::Swarm]);
    }
    let mut parts = BTreeSet::from([Part::Links]);
    let mut queues = values(&["topology.queue", "link.queue"]);
    if !settings.iter().any(|(key, _)| key == "topology.queue") {
        queues.insert("fifo".to_owned());
    }
    parts.extend(queues.into_iter().map(|queue| Part::Queue(queue, choices("queue"))));
    for protocol in values(&["flow.protocol"]) {
        let Some(row) = language.transport(&protocol) else { continue };
        let of_row = row.tables.iter().flat_map(|table| choices(table.name));
        parts.insert(Part::Transport(protocol, of_row.collect()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
        let settings: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        parts(&settings).into_iter().map(|part| (part.name(), part.hash())).collect()
    }

    #[test]
    fn the_parts_of_a_run_are_its_transports_queues_and_links_with_its_choices() {
        let found = named(&[
            ("flow[0].protocol", "newreno"),
            ("flow[1].protocol", "dfcp-published"),
            ("flow[1].start", "1 s"),
            ("tcp.recovery", "rfc6675"),
            ("tcp.initial_window", "3"),
            ("topology.queue", "drr"),
            ("topology.rate", "1 Gbit/s"),
        ]);
        let names: Vec<&str> = found.keys().map(|name| &**name).collect();
        let expected = ["dfcp-published", "links", "newreno, tcp.recovery rfc6675", "queue drr"];
        assert_eq!(names, expected);
    }

    #[test]
    fn each_golden_run_of_dccp_can_be_made() {
        let scenarios = Part::Transport("dccp".to_owned(), Vec::new()).scenarios();
        assert_eq!(scenarios.len(), 3);
        for scenario in scenarios {
            let runs = Scenario::parse(&scenario).and_then(|scenario| scenario.runs());
            assert!(runs.is_ok_and(|runs| !runs.is_empty()), "{scenario}");
        }
    }

    #[test]
    fn another_algorithm_of_a_part_has_another_hash() {
        let with = |recovery: &str| {
            let found = named(&[("flow.protocol", "cubic"), ("tcp.recovery", recovery)]);
            found[&format!("cubic, tcp.recovery {recovery}")].clone()
        };
        assert_ne!(with("rfc6675"), with("rack-tlp"));
        assert_ne!(with("rfc6675"), blake3::hash(b"").to_hex().as_str()[..8]);
    }

    #[test]
    fn a_word_in_place_of_a_rate_is_an_algorithm_and_a_rate_is_none() {
        let names = |rate: &str| -> Vec<String> {
            let found = named(&[("flow.protocol", "dfcp"), ("dfcp.rate", rate)]);
            found.into_keys().filter(|name| name.starts_with("dfcp")).collect()
        };
        assert_eq!(names("friendly"), ["dfcp, dfcp.rate friendly"]);
        assert_eq!(names("20 Mbit/s"), ["dfcp"]);
        let hash = |rate: &str| {
            let found = named(&[("flow.protocol", "dfcp"), ("dfcp.rate", rate)]);
            found[&format!("dfcp, dfcp.rate {rate}")].clone()
        };
        assert_ne!(hash("friendly"), hash("greedy"));
    }

    #[test]
    fn every_simulated_transport_and_every_queue_has_a_golden_run() {
        let language = Language::standard();
        let nothing = blake3::hash(b"").to_hex().as_str()[..8].to_owned();
        let key = |path: &str| language.catalogue().find(path).expect("a key").form.clone();
        let protocols = key("flow.protocol").names().expect("it has names");
        for protocol in protocols.into_iter().filter(|protocol| *protocol != "command") {
            let found = named(&[("flow.protocol", protocol)]);
            assert_ne!(found[protocol], nothing, "{protocol}");
        }
        for discipline in key("topology.queue").names().expect("it has names") {
            let found = named(&[("topology.queue", discipline)]);
            assert_ne!(found[&format!("queue {discipline}")], nothing, "{discipline}");
        }
        assert_ne!(named(&[])["links"], nothing);
        assert_ne!(named(&[("swarm.peers", "9")])["swarm"], nothing);
    }
}
