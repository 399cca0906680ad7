use fontis_base::Time;

use crate::audio::{Audio, Speaker, Spoken};
use crate::codec::VoiceCodec;
use crate::error::CallError;
use crate::hearer::Hearer;
use crate::phone::Phone;
use crate::rtp::RtpFrame;

/// Where the voice of an end comes from and where it goes.
pub enum Voice {
    /// Samples, which this end codes and plays.
    Sound(Audio, Speaker),
    /// A telephone, which codes and plays itself.
    Phone(Box<Phone>),
}

/// News of a telephone.
pub(crate) enum VoiceNews {
    /// It says something.
    Packet(RtpFrame),
    /// It has hung up.
    HungUp,
}

impl Voice {
    /// Completes when a telephone has hung up.
    pub(crate) async fn hung_up(&mut self) {
        while let VoiceNews::Packet(_) = self.news().await {}
    }

    /// What a telephone says next; samples are asked for.
    pub(crate) async fn news(&mut self) -> VoiceNews {
        match self {
            Self::Sound(..) => std::future::pending().await,
            Self::Phone(phone) => match phone.next().await {
                Some(packet) => VoiceNews::Packet(packet),
                None => VoiceNews::HungUp,
            },
        }
    }

    /// Lets a telephone that calls know that it is answered.
    pub(crate) async fn answer(&mut self, codec: VoiceCodec) -> Result<(), CallError> {
        match self {
            Self::Sound(..) => Ok(()),
            Self::Phone(phone) => Ok(phone.accept(codec).await?),
        }
    }

    /// The next frame, as far as it is samples.
    pub(crate) fn next(&mut self) -> Spoken {
        match self {
            Self::Sound(audio, _) => audio.next(),
            Self::Phone(_) => Spoken::Late,
        }
    }

    /// Plays what is to be heard now. False if nobody listens any more.
    pub(crate) fn play(&mut self, now: Time, hearer: &mut Hearer, pcm: &mut [i16]) -> bool {
        match self {
            Self::Sound(_, speaker) => {
                hearer.play(now, pcm);
                speaker.play(pcm)
            }
            Self::Phone(phone) => {
                for packet in hearer.pass(now, phone.takes()) {
                    phone.send(&packet);
                }
                true
            }
        }
    }

    /// Ends the output, and waits until all is done.
    pub(crate) async fn finish(self) -> Result<(), CallError> {
        match self {
            Self::Sound(_, speaker) => Ok(speaker.finish()?),
            Self::Phone(phone) => Ok(phone.hang_up().await?),
        }
    }
}
