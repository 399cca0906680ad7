//! Where voice comes from and where it goes: files, standard input and output.
//!
//! Both are read and written by threads of their own, so that a slow disk or a full pipe delays no
//! packet.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use thiserror::Error;

use crate::codec::VoiceCodec;

/// Frames that are read ahead, and that wait to be written.
const AHEAD: usize = 16;

/// The reason why voice cannot be read or written.
#[derive(Debug, Error)]
pub enum AudioError {
    /// The file or stream failed.
    #[error("{name}: {error}")]
    Io {
        /// Its name.
        name: String,
        /// The failure.
        error: io::Error,
    },
    /// The file is not as the codec needs it.
    #[error(
        "{name} has {channels} channel(s), {bits} bits and {rate} samples a second; this codec takes one, 16 and \
         {needed}: convert it with ffmpeg -i {name} -ac 1 -ar {needed} -c:a pcm_s16le OUT.wav"
    )]
    Form {
        /// Its name.
        name: String,
        /// Its channels.
        channels: u16,
        /// Bits of a sample.
        bits: u16,
        /// Samples a second.
        rate: u32,
        /// The samples a second that the codec takes.
        needed: u32,
    },
    /// The file is no WAV file.
    #[error("{name} is no WAV file: {error}")]
    NoWav {
        /// Its name.
        name: String,
        /// The reason.
        error: hound::Error,
    },
}

/// Voice to be sent.
pub struct Audio {
    frames: Option<Receiver<Result<Vec<i16>, AudioError>>>,
}

/// The next frame of voice.
pub(crate) enum Spoken {
    Frame(Vec<i16>),
    /// Nothing has come in time.
    Late,
    /// There is no more.
    End,
    /// It cannot be read.
    Failed(AudioError),
}

impl Audio {
    /// No voice: this end only listens.
    pub const fn none() -> Self {
        Self { frames: None }
    }

    /// A WAV file with 16-bit samples of one channel, at the codec's rate.
    ///
    /// # Errors
    /// If it cannot be read, or is of another form.
    pub fn file(path: &Path, codec: VoiceCodec) -> Result<Self, AudioError> {
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| AudioError::Io { name: name.clone(), error })?;
        let mut source = Source::wav(Box::new(BufReader::new(file)), name, codec)?;
        Ok(Self::read(codec.samples(), move |frame| source.fill(frame)))
    }

    /// Standard input: a WAV file, or samples without a header (16 bits, little-endian, one
    /// channel, at the codec's rate), as `arecord -t raw -f S16_LE -c 1 -r 16000` writes them.
    pub fn stdin(codec: VoiceCodec) -> Self {
        let mut source = None;
        Self::read(codec.samples(), move |frame| {
            let source = match &mut source {
                Some(source) => source,
                None => source.insert(Source::open(io::stdin(), "standard input", codec)?),
            };
            source.fill(frame)
        })
    }

    /// A test sound for so many frames: bursts like vowels, of a second each, and pauses half as
    /// long.
    pub fn test(frames: u64, codec: VoiceCodec) -> Self {
        let (rate, len) = (f64::from(codec.sample_rate()), codec.samples());
        let mut at = 0;
        Self::read(len, move |frame| {
            if at / len as u64 >= frames {
                return Ok(0);
            }
            for sample in frame.iter_mut() {
                let time = at as f64 / rate;
                let pitch = 120.0 + 20.0 * (time * 2.0).sin();
                let wave = |harmonic: f64| {
                    (std::f64::consts::TAU * pitch * harmonic * time).sin() / harmonic
                };
                let loudness = if time % 1.5 < 1.0 { 5000.0 } else { 0.0 };
                *sample = (loudness * (wave(1.0) + wave(3.0) + wave(6.0))) as i16;
                at += 1;
            }
            Ok(len)
        })
    }

    /// Reads frames of `len` samples with `fill`, which returns the samples that there were. The
    /// last frame is filled up with silence.
    fn read(
        len: usize,
        mut fill: impl FnMut(&mut [i16]) -> Result<usize, AudioError> + Send + 'static,
    ) -> Self {
        let (sender, frames) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            loop {
                let mut frame = vec![0; len];
                let filled = fill(&mut frame);
                let is_last = !filled.as_ref().is_ok_and(|filled| *filled == len);
                let is_empty = matches!(filled, Ok(0));
                if !is_empty && sender.send(filled.map(|_| frame)).is_err() || is_last {
                    return;
                }
            }
        });
        Self { frames: Some(frames) }
    }

    pub(crate) fn next(&mut self) -> Spoken {
        let Some(frames) = &self.frames else { return Spoken::End };
        match frames.try_recv() {
            Ok(Ok(frame)) => Spoken::Frame(frame),
            Ok(Err(error)) => Spoken::Failed(error),
            Err(TryRecvError::Empty) => Spoken::Late,
            Err(TryRecvError::Disconnected) => {
                self.frames = None;
                Spoken::End
            }
        }
    }
}

