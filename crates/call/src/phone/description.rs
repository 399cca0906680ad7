//! Offers and answers of voice in SDP (RFC 3264, RFC 8866).

use std::net::{IpAddr, SocketAddr};

use sdp_types::{Attribute, Connection, Media, Origin, Session, Time};

use crate::codec::VoiceCodec;
use crate::rtp::{KEYS_TYPE, KeyFormat, NOISE_TYPE, SideFormats};

/// The payload type of Opus in this end's offers.
const OPUS_TYPE: u8 = 111;
/// That of keys with the clock of Opus.
const OPUS_KEYS_TYPE: u8 = 110;
/// Units of the timestamps of Opus, and of G.711, in a second.
const OPUS_CLOCK: u32 = 48_000;
const CLOCK: u32 = 8000;
/// The most formats and lines of an offer that are read.
const MOST_FORMATS: usize = 64;
const MOST_LINES: usize = 16;

/// A codec, and the payload type by which an end names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VoiceFormat {
    pub(crate) codec: VoiceCodec,
    pub(crate) payload_type: u8,
}

/// What the other end says of its voice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VoiceDescription {
    /// The port that it hears at.
    pub(crate) port: u16,
    /// The codecs that it has, its favourite first.
    pub(crate) formats: Vec<VoiceFormat>,
    /// The port that it takes reports at.
    pub(crate) control_port: u16,
    /// The forms of keys that it has, and whether it has comfort noise.
    keys: Vec<KeyFormat>,
    has_noise: bool,
    /// Its direction, as the other end has to answer it.
    answer: &'static str,
    /// Its lines, and the place of the one with voice.
    lines: Vec<Media>,
    place: usize,
}

impl VoiceDescription {
    /// Reads a description; `None` if it has no voice that is spoken here. `opus` is the form of
    /// Opus that is spoken.
    pub(crate) fn parse(text: &[u8], opus: VoiceCodec) -> Option<Self> {
        let session = Session::parse(text).ok()?;
        if session.medias.len() > MOST_LINES {
            return None;
        }
        let is_voice =
            |line: &Media| line.media == "audio" && line.port != 0 && line.proto == "RTP/AVP";
        let place = session.medias.iter().position(is_voice)?;
        let line = &session.medias[place];
        let all = || line.attributes.iter().chain(&session.attributes);
        let name_of = |payload_type: u8| {
            all().filter(|one| one.attribute == "rtpmap").find_map(|one| {
                let (number, name) = one.value.as_deref()?.trim().split_once(' ')?;
                (number.parse() == Ok(payload_type)).then(|| name.trim().to_ascii_lowercase())
            })
        };
        let map = |payload_type: u8| match (payload_type, name_of(payload_type).as_deref()) {
            (0, None) | (_, Some("pcmu/8000" | "pcmu/8000/1")) => Some(VoiceCodec::Mulaw),
            (8, None) | (_, Some("pcma/8000" | "pcma/8000/1")) => Some(VoiceCodec::Alaw),
            (_, Some("opus/48000/2")) => Some(opus),
            _ => None,
        };
        let numbers = line.fmt.split_ascii_whitespace().take(MOST_FORMATS);
        let numbers = numbers.filter_map(|text| text.parse().ok().filter(|number| *number < 128));
        let numbers: Vec<u8> = numbers.collect();
        let keys = numbers.iter().filter_map(|payload_type| {
            let name = name_of(*payload_type)?;
            let clock = name.strip_prefix("telephone-event/")?.parse().ok()?;
            let is_right = clock == CLOCK || clock == OPUS_CLOCK;
            is_right.then_some(KeyFormat { payload_type: *payload_type, clock })
        });
        let keys = keys.collect();
        let has_noise = numbers.contains(&NOISE_TYPE);
        let formats = numbers.into_iter().filter_map(|payload_type| {
            Some(VoiceFormat { codec: map(payload_type)?, payload_type })
        });
        let formats: Vec<VoiceFormat> = formats.collect();
        let direction = all().map(|one| one.attribute.as_str());
        let direction =
            direction.filter(|name| ["sendonly", "recvonly", "inactive"].contains(name));
        let answer = match direction.take(1).next() {
            Some("sendonly") => "recvonly",
            Some("recvonly") => "sendonly",
            Some(_) => "inactive",
            None => "sendrecv",
        };
        let port = line.port;
        let told = line.attributes.iter().find(|one| one.attribute == "rtcp");
        let told = told.and_then(|one| one.value.as_deref()?.split(' ').next()?.parse().ok());
        let control_port = told.unwrap_or(port.wrapping_add(1));
        (!formats.is_empty()).then_some(Self {
            port,
            formats,
            control_port,
            keys,
            has_noise,
            answer,
            lines: session.medias,
            place,
        })
    }

    /// The payload type by which the other end names a codec, if it has it.
    pub(crate) fn payload_type(&self, codec: VoiceCodec) -> Option<u8> {
        let same = |format: &&VoiceFormat| {
            format.codec == codec
                || matches!(
                    (format.codec, codec),
                    (VoiceCodec::Opus { .. }, VoiceCodec::Opus { .. })
                )
        };
        self.formats.iter().find(same).map(|format| format.payload_type)
    }

