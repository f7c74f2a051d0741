//! Pictures: PNG, JPEG, TIFF with all its pages, WebP, GIF and BMP.

use std::io::Cursor;

use domain::reading::Unreadable;
use image::error::ImageError;
use image::{DynamicImage, GrayImage, ImageDecoder as _, ImageReader, Limits};

use crate::sink::Sink;
use crate::{Result, Stop, damaged};

/// A picture of 10,000 by 10,000 colours is read. A larger one needs more memory than a reader has.
const MOST_BYTES: u64 = 400 << 20;
/// A JPEG may be kept as numbers of twice that size while it is read.
const MOST_JPEG_BYTES: u64 = 200 << 20;
/// The longest side of a picture that is kept. Letters of ordinary print are large enough at half of it.
const KEPT_SIDE: u32 = 6_000;

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    // Nothing is unpacked for nobody.
    sink.needs_ocr()?;
    match Tiff::of(bytes) {
        Some(tiff) => tiff.read(bytes, sink),
        None => {
            let picture = decoded(bytes)?;
            sink.head(None, Some(1))?;
            sink.picture(&picture)
        }
    }
}

/// A picture in greys, the way up that it says.
fn decoded(bytes: &[u8]) -> Result<GrayImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|_| damaged("a picture that ends too early"))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(2 * MOST_BYTES);
    reader.limits(limits);
    let is_jpeg = reader.format() == Some(image::ImageFormat::Jpeg);
    let mut decoder = reader.into_decoder().map_err(refused)?;
    let (width, height) = decoder.dimensions();
    let most = if is_jpeg { MOST_JPEG_BYTES } else { MOST_BYTES };
    if decoder.total_bytes() > most {
        return Err(Stop::Refused(Unreadable::TooLarge, format!("a picture of {width} x {height}")));
    }
    let way_up = decoder.orientation().map_err(refused)?;
    let picture = DynamicImage::from_decoder(decoder).map_err(refused)?;
    // Made small before it is turned, or the turned one is a second large one.
    let mut picture = DynamicImage::ImageLuma8(small(grey(picture)));
    picture.apply_orientation(way_up);
    Ok(picture.into_luma8())
}

/// The greys of a picture on white paper.
fn grey(picture: DynamicImage) -> GrayImage {
    if !picture.color().has_alpha() {
        return picture.into_luma8();
    }
    let picture = picture.into_luma_alpha8();
    let on_white = |[grey, cover]: [u8; 2]| {
        let (grey, cover) = (u32::from(grey), u32::from(cover));
        ((grey * cover + 255 * (255 - cover) + 127) / 255) as u8
    };
    let points = picture.pixels().map(|point| on_white(point.0)).collect();
    GrayImage::from_raw(picture.width(), picture.height(), points).unwrap_or_default()
}

fn small(picture: GrayImage) -> GrayImage {
    let (width, height) = picture.dimensions();
    let longest = width.max(height);
    if longest <= KEPT_SIDE {
        return picture;
    }
    let side = |points: u32| ((u64::from(points) * u64::from(KEPT_SIDE)).div_ceil(u64::from(longest)) as u32).max(1);
    image::imageops::thumbnail(&picture, side(width), side(height))
}

fn refused(error: ImageError) -> Stop {
    match error {
        ImageError::Limits(_) => Stop::Refused(Unreadable::TooLarge, "a picture of too many points".into()),
        ImageError::Unsupported(_) => {
            Stop::Refused(Unreadable::UnknownKind, "a picture of a kind that is not read".into())
        }
        _ => damaged("a picture that cannot be read"),
    }
}

/// The pages of a TIFF. Its head names the first, and each names the next.
struct Tiff {
    is_little: bool,
    /// Where the lists of the pages' properties are.
    pages: Vec<u32>,
}

impl Tiff {
    /// None: it is none.
    fn of(bytes: &[u8]) -> Option<Self> {
        let is_little = bytes.starts_with(b"II*\0");
        if !is_little && !bytes.starts_with(b"MM\0*") {
            return None;
        }
        let mut tiff = Self { is_little, pages: Vec::new() };
        let mut at = tiff.long(bytes, 4)?;
        while at != 0 && !tiff.pages.contains(&at) && tiff.pages.len() < 10_000 {
            let Some((next, is_small)) = tiff.page(bytes, at) else { break };
            if !is_small {
                tiff.pages.push(at);
            }
            at = next;
        }
        Some(tiff)
    }

    /// Where the next page is, and whether this one is only a small copy of another.
    fn page(&self, bytes: &[u8], at: u32) -> Option<(u32, bool)> {
        const ENTRY: usize = 12;
        const SUBFILE_TYPE: u32 = 254;
        let at = at as usize;
        let n_entries = self.short(bytes, at)? as usize;
        let is_small = (0..n_entries).any(|n| {
            let entry = at + 2 + n * ENTRY;
            self.short(bytes, entry) == Some(SUBFILE_TYPE) && self.long(bytes, entry + 8).is_some_and(|n| n & 1 == 1)
        });
        Some((self.long(bytes, at + 2 + n_entries * ENTRY)?, is_small))
    }

    fn short(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let two = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(u32::from(if self.is_little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) }))
    }

    fn long(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
    }

    /// Reads each page as if it were the first: the decoder knows no others.
    fn read(self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        if self.pages.len() < 2 {
            let picture = decoded(bytes)?;
            sink.head(None, Some(1))?;
            return sink.picture(&picture);
        }
        sink.head(None, u32::try_from(self.pages.len()).ok())?;
        let mut turned = bytes.to_vec();
        for page in self.pages {
            let place = if self.is_little { page.to_le_bytes() } else { page.to_be_bytes() };
            turned[4..8].copy_from_slice(&place);
            match decoded(&turned) {
                Ok(picture) => sink.picture(&picture)?,
                Err(Stop::Refused(why, _)) => sink.unread(why)?,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }
}
