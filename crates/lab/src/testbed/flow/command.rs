use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fontis_sim::host::rows::command::Command as CommandLines;
use fontis_sim::host::{Counters, Milestones};

use crate::testbed::command::CommandJob;
use crate::testbed::error::{TestbedError, system};
use crate::testbed::flow::stage::{Flow, Meter, Place, Stage, join};
use crate::testbed::namespace::Namespace;

/// Commands at both ends of a flow.
struct Commands {
    meter: Arc<Meter>,
    threads: Vec<JoinHandle<()>>,
}

/// The interval of checking for the end of a command.
const TICK: Duration = Duration::from_millis(5);

/// Starts the receiver's command, if there is one, and the sender's when it is time; with its end
/// the flow has come to its own. A command that still runs at the end of the run is killed.
pub(super) fn start(stage: &Stage, place: &Place<'_>) -> Result<Box<dyn Flow>, TestbedError> {
    let transport = place.spec.transport.as_any().downcast_ref::<CommandLines>();
    let CommandLines { sender, receiver } = transport.expect("the table says commands");
    let to = place.receiver();
    let line = |text: &str, own: std::net::IpAddr, peer: std::net::IpAddr| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("FONTIS_ADDRESS", own.to_string()).env("FONTIS_PEER", peer.to_string());
        command
    };
    let waiting = (!receiver.trim().is_empty())
        .then(|| CommandJob::start(to.namespace, line(receiver, to.address, place.sender.address)))
        .transpose()?;
    let command = line(sender, place.sender.address, to.address);
    let (namespace, stage) = (place.sender.namespace.share()?, stage.clone());
    let (name, begin) = (place.spec.name.clone(), place.spec.start);
    let meter = Arc::new(Meter::default());
    let noted = Arc::clone(&meter);
    let body = move || {
        if stage.wait_until(begin) {
            run(&stage, &noted, &name, &namespace, command);
        }
        while waiting.as_ref().is_some_and(|job| !job.is_over()) && !stage.is_over() {
            thread::sleep(TICK);
        }
        if let Some(job) = waiting {
            job.handle().kill();
            let _ = job.wait();
        }
    };
    let thread = thread::Builder::new().name(place.spec.name.clone()).spawn(body);
    let threads = vec![thread.map_err(system("start a thread"))?];
    Ok(Box::new(Commands { meter, threads }))
}

impl Flow for Commands {
    fn counters(&self, _receiver: usize) -> Counters {
        // The bytes that they move are only seen on the network.
        Counters::default()
    }

    fn milestones(&self, _receiver: usize) -> Milestones {
        self.meter.milestones()
    }

    fn join(self: Box<Self>) {
        join(self.threads);
    }
}

fn run(stage: &Stage, meter: &Meter, name: &str, namespace: &Namespace, command: Command) {
    let now = stage.clock.now();
    meter.note(|milestones| milestones.first_sent = Some(now));
    let job = match CommandJob::start(namespace, command) {
        Ok(job) => job,
        Err(error) => return stage.fail(name, error),
    };
    while !job.is_over() {
        if stage.is_over() {
            job.handle().kill();
        }
        thread::sleep(TICK);
    }
    let now = stage.clock.now();
    let killed = stage.is_over();
    match job.wait() {
        Ok(status) if status.success() => meter.note(|milestones| milestones.completed = Some(now)),
        Ok(_) if killed => {}
        Ok(status) => {
            meter.note(|milestones| milestones.aborted = true);
            let code = status.code().unwrap_or(1);
            stage.fail(name, format!("its command ended with exit code {code}"));
        }
        Err(error) => stage.fail(name, error),
    }
}