/// A stream of samples.
enum Source {
    Wav { reader: WavReader<Box<dyn Read + Send>>, name: String },
    Raw { stream: Box<dyn Read + Send>, name: String },
}

impl Source {
    /// Opens a stream, which begins with the header of a WAV file or has none.
    fn open(
        mut stream: impl Read + Send + 'static,
        name: &str,
        codec: VoiceCodec,
    ) -> Result<Self, AudioError> {
        let mut begin = [0; 4];
        let len = fill_up(&mut stream, &mut begin)
            .map_err(|error| AudioError::Io { name: name.to_owned(), error })?;
        let whole = io::Cursor::new(begin[..len].to_vec()).chain(stream);
        let whole = Box::new(BufReader::new(whole));
        if begin == *b"RIFF" {
            return Self::wav(whole, name.to_owned(), codec);
        }
        Ok(Self::Raw { stream: whole, name: name.to_owned() })
    }

    fn wav(
        stream: Box<dyn Read + Send>,
        name: String,
        codec: VoiceCodec,
    ) -> Result<Self, AudioError> {
        let reader = WavReader::new(stream)
            .map_err(|error| AudioError::NoWav { name: name.clone(), error })?;
        let (spec, needed) = (reader.spec(), codec.sample_rate());
        if spec.channels != 1
            || spec.bits_per_sample != 16
            || spec.sample_format != SampleFormat::Int
            || spec.sample_rate != needed
        {
            let (channels, bits, rate) = (spec.channels, spec.bits_per_sample, spec.sample_rate);
            return Err(AudioError::Form { name, channels, bits, rate, needed });
        }
        Ok(Self::Wav { reader, name })
    }

    /// Reads samples; fewer than there is room for at the end alone.
    fn fill(&mut self, frame: &mut [i16]) -> Result<usize, AudioError> {
        match self {
            Self::Wav { reader, name } => {
                let mut len = 0;
                for (place, sample) in frame.iter_mut().zip(reader.samples::<i16>()) {
                    *place =
                        sample.map_err(|error| AudioError::NoWav { name: name.clone(), error })?;
                    len += 1;
                }
                Ok(len)
            }
            Self::Raw { stream, name } => {
                let mut bytes = vec![0; frame.len() * 2];
                let len = fill_up(stream, &mut bytes)
                    .map_err(|error| AudioError::Io { name: name.clone(), error })?;
                for (sample, pair) in frame.iter_mut().zip(bytes.chunks_exact(2)) {
                    *sample = i16::from_le_bytes([pair[0], pair[1]]);
                }
                Ok(len / 2)
            }
        }
    }
}

