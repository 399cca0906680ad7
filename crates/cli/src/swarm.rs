//! Sending to many receivers that send on to each other.

use std::path::Path;
use std::time::Duration;

use fontis::transfer::{CastOptions, FileServer, ServerEvent};
use fontis_proto::rate::RateKind;
use tokio::sync::mpsc;

use crate::casting::{caster_of, rate_text, watch};
use crate::control::{Control, ControlArgs};
use crate::failure::Failure;
use crate::json;
use crate::listen::{ListenArgs, announce, read_secret, status, urls_of};
use crate::peer::KeyArgs;
use crate::progress::Side;
use crate::runtime::{block_on, interrupted};
use crate::selection::SelectionArgs;
use crate::serve::tell;

/// The interval at which it is looked whether this side may leave.
const TICK: Duration = Duration::from_millis(100);

/// An object for a swarm, and what `fontis cast` was told.
pub(crate) struct SwarmCast<'a> {
    pub(crate) path: &'a Path,
    /// By multicast, too, in this way.
    pub(crate) cast: Option<CastOptions>,
    pub(crate) listen: &'a ListenArgs,
    /// The default port.
    pub(crate) port: u16,
    pub(crate) public: bool,
    /// End when so many have everything.
    pub(crate) receivers: Option<u32>,
    pub(crate) keys: &'a KeyArgs,
    pub(crate) control: &'a ControlArgs,
    pub(crate) selection: &'a SelectionArgs,
    pub(crate) as_json: bool,
}

/// Runs `fontis cast --swarm`.
pub(crate) fn run(args: &SwarmCast<'_>) -> Result<(), Failure> {
    let keys = args.keys.load()?;
    let selection = args.selection.load()?;
    let (path, as_json, expected) = (args.path, args.as_json, args.receivers);
    block_on(&keys, async {
        let endpoint = args.listen.bind(args.port, &keys, RateKind::default())?;
        let secret = if args.public { None } else { Some(read_secret(path, &keys)?) };
        let (own, shown) = (endpoint.clone(), secret.clone());
        let server = if let Some(options) = args.cast {
            FileServer::of_swarm(own, caster_of(path, selection, options).await?, shown)?
        } else {
            let path = path.to_owned();
            let work = move || FileServer::of_object(own, &path, &selection, shown);
            let made = tokio::task::spawn_blocking(work).await;
            made.map_err(|_| Failure::Failed("internal error: a worker failed".to_owned()))??
        };
        let control = Control::new("cast", path.display().to_string(), args.control);
        control.attach(&endpoint);
        let _open = crate::steering::open(&control);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        announce(&urls_of(&endpoint, name.as_deref(), secret.as_ref()), as_json);
        status(&format_args!(
            "receivers fetch {} with fontis get --share; Ctrl-C ends it",
            path.display()
        ));
        if let Some(CastOptions { group, rate, .. }) = args.cast {
            let rate = rate_text(rate);
            status(&format_args!("casting it to {}, too, at {rate}", group.address));
        }
        let watching = watch(server.cast_status(), as_json, || false);
        let cast = async {
            if args.cast.is_some()
                && let Err(failure) = watching.await
            {
                status(&format_args!("{failure}; receivers get everything from each other"));
            }
            std::future::pending::<()>().await;
        };
        let is_needed = server.is_needed();
        let (done, mut all_done) = mpsc::unbounded_channel();
        let events = move |event: ServerEvent| {
            control.see(&event);
            if as_json {
                json::say(&json::server_event(&event, json::sent));
            }
            tell(&event, "complete", false, Side::Sending);
            if matches!(event, ServerEvent::Finished { .. }) {
                let _ = done.send(());
            }
        };
        let enough = async {
            let mut left = expected;
            while left != Some(0) {
                all_done.recv().await;
                left = left.map(|left| left - 1);
            }
            // The others have to have the rest from each other.
            while is_needed() {
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::select! {
            () = server.run(events) => Err(Failure::Failed("the socket failed".to_owned())),
            () = enough => Ok(()),
            () = cast => Ok(()),
            () = interrupted() => Ok(()),
        }
    })
}
