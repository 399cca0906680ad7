use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use fontis_lab::testbed::{
    CommandJob, Namespace, Shell, ShellConfig, ShellStats, SuperPackets, gain_privilege,
};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::link::{self, LinkArgs};
use crate::listen::status;

/// Run a shell, or any command, behind a bad link
///
/// The command reaches this machine at FONTIS_GATEWAY (and FONTIS_GATEWAY6), and nothing else.
/// Servers on this machine must listen on all addresses. All packets cross the link: TCP, UDP,
/// ICMP, over IPv4 and IPv6. Without root the other side is an empty namespace, in which --beside
/// starts a command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// A command line for sh on the other side of the link during the command, as in 'iperf3 -s'
    #[arg(long, value_name = "COMMAND")]
    beside: Option<String>,
    /// The super-packets of the kernel: auto (whole if the link only delays), whole (each charged
    /// as its packets), cut (into packets before the link), none (the kernel makes none)
    #[arg(long, value_name = "auto|whole|cut|none", default_value = "auto", value_parser = super_packets)]
    super_packets: SuperPackets,
    /// Print the counters of the links at the end, on standard error
    #[arg(long)]
    stats: bool,
    /// Write the same as JSON into a file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The command and its arguments [default: the user's shell]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  A shell behind a lossy intercontinental link:
    fontis testbed shell --rate 100mbit --delay 50ms --loss 1%
  How fast one TCP stream is there:
    fontis testbed shell --rate 100mbit --delay 50ms --loss 1% --beside 'iperf3 -s -1 >/dev/null' \\
        -- sh -c 'sleep 1; iperf3 -R -c $FONTIS_GATEWAY'";

fn super_packets(text: &str) -> Result<SuperPackets, String> {
    match text {
        "auto" => Ok(SuperPackets::Auto),
        "whole" => Ok(SuperPackets::Whole),
        "cut" => Ok(SuperPackets::Cut),
        "none" => Ok(SuperPackets::None),
        _ => Err("choose auto, whole, cut or none".to_owned()),
    }
}

/// The least MTU of an interface for IPv4 (RFC 791).
const LEAST_MTU: u32 = 68;

/// Runs the command, and returns its exit code.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    if args.link.mtu < LEAST_MTU {
        return Err(Failure::Usage(format!("--mtu must be at least {LEAST_MTU} for IP")));
    }
    let command = args.command.split_first().map_or_else(
        || Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
        |(program, arguments)| {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        },
    );
    let of_machine = gain_privilege()?;
    let outside = if of_machine { Namespace::own()? } else { Namespace::new()? };
    if !of_machine && args.beside.is_none() {
        status(
            &"without root the other side is an empty namespace; --beside starts a command there",
        );
    }
    let seed = args.link.seed().map_err(|error| Failure::Failed(error.to_string()))?;
    let (up, down) = args.link.both_ways();
    let (mtu, super_packets) = (args.link.mtu, args.super_packets);
    let config = ShellConfig { up, down, mtu, seed, super_packets };
    // Signals are caught before anything is started that they should end.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(error.to_string()))?;
    let guard = runtime.enter();
    let caught = |kind| signal(kind).map_err(|error| Failure::Failed(error.to_string()));
    // Ctrl-C is for the command, which gets it too.
    let _interrupts = (caught(SignalKind::interrupt())?, caught(SignalKind::quit())?);
    let mut terminate = caught(SignalKind::terminate())?;
    let mut hangup = caught(SignalKind::hangup())?;
    drop(guard);
    let shell = Shell::new(&outside, &config)?;
    let beside = args.beside.as_ref().map(|line| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdin(std::process::Stdio::null());
        CommandJob::start(&outside, command)
    });
    let beside = beside.transpose()?;
    let job = shell.start(command)?;
    let handle = job.handle();
    let result = runtime.block_on(async {
        let mut waiting = tokio::task::spawn_blocking(|| job.wait());
        tokio::select! {
            done = &mut waiting => done.map(|status| (status, false)),
            _ = terminate.recv() => { handle.kill(); waiting.await.map(|status| (status, true)) }
            _ = hangup.recv() => { handle.kill(); waiting.await.map(|status| (status, true)) }
        }
    });
    if let Some(beside) = beside {
        beside.handle().kill();
        beside.wait()?;
    }
    let stats = shell.close()?;
    report(args, seed, &stats)?;
    let (exit, terminated) = result.map_err(|error| Failure::Failed(error.to_string()))?;
    if terminated {
        return Err(Failure::Failed("terminated; the command was killed".to_owned()));
    }
    let code = exit?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(1))
}

fn report(args: &Args, seed: u64, stats: &ShellStats) -> Result<(), Failure> {
    let ShellStats { up, down, lateness: [late_up, late_down], unsent } = stats;
    if args.stats {
        status(&format_args!("seed {seed}"));
        status(&link::as_text("up  ", up));
        status(&link::as_text("down", down));
        status(&format_args!("late  up {}", link::lateness(late_up)));
        status(&format_args!("late  down {}", link::lateness(late_down)));
        if *unsent > 0 {
            status(&format_args!("dropped outside the links: {unsent} not taken by the system"));
        }
    }
    if let Some(path) = &args.report {
        let value = json!({
            "seed": seed,
            "up": link::as_json(up),
            "down": link::as_json(down),
            "lateness_us": {
                "up": link::lateness_json(late_up),
                "down": link::lateness_json(late_down),
            },
            "unsent": unsent,
        });
        std::fs::write(path, format!("{value:#}\n"))
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}
