//! Draws a page of a PDF: in greys, so that its letters can be recognised, or in colours, to be looked at.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::Pixmap;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use image::{GrayImage, Luma, RgbImage};

/// Ordinary print is read as well as at 300, in half the time.
const DOTS_PER_INCH: f32 = 200.0;
const POINTS_PER_INCH: f32 = 72.0;
/// A larger page is drawn more coarsely.
const MOST_DOTS: f32 = 16_000_000.0;
const LONGEST_SIDE: f32 = 16_000.0;

/// A PDF whose pages can be drawn.
pub(crate) struct Pages(Pdf);

impl Pages {
    /// None: it cannot be opened.
    pub fn open(bytes: &[u8]) -> Option<Self> {
        // A fault of the library costs the pages that need it, and no others.
        catch_unwind(|| Pdf::new(bytes.to_vec()).ok()).ok().flatten().map(Self)
    }

    /// The width and the height of a page, counted from 0, in points. None: it has no size.
    pub fn size(&self, index: usize) -> Option<(f32, f32)> {
        let size = catch_unwind(AssertUnwindSafe(|| Some(self.0.pages().get(index)?.render_dimensions())));
        size.ok().flatten().filter(|(width, height)| scale(*width, *height).is_some())
    }

    /// Draws a page, counted from 0, to be read. None: it cannot be drawn.
    pub fn draw(&self, index: usize) -> Option<GrayImage> {
        let drawn = self.drawn(index, LONGEST_SIDE)?;
        let grey = drawn.data().iter().map(|dot| luma(dot.r, dot.g, dot.b)).collect();
        GrayImage::from_raw(u32::from(drawn.width()), u32::from(drawn.height()), grey)
    }

    /// Draws a page, counted from 0, to be looked at. None: it cannot be drawn.
    pub fn preview(&self, index: usize, longest_side: u32) -> Option<RgbImage> {
        let drawn = self.drawn(index, longest_side as f32)?;
        let colours = drawn.data().iter().flat_map(|dot| [dot.r, dot.g, dot.b]).collect();
        RgbImage::from_raw(u32::from(drawn.width()), u32::from(drawn.height()), colours)
    }

    fn drawn(&self, index: usize, longest_side: f32) -> Option<Pixmap> {
        catch_unwind(AssertUnwindSafe(|| self.rendered(index, longest_side))).ok().flatten()
    }

    fn rendered(&self, index: usize, longest_side: f32) -> Option<Pixmap> {
        let page = self.0.pages().get(index)?;
        let (width, height) = page.render_dimensions();
        let scale = scale(width, height)?.min(longest_side / width.max(height));
        if width.min(height) * scale < 1.0 {
            return None;
        }
        let paper = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
        // What a cache holds of a page is of no use for the next scan.
        let cache = RenderCache::new();
        Some(render(page, &cache, &InterpreterSettings::default(), &RenderSettings::default(), &paper))
    }
}

fn luma(red: u8, green: u8, blue: u8) -> u8 {
    ((u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114 + 500) / 1_000) as u8
}

/// The dots for each point of a page. None: the page has no size.
fn scale(width: f32, height: f32) -> Option<f32> {
    if !(width.is_finite() && height.is_finite() && width >= 1.0 && height >= 1.0) {
        return None;
    }
    let most = (MOST_DOTS / (width * height)).sqrt().min(LONGEST_SIDE / width.max(height));
    let scale = (DOTS_PER_INCH / POINTS_PER_INCH).min(most);
    (width.min(height) * scale >= 1.0).then_some(scale)
}

/// Whether there is nothing on the page.
pub(crate) fn is_blank(page: &GrayImage) -> bool {
    const CONTRAST: u8 = 24;
    let mut range = (u8::MAX, u8::MIN);
    for Luma([grey]) in page.pixels() {
        range = (range.0.min(*grey), range.1.max(*grey));
    }
    range.1.saturating_sub(range.0) < CONTRAST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_page_is_drawn_more_coarsely() {
        let a4 = scale(595.0, 842.0).expect("a size");
        assert!((a4 - 200.0 / 72.0).abs() < 1e-6);
        let poster = scale(2_384.0, 3_370.0).expect("a size");
        assert!(2_384.0 * 3_370.0 * poster * poster <= MOST_DOTS * 1.001 && poster < a4);
        for (width, height) in [(f32::NAN, 1.0), (0.0, 100.0), (1.0, 1e9), (f32::INFINITY, 1.0)] {
            assert_eq!(scale(width, height), None, "{width} x {height}");
        }
    }
}