    /// The packets without voice that it has beside a codec: keys of the codec's clock, if it can.
    pub(crate) fn side(&self, codec: VoiceCodec) -> SideFormats {
        let clock = clock(codec);
        let keys = self.keys.iter().find(|keys| keys.clock == clock).or(self.keys.first());
        let has_noise = self.has_noise && clock == CLOCK;
        SideFormats { keys: keys.copied(), has_noise }
    }

    /// The answer to it with one format, for voice that is heard at `at`.
    pub(crate) fn answer(&self, at: SocketAddr, format: VoiceFormat, version: u64) -> String {
        let mut lines: Vec<Media> = self.lines.iter().map(refused).collect();
        lines[self.place] = line(at.port(), format, &self.side(format.codec), self.answer);
        write(at.ip(), lines, version)
    }
}

/// An offer with one codec, for voice that is heard at `at`.
pub(crate) fn offer(at: SocketAddr, codec: VoiceCodec, version: u64) -> String {
    let own = |payload_type, clock| KeyFormat { payload_type, clock };
    let keys = own(KEYS_TYPE, CLOCK);
    let mut line = match clock(codec) {
        CLOCK => {
            let side = SideFormats { keys: Some(keys), has_noise: true };
            line(at.port(), format_of(codec), &side, "sendrecv")
        }
        clock => {
            let keys = Some(own(OPUS_KEYS_TYPE, clock));
            let side = SideFormats { keys, has_noise: false };
            line(at.port(), format_of(codec), &side, "sendrecv")
        }
    };
    if clock(codec) != CLOCK {
        // Many a telephone knows keys with this clock alone.
        line.fmt += &format!(" {KEYS_TYPE}");
        line.attributes.splice(0..0, describe_keys(keys));
    }
    write(at.ip(), vec![line], version)
}

/// Units of a codec's timestamps in a second.
const fn clock(codec: VoiceCodec) -> u32 {
    match codec {
        VoiceCodec::Opus { .. } => OPUS_CLOCK,
        _ => CLOCK,
    }
}

/// The attributes of keys: all sixteen of a telephone.
fn describe_keys(KeyFormat { payload_type, clock }: KeyFormat) -> [Attribute; 2] {
    [
        Attribute::with_value("rtpmap", format!("{payload_type} telephone-event/{clock}")),
        Attribute::with_value("fmtp", format!("{payload_type} 0-15")),
    ]
}

/// The format by which this end offers a codec.
pub(crate) const fn format_of(codec: VoiceCodec) -> VoiceFormat {
    let payload_type = match codec {
        VoiceCodec::Alaw => 8,
        VoiceCodec::Opus { .. } => OPUS_TYPE,
        _ => 0,
    };
    VoiceFormat { codec, payload_type }
}

fn line(port: u16, format: VoiceFormat, side: &SideFormats, direction: &str) -> Media {
    let VoiceFormat { codec, payload_type } = format;
    let mut numbers = payload_type.to_string();
    let with = |name: &str, value: String| Attribute::with_value(name, value);
    let name = match codec {
        VoiceCodec::Opus { .. } => "opus/48000/2",
        VoiceCodec::Alaw => "PCMA/8000",
        _ => "PCMU/8000",
    };
    let mut attributes = vec![with("rtpmap", format!("{payload_type} {name}"))];
    if let VoiceCodec::Opus { rate, fec } = codec {
        let fec = u8::from(fec);
        let wishes =
            format!("stereo=0;sprop-stereo=0;maxaveragebitrate={rate};useinbandfec={fec};usedtx=1");
        attributes.push(with("fmtp", format!("{payload_type} {wishes}")));
    }
    if side.has_noise {
        numbers += &format!(" {NOISE_TYPE}");
        attributes.push(with("rtpmap", format!("{NOISE_TYPE} CN/8000")));
    }
    if let Some(keys) = side.keys {
        numbers += &format!(" {}", keys.payload_type);
        attributes.extend(describe_keys(keys));
    }
    attributes.push(with("ptime", "20".to_owned()));
    attributes.push(with("maxptime", "20".to_owned()));
    attributes.push(Attribute::new(direction));
    Media { attributes, ..bare("audio", port, "RTP/AVP", &numbers) }
}

/// A line as it stands in an answer that does not take it (RFC 3264 section 6).
fn refused(line: &Media) -> Media {
    bare(&line.media, 0, &line.proto, &line.fmt)
}

fn bare(media: &str, port: u16, proto: &str, formats: &str) -> Media {
    Media {
        media: media.to_owned(),
        port,
        num_ports: None,
        proto: proto.to_owned(),
        fmt: formats.to_owned(),
        media_title: None,
        connections: Vec::new(),
        bandwidths: Vec::new(),
        key: None,
        attributes: Vec::new(),
    }
}

