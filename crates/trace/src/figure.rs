//! A part of a trace as a figure: the ladder between hosts, as SVG.

use std::fmt::Write;

use fontis_base::Time;

use crate::lane::LaneKind;
use crate::packet::{Fate, Kind, Marks, NOWHERE, TracePacket};
use crate::trace::Trace;

/// What is drawn, and how large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// From this time after the beginning.
    pub from: Time,
    /// Until this time.
    pub until: Time,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
}

/// Beyond this many packets a figure is ink without a message.
pub const MOST_PACKETS: usize = 20_000;
const MARGIN: f64 = 72.0;
const HEAD: f64 = 56.0;
const FOOT: f64 = 40.0;

impl Figure {
    /// All of a trace.
    pub fn of(trace: &Trace) -> Self {
        Self { from: Time::ZERO, until: trace.end, width: 900.0, height: 1200.0 }
    }

    /// Draws it. The same trace gives the same bytes.
    pub fn draw(&self, trace: &Trace) -> String {
        let mut out = String::new();
        self.draw_into(trace, &mut out).expect("a string takes what is written");
        out
    }

    fn draw_into(&self, trace: &Trace, out: &mut String) -> std::fmt::Result {
        let Self { width, height, .. } = *self;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">"
        )?;
        writeln!(out, "<title>{}: exchange of packets</title>", escape(&trace.title))?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
        writeln!(
            out,
            "<style>line{{stroke-width:1}}.again{{stroke-dasharray:5 3}}.maybe{{stroke-opacity:.55}}</style>"
        )?;
        self.axis(out)?;
        for (index, lane) in trace.lanes.iter().enumerate() {
            let x = self.x(index as u16, trace);
            let dashes =
                if lane.kind == LaneKind::Queue { " stroke-dasharray=\"2 3\"" } else { "" };
            let bottom = height - FOOT;
            writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{HEAD}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#333\"{dashes}/>"
            )?;
            let name = escape(&lane.name);
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                HEAD - 10.0
            )?;
        }
        let begin = trace.packets.partition_point(|packet| packet.sent < self.from);
        let shown =
            trace.packets[begin..].iter().enumerate().take_while(|(_, p)| p.sent < self.until);
        let mut hops = trace.hops.as_slice();
        let mut drawn = 0;
        for (index, packet) in shown.take(MOST_PACKETS) {
            let number = (begin + index) as u32;
            let skip = hops.partition_point(|hop| hop.packet < number);
            hops = &hops[skip..];
            let count = hops.partition_point(|hop| hop.packet <= number);
            let mut points = vec![(self.x(packet.from, trace), self.y(packet.sent))];
            for hop in &hops[..count] {
                let x = self.x(hop.lane, trace);
                points.push((x, self.y(hop.enter)));
                points.push((x, self.y(hop.leave)));
            }
            self.end(packet, trace, &mut points);
            self.packet(packet, &points, out)?;
            drawn += 1;
        }
        self.legend(trace, drawn, out)?;
        writeln!(out, "</svg>")
    }

    fn end(&self, packet: &TracePacket, trace: &Trace, points: &mut Vec<(f64, f64)>) {
        let (mut x, mut at) = (self.x(packet.to, trace), packet.ended);
        if packet.fate == Fate::Lost {
            if packet.place != NOWHERE {
                x = self.x(packet.place, trace);
            } else if let Some((last, _)) = points.last() {
                // Nobody knows where: it ends on the way.
                x = last + (x - last) * 0.6;
            }
        }
        if at == Time::MAX {
            at = packet.sent;
            if let Some((last, _)) = points.last().filter(|_| packet.fate == Fate::Unknown) {
                x = last + (x - last) * 0.15;
            }
        }
        points.push((x, self.y(at)));
    }

    fn packet(
        &self,
        packet: &TracePacket,
        points: &[(f64, f64)],
        out: &mut String,
    ) -> std::fmt::Result {
        let again = packet.marks.has(Marks::RETRANSMITTED);
        let maybe = packet.marks.has(Marks::ESTIMATED);
        let class = match (again, maybe) {
            (true, true) => " class=\"again maybe\"",
            (true, false) => " class=\"again\"",
            (false, true) => " class=\"maybe\"",
            (false, false) => "",
        };
        let colour = if packet.fate == Fate::Lost { "#d1242f" } else { colour(packet.kind) };
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let path = path.join(" ");
        writeln!(out, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\"{class}/>")?;
        if let Some((x, y)) = points.last().filter(|_| packet.fate == Fate::Lost) {
            let (l, r, t, b) = (x - 3.0, x + 3.0, y - 3.0, y + 3.0);
            writeln!(
                out,
                "<path d=\"M{l:.1} {t:.1}L{r:.1} {b:.1}M{l:.1} {b:.1}L{r:.1} {t:.1}\" stroke=\"{colour}\"/>"
            )?;
        }
        Ok(())
    }

    fn axis(&self, out: &mut String) -> std::fmt::Result {
        let span = self.until.since(self.from).as_secs_f64();
        let steps = (-6i32..6)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|one| one * libm::pow(10.0, f64::from(power))));
        let step = steps.into_iter().find(|step| span / step <= 12.0).unwrap_or(span.max(1e-9));
        let first = (self.from.as_secs_f64() / step).ceil() as u64;
        for tick in (first..).take(20) {
            let at = tick as f64 * step;
            if at > self.until.as_secs_f64() {
                break;
            }
            let y = self.y(Time::from_nanos((at * 1e9) as u64));
            let label = if step >= 1.0 {
                format!("{at:.0} s")
            } else {
                format!("{:.*} ms", if step < 1e-3 { 2 } else { 0 }, at * 1e3)
            };
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{label}</text>",
                MARGIN - 14.0,
                y + 4.0
            )?;
            writeln!(
                out,
                "<line x1=\"{MARGIN}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#eee\"/>",
                self.width - MARGIN
            )?;
        }
        Ok(())
    }

    fn legend(&self, trace: &Trace, drawn: usize, out: &mut String) -> std::fmt::Result {
        let mut x = MARGIN;
        let y = self.height - 14.0;
        for kind in Kind::ALL {
            if !trace.packets.iter().any(|packet| packet.kind == kind) {
                continue;
            }
            let (colour, name) = (colour(kind), kind.name());
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>",
                y - 9.0
            )?;
            writeln!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">{name}</text>", x + 14.0)?;
            x += 40.0 + name.len() as f64 * 7.0;
        }
        let text = format!("{}; {drawn} packets; dashed: sent again; red: lost", trace.title);
        writeln!(out, "<text x=\"{MARGIN}\" y=\"20\" font-weight=\"bold\">{}</text>", escape(&text))
    }

    fn x(&self, lane: u16, trace: &Trace) -> f64 {
        let gaps = trace.lanes.len().saturating_sub(1).max(1) as f64;
        MARGIN + 40.0 + f64::from(lane) / gaps * (self.width - 2.0 * MARGIN - 80.0)
    }

    fn y(&self, at: Time) -> f64 {
        let span = self.until.since(self.from).as_nanos().max(1) as f64;
        let since = at.offset_from(self.from) as f64;
        (HEAD + since / span * (self.height - HEAD - FOOT)).min(self.height - FOOT)
    }
}

const fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "#0969da",
        Kind::Repair => "#bf8700",
        Kind::Ack => "#1a7f37",
        Kind::Handshake => "#8250df",
        Kind::Control => "#6e7781",
        Kind::Opaque => "#57606a",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