/// Reads until `bytes` is full or the stream ends. Returns how many there were.
fn fill_up(stream: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match stream.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The place where voice is heard.
pub struct Speaker {
    way: Option<(SyncSender<Vec<i16>>, Writer)>,
}

/// The thread that writes.
type Writer = JoinHandle<Result<(), AudioError>>;

impl Speaker {
    /// Voice is decoded and rated, and goes nowhere.
    pub const fn none() -> Self {
        Self { way: None }
    }

    /// A WAV file. It gets its name when the call is over.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn file(path: &Path, codec: VoiceCodec) -> Result<Self, AudioError> {
        let name = path.display().to_string();
        let failed = {
            let name = name.clone();
            move |error| AudioError::Io { name: name.clone(), error }
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
        let file = tempfile::Builder::new()
            .prefix(".fontis-call-")
            .tempfile_in(folder)
            .map_err(&failed)?;
        let spec = WavSpec {
            channels: 1,
            sample_rate: codec.sample_rate(),
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let copy = file.reopen().map_err(&failed)?;
        let wrong = move |error| AudioError::NoWav { name: name.clone(), error };
        let mut writer = WavWriter::new(io::BufWriter::new(copy), spec).map_err(&wrong)?;
        let path = path.to_owned();
        Ok(Self::write(move |frames| {
            for frame in frames {
                for sample in frame {
                    writer.write_sample(sample).map_err(&wrong)?;
                }
            }
            writer.finalize().map_err(&wrong)?;
            file.persist(&path).map(drop).map_err(|error| failed(error.error))
        }))
    }

    /// Standard output: samples of 16 bits, little-endian, one channel, at the codec's rate, as
    /// `aplay -t raw -f S16_LE -c 1 -r 16000` reads them.
    pub fn stdout() -> Self {
        Self::write(|frames| {
            let mut output = io::stdout().lock();
            for frame in frames {
                let bytes: Vec<u8> = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
                let written = output.write_all(&bytes).and_then(|()| output.flush());
                written.map_err(|error| {
                    let name = "standard output".to_owned();
                    AudioError::Io { name, error }
                })?;
            }
            Ok(())
        })
    }

    fn write(
        work: impl FnOnce(Receiver<Vec<i16>>) -> Result<(), AudioError> + Send + 'static,
    ) -> Self {
        let (sender, frames) = sync_channel(AHEAD);
        Self { way: Some((sender, std::thread::spawn(move || work(frames)))) }
    }

    /// Hands over a frame. A listener that does not keep up misses it. False if it is gone.
    pub(crate) fn play(&self, frame: &[i16]) -> bool {
        let Some((sender, _)) = &self.way else { return true };
        !matches!(sender.try_send(frame.to_vec()), Err(TrySendError::Disconnected(_)))
    }

    /// Ends the output, and waits until all is written.
    pub(crate) fn finish(self) -> Result<(), AudioError> {
        let Some((sender, thread)) = self.way else { return Ok(()) };
        drop(sender);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut audio: Audio) -> Vec<i16> {
        let mut samples = Vec::new();
        loop {
            match audio.next() {
                Spoken::Frame(frame) => samples.extend(frame),
                Spoken::Late => std::thread::yield_now(),
                Spoken::End => return samples,
                Spoken::Failed(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_filled_to_a_whole_frame() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("voice.wav");
        let speaker = Speaker::file(&path, VoiceCodec::Mulaw).expect("a file");
        let samples: Vec<i16> = (0..1600).map(|at| (at * 17) as i16).collect();
        for frame in samples.chunks(100) {
            while let Some((sender, _)) = &speaker.way {
                if sender.try_send(frame.to_vec()).is_ok() {
                    break;
                }
            }
        }
        assert!(!path.exists(), "it has no name before it is whole");
        speaker.finish().expect("it is written");
        assert_eq!(all(Audio::file(&path, VoiceCodec::Mulaw).expect("a file")), samples);
        let wrong = Audio::file(&path, VoiceCodec::OPUS).err().expect("another rate");
        assert!(wrong.to_string().contains("-ar 16000"), "{wrong}");
        std::fs::write(&path, b"no voice").expect("a file");
        assert!(matches!(Audio::file(&path, VoiceCodec::Mulaw), Err(AudioError::NoWav { .. })));
    }

    #[test]
    fn a_stream_is_samples_or_a_wav_file_and_a_file_that_is_cut_off_is_an_error() {
        let mut frame = [0; 160];
        let raw: Vec<u8> = (0..200_i16).flat_map(i16::to_le_bytes).collect();
        let open = |bytes: Vec<u8>| {
            Source::open(io::Cursor::new(bytes), "it", VoiceCodec::Mulaw).expect("a stream")
        };
        let mut source = open(raw.clone());
        assert_eq!(source.fill(&mut frame).expect("samples"), 160);
        assert_eq!(frame[159], 159);
        assert_eq!(source.fill(&mut frame).expect("samples"), 40);
        let mut wav = io::Cursor::new(Vec::new());
        let spec = WavSpec {
            channels: 1,
            sample_rate: 8000,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let mut writer = WavWriter::new(&mut wav, spec).expect("a writer");
        (0..200_i16).for_each(|sample| writer.write_sample(sample).expect("a sample"));
        writer.finalize().expect("a file");
        let whole = wav.into_inner();
        let mut source = open(whole.clone());
        assert_eq!(source.fill(&mut frame).expect("samples"), 160);
        assert_eq!(frame[159], 159);
        let mut source = open(whole[..100].to_vec());
        assert!(matches!(source.fill(&mut frame), Err(AudioError::NoWav { .. })));
    }

    #[test]
    fn the_test_sound_is_as_long_as_it_should_be() {
        let samples = all(Audio::test(75, VoiceCodec::OPUS));
        assert_eq!(samples.len(), 75 * 320);
        assert!(samples[..16_000].iter().any(|sample| sample.unsigned_abs() > 4000));
        assert!(samples[16_320..24_000].iter().all(|sample| *sample == 0));
    }
}