fn write(at: IpAddr, lines: Vec<Media>, version: u64) -> String {
    let mut session = Session::new(Origin::with_ip_addr(1, version, at), "-");
    session.connection = Some(Connection::from_ip_addr(at));
    session.times.push(Time::new(0, 0));
    session.medias = lines;
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = session.write(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An offer as baresip makes it, shortened, with a line of video.
    const OFFER: &str = "v=0\r\no=- 3218 10 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\n\
        t=0 0\r\na=tool:baresip 1.0.0\r\nm=audio 13218 RTP/AVP 96 0 8 101\r\n\
        a=rtpmap:96 opus/48000/2\r\na=fmtp:96 stereo=1;sprop-stereo=1\r\n\
        a=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\n\
        a=rtcp:13219\r\na=sendonly\r\na=ptime:20\r\nm=video 5000 RTP/AVP 97\r\n\
        a=rtpmap:97 VP8/90000\r\n";

    #[test]
    fn an_offer_of_a_softphone_is_read_and_answered() {
        let offer = VoiceDescription::parse(OFFER.as_bytes(), VoiceCodec::OPUS).expect("an offer");
        let types: Vec<u8> = offer.formats.iter().map(|format| format.payload_type).collect();
        assert_eq!((offer.port, types), (13_218, vec![96, 0, 8]));
        let fec = VoiceCodec::Opus { rate: 16_000, fec: true };
        assert_eq!(offer.payload_type(fec), Some(96), "any form of Opus is Opus");
        let at = "127.0.0.1:4000".parse().expect("an address");
        let answer = offer.answer(at, offer.formats[1], 1);
        assert!(answer.contains("m=audio 4000 RTP/AVP 0 101\r\n"), "{answer}");
        assert!(answer.contains("a=rtpmap:101 telephone-event/8000\r\n"), "{answer}");
        assert_eq!(offer.control_port, 13_219);
        assert!(answer.contains("m=video 0 RTP/AVP 97\r\n"), "{answer}");
        assert!(answer.contains("a=recvonly\r\n"), "{answer}");
        let back = VoiceDescription::parse(answer.as_bytes(), VoiceCodec::OPUS).expect("voice");
        assert_eq!(back.formats, [format_of(VoiceCodec::Mulaw)]);
    }

    #[test]
    fn each_codec_is_offered_as_it_is_read() {
        let at = "[::1]:4000".parse().expect("an address");
        for codec in [VoiceCodec::Mulaw, VoiceCodec::Alaw, VoiceCodec::OPUS] {
            let text = offer(at, codec, 1);
            let read = VoiceDescription::parse(text.as_bytes(), VoiceCodec::OPUS).expect("voice");
            let side = read.side(codec);
            let is_opus = codec == VoiceCodec::OPUS;
            let (payload_type, clock) = if is_opus { (110, 48_000) } else { (101, 8000) };
            let keys = Some(KeyFormat { payload_type, clock });
            assert_eq!(side, SideFormats { keys, has_noise: !is_opus }, "{text}");
            assert_eq!(read.control_port, 4001);
            assert_eq!((read.port, read.formats), (4000, vec![format_of(codec)]), "{text}");
        }
        let video = OFFER.replace("m=audio", "m=text");
        assert_eq!(VoiceDescription::parse(video.as_bytes(), VoiceCodec::OPUS), None);
    }

    #[test]
    fn keys_and_noise_are_answered_as_they_are_offered() {
        let at = "127.0.0.1:4000".parse().expect("an address");
        let answer_to = |offer: &str, place: usize| {
            let offer = VoiceDescription::parse(offer.as_bytes(), VoiceCodec::OPUS);
            let offer = offer.expect("an offer");
            offer.answer(at, offer.formats[place], 1)
        };
        // One clock is no reason against keys with Opus.
        let opus = answer_to(OFFER, 0);
        assert!(opus.contains("m=audio 4000 RTP/AVP 96 101\r\n"), "{opus}");
        let both = OFFER
            .replace("8 101", "8 101 13 102")
            .replace("a=rtcp:13219\r\n", "a=rtpmap:102 telephone-event/48000\r\n");
        let opus = answer_to(&both, 0);
        assert!(opus.contains("m=audio 4000 RTP/AVP 96 102\r\n"), "{opus}");
        let g711 = answer_to(&both, 1);
        assert!(g711.contains("m=audio 4000 RTP/AVP 0 13 101\r\n"), "{g711}");
        assert!(g711.contains("a=rtpmap:13 CN/8000\r\n"), "{g711}");
        let none = OFFER.replace("8 101", "8");
        let g711 = answer_to(&none, 1);
        assert!(g711.contains("m=audio 4000 RTP/AVP 0\r\n"), "{g711}");
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_are_read_without_harm(cut in 0..OFFER.len(), tail: Vec<u8>) {
            let bytes = [&OFFER.as_bytes()[..cut], &tail].concat();
            if let Some(read) = VoiceDescription::parse(&bytes, VoiceCodec::OPUS) {
                let at = "127.0.0.1:4000".parse().expect("an address");
                let _ = read.answer(at, read.formats[0], 1);
            }
        }
    }
}
