use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fontis_sim::Stations;

use super::{Meter, Place, Stage};
use crate::testbed::command::CommandJob;
use crate::testbed::error::{TestbedError, system};
use crate::testbed::namespace::Namespace;

/// Commands at both ends of a flow.
pub(in crate::testbed) struct Commands {
    meter: Arc<Meter>,
    pub(super) threads: Vec<JoinHandle<()>>,
}

/// The interval of checking for the end of a command.
const TICK: Duration = Duration::from_millis(5);

impl Commands {
    /// Starts the receiver's command, if there is one, and the sender's when it is time; with its
    /// end the flow has come to its own. What still runs at the end of the run is killed.
    pub(in crate::testbed) fn start(
        stage: &Stage,
        place: &Place<'_>,
        [sender, receiver]: [&str; 2],
        [senders, receivers]: [&Namespace; 2],
    ) -> Result<Self, TestbedError> {
        let line = |text: &str, own: std::net::IpAddr, peer: std::net::IpAddr| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null());
            command.env("FONTIS_ADDRESS", own.to_string()).env("FONTIS_PEER", peer.to_string());
            command
        };
        let waiting = (!receiver.trim().is_empty())
            .then(|| CommandJob::start(receivers, line(receiver, place.receiver, place.sender)))
            .transpose()?;
        let command = line(sender, place.sender, place.receiver);
        let (namespace, stage) = (senders.share()?, stage.clone());
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
        Ok(Self { meter, threads: vec![thread.map_err(system("start a thread"))?] })
    }

    pub(super) fn stations(&self) -> Stations {
        self.meter.stations()
    }
}

fn run(stage: &Stage, meter: &Meter, name: &str, namespace: &Namespace, command: Command) {
    let now = stage.clock.now();
    meter.note(|stations| stations.first_sent = Some(now));
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
        Ok(status) if status.success() => meter.note(|stations| stations.completed = Some(now)),
        Ok(_) if killed => {}
        Ok(status) => {
            meter.note(|stations| stations.aborted = true);
            let code = status.code().unwrap_or(1);
            stage.fail(name, format!("its command ended with exit code {code}"));
        }
        Err(error) => stage.fail(name, error),
    }
}
