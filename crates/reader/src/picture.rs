//! Pictures: PNG, JPEG, TIFF with all its pages, WebP, GIF and BMP.

use std::io::Cursor;

use domain::reading::Unreadable;
use image::error::ImageError;
use image::{DynamicImage, GenericImageView as _, GrayImage, ImageDecoder as _, ImageReader, Limits, RgbImage};

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
            let picture = greys(bytes)?;
            sink.head(None, Some(1))?;
            sink.picture(&picture)
        }
    }
}

/// A page, counted from 0, in colours and made small, to be looked at.
pub(crate) fn preview(bytes: &[u8], index: usize, longest_side: u32) -> Result<RgbImage> {
    let look =
        |bytes: &[u8]| decoded(bytes, |picture| DynamicImage::ImageRgb8(on_white(&small(picture, longest_side))));
    let nth = |tiff: &Tiff| tiff.pages.get(index).map(|page| tiff.beginning_with(bytes, *page));
    let picture = match Tiff::of(bytes).filter(|tiff| tiff.pages.len() > 1) {
        Some(tiff) => look(&nth(&tiff).ok_or_else(|| damaged("there is no such page"))?)?,
        None if index > 0 => return Err(damaged("there is no such page")),
        None => look(bytes)?,
    };
    Ok(picture.into_rgb8())
}

/// A picture in greys, the way up that it says.
fn greys(bytes: &[u8]) -> Result<GrayImage> {
    let picture = decoded(bytes, |picture| {
        DynamicImage::ImageLuma8(small(DynamicImage::ImageLuma8(grey(picture)), KEPT_SIDE).into_luma8())
    })?;
    Ok(picture.into_luma8())
}

/// A picture the way up that it says, after it was `made` smaller.
fn decoded(bytes: &[u8], made: impl FnOnce(DynamicImage) -> DynamicImage) -> Result<DynamicImage> {
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
    let mut picture = made(picture);
    picture.apply_orientation(way_up);
    Ok(picture)
}

/// The greys of a picture on white paper.
fn grey(picture: DynamicImage) -> GrayImage {
    if !picture.color().has_alpha() {
        return picture.into_luma8();
    }
    let picture = picture.into_luma_alpha8();
    let points = picture.pixels().map(|point| over_white(point.0[0], point.0[1])).collect();
    GrayImage::from_raw(picture.width(), picture.height(), points).unwrap_or_default()
}

/// The colours of a picture on white paper.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let picture = picture.to_rgba8();
    let points = picture.pixels().flat_map(|point| {
        let [red, green, blue, cover] = point.0;
        [red, green, blue].map(|colour| over_white(colour, cover))
    });
    RgbImage::from_raw(picture.width(), picture.height(), points.collect()).unwrap_or_default()
}

fn over_white(shade: u8, cover: u8) -> u8 {
    let (shade, cover) = (u32::from(shade), u32::from(cover));
    ((shade * cover + 255 * (255 - cover) + 127) / 255) as u8
}

/// A picture whose longest side is at most so long.
fn small(picture: DynamicImage, longest_side: u32) -> DynamicImage {
    let (width, height) = picture.dimensions();
    let longest = width.max(height);
    if longest <= longest_side {
        return picture;
    }
    let side = |points: u32| ((u64::from(points) * u64::from(longest_side)).div_ceil(u64::from(longest)) as u32).max(1);
    picture.thumbnail_exact(side(width), side(height))
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

    /// The file as if this page were the first: the decoder knows no others.
    fn beginning_with(&self, bytes: &[u8], page: u32) -> Vec<u8> {
        let mut turned = bytes.to_vec();
        let place = if self.is_little { page.to_le_bytes() } else { page.to_be_bytes() };
        turned[4..8].copy_from_slice(&place);
        turned
    }

    /// Reads each page.
    fn read(self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        if self.pages.len() < 2 {
            let picture = greys(bytes)?;
            sink.head(None, Some(1))?;
            return sink.picture(&picture);
        }
        sink.head(None, u32::try_from(self.pages.len()).ok())?;
        for page in &self.pages {
            match greys(&self.beginning_with(bytes, *page)) {
                Ok(picture) => sink.picture(&picture)?,
                Err(Stop::Refused(why, _)) => sink.unread(why)?,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }
}
