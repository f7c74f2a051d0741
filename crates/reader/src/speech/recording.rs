//! Recordings as their bytes hold them: WAV, MP3, MP4, Ogg, FLAC and ADTS, decoded as they are asked for, so that only a little of one is in memory.

use std::io::{Cursor, ErrorKind};

use domain::reading::Unreadable;
use opus_decoder::OpusDecoder;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;

use super::SAMPLE_RATE;
use super::resample::Resampler;
use crate::{Result, Stop, damaged};

/// Packets in a row that make no sound. After so many, the rest is given up.
const MOST_BROKEN: usize = 200;

pub struct Recording<'a> {
    format: Box<dyn FormatReader + 'a>,
    track_id: u32,
    codec: Codec,
    resampler: Option<(usize, Resampler)>,
    /// As the file says.
    seconds: Option<f64>,
    /// The packets in a row that made no sound.
    n_broken: usize,
    is_heard: bool,
    mono: Vec<f32>,
}

enum Codec {
    Symphonia { decoder: Box<dyn AudioDecoder>, samples: Vec<f32> },
    Opus { decoder: Box<OpusDecoder>, n_channels: usize, samples: Vec<f32> },
}

impl<'a> Recording<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let stream = MediaSourceStream::new(Box::new(Cursor::new(bytes)), MediaSourceStreamOptions::default());
        let (format, meta) = (FormatOptions::default(), MetadataOptions::default());
        let format = symphonia::default::get_probe()
            .probe(&Hint::new(), stream, format, meta)
            .map_err(|_| damaged("no recording is in it"))?;
        let Some(track) = format.default_track(TrackType::Audio) else {
            return Err(Stop::Refused(Unreadable::NoText, "there is no sound in it".into()));
        };
        let params = track.codec_params.as_ref().and_then(|params| params.audio());
        let Some(params) = params else { return Err(unknown()) };
        let codec = if params.codec == CODEC_ID_OPUS {
            Codec::opus(params.channels.as_ref().map_or(1, |channels| channels.count()))?
        } else {
            let decoder = symphonia::default::get_codecs().make_audio_decoder(params, &AudioDecoderOptions::default());
            Codec::Symphonia { decoder: decoder.map_err(refused)?, samples: Vec::new() }
        };
        let rate = params.sample_rate.filter(|rate| *rate > 0);
        let seconds = track.num_frames.zip(rate).map(|(n_frames, rate)| n_frames as f64 / f64::from(rate));
        let track_id = track.id;
        Ok(Self { format, track_id, codec, resampler: None, seconds, n_broken: 0, is_heard: false, mono: Vec::new() })
    }

    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// Appends what comes next: the mean of all channels, 16,000 samples a second. False: it has ended.
    pub fn next(&mut self, samples: &mut Vec<f32>) -> Result<bool> {
        match self.format.next_packet() {
            Ok(Some(packet)) if packet.track_id == self.track_id => self.decode(&packet, samples)?,
            Ok(Some(_)) => {}
            // What was cut off is read as far as it goes.
            Ok(None) | Err(Error::ResetRequired) => return self.end(samples),
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => return self.end(samples),
            Err(error) => return Err(refused(error)),
        }
        Ok(true)
    }

    fn decode(&mut self, packet: &Packet, samples: &mut Vec<f32>) -> Result<()> {
        self.mono.clear();
        let rate = match self.codec.decode(packet, &mut self.mono) {
            Some(rate) => rate,
            None if self.n_broken == MOST_BROKEN => return Err(damaged("sound that cannot be decoded")),
            None => {
                self.n_broken += 1;
                return Ok(());
            }
        };
        (self.n_broken, self.is_heard) = (0, true);
        if rate == SAMPLE_RATE {
            samples.append(&mut self.mono);
            return Ok(());
        }
        if !(1_000..=200_000).contains(&rate) {
            return Err(damaged(format!("{rate} samples a second")));
        }
        let (_, resampler) = match self.resampler.take_if(|(known, _)| *known == rate) {
            Some(known) => self.resampler.insert(known),
            None => self.resampler.insert((rate, Resampler::new(rate))),
        };
        resampler.push(&self.mono, samples);
        Ok(())
    }

    fn end(&mut self, samples: &mut Vec<f32>) -> Result<bool> {
        if !self.is_heard {
            return Err(match self.n_broken {
                0 => Stop::Refused(Unreadable::NoText, "there is no sound in it".into()),
                _ => damaged("sound that cannot be decoded"),
            });
        }
        if let Some((_, mut resampler)) = self.resampler.take() {
            resampler.finish(samples);
        }
        Ok(false)
    }
}

impl Codec {
    fn opus(n_channels: usize) -> Result<Self> {
        let decoder = OpusDecoder::new(SAMPLE_RATE as u32, n_channels).map_err(|_| unknown())?;
        // The longest packet has 120 ms.
        Ok(Self::Opus {
            decoder: Box::new(decoder),
            n_channels,
            samples: vec![0.0; SAMPLE_RATE * 12 / 100 * n_channels],
        })
    }

    /// Appends the mean of a packet's channels and returns the samples a second. None: the packet is broken.
    fn decode(&mut self, packet: &Packet, mono: &mut Vec<f32>) -> Option<usize> {
        let (interleaved, n_channels, rate) = match self {
            Self::Symphonia { decoder, samples } => {
                let sound = decoder.decode(packet).ok()?;
                sound.copy_to_vec_interleaved(samples);
                (samples.as_slice(), sound.spec().channels().count(), sound.spec().rate() as usize)
            }
            Self::Opus { decoder, n_channels, samples } => {
                let n_frames = decoder.decode_float(&packet.data, samples, false).ok()?;
                (samples.get(..n_frames * *n_channels)?, *n_channels, SAMPLE_RATE)
            }
        };
        let n_channels = n_channels.max(1);
        let mean = |frame: &[f32]| frame.iter().sum::<f32>() / n_channels as f32;
        // Numbers may be anything in a file of floats.
        let sane = |value: f32| if value.is_finite() { value.clamp(-1.0, 1.0) } else { 0.0 };
        mono.extend(interleaved.chunks_exact(n_channels).map(mean).map(sane));
        Some(rate)
    }
}

fn unknown() -> Stop {
    Stop::Refused(Unreadable::UnknownKind, "a recording in a coding that is not read".into())
}

fn refused(error: Error) -> Stop {
    match error {
        Error::Unsupported(_) => unknown(),
        Error::DecodeError(what) | Error::LimitError(what) => damaged(what),
        _ => damaged("it ends too early"),
    }
}
