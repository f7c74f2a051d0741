//! Rectangles around text, which may be tilted.

/// A rectangle in a picture. Its width runs along `angle`, in radians, clockwise because y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub center: (f32, f32),
    pub width: f32,
    pub height: f32,
    pub angle: f32,
}

impl Frame {
    /// The smallest rectangle around points. Its angle is at most an eighth of a turn, so it is tall where text is sideways.
    pub fn around(points: &[(f32, f32)]) -> Option<Self> {
        let hull = hull(points);
        let edges = hull.iter().zip(hull.iter().cycle().skip(1));
        let angles = edges.map(|(from, to)| eighth((to.1 - from.1).atan2(to.0 - from.0)));
        let frames = angles.map(|angle| Self::along(&hull, angle));
        frames.min_by(|a, b| (a.width * a.height).total_cmp(&(b.width * b.height)))
    }

    /// The smallest rectangle around points whose width runs along this angle.
    pub fn along(points: &[(f32, f32)], angle: f32) -> Self {
        let (sin, cos) = angle.sin_cos();
        let (mut least, mut most) = ((f32::MAX, f32::MAX), (f32::MIN, f32::MIN));
        for (x, y) in points {
            let (u, v) = (x * cos + y * sin, y * cos - x * sin);
            least = (least.0.min(u), least.1.min(v));
            most = (most.0.max(u), most.1.max(v));
        }
        let (u, v) = ((least.0 + most.0) / 2.0, (least.1 + most.1) / 2.0);
        let center = (u * cos - v * sin, u * sin + v * cos);
        Self { center, width: most.0 - least.0, height: most.1 - least.1, angle }
    }

    /// Moves each side outwards. The detector finds the core of a line: the share of area to circumference is lost on each side.
    pub fn grown(self, ratio: f32) -> Self {
        let circumference = 2.0 * (self.width + self.height);
        let distance = if circumference > 0.0 { ratio * self.width * self.height / circumference } else { 0.0 };
        Self { width: self.width + 2.0 * distance, height: self.height + 2.0 * distance, ..self }
    }

    pub fn scaled(self, x: f32, y: f32) -> Self {
        // Both are nearly the same, so the angle stays.
        let (sin, cos) = self.angle.sin_cos();
        let along = (x * cos).hypot(y * sin);
        let across = (y * cos).hypot(x * sin);
        let center = (self.center.0 * x, self.center.1 * y);
        Self { center, width: self.width * along, height: self.height * across, angle: self.angle }
    }

    /// The same place after the picture, which is so high, was turned clockwise by a quarter.
    pub fn turned(self, picture_height: f32) -> Self {
        let center = (picture_height - self.center.1, self.center.0);
        Self { center, width: self.height, height: self.width, angle: self.angle }
    }

    /// The same text read along its other side: what runs upwards (-1 quarter) or downwards (1 quarter).
    pub fn sideways(self, quarters: f32) -> Self {
        let angle = self.angle + quarters * std::f32::consts::FRAC_PI_2;
        Self { width: self.height, height: self.width, angle, ..self }
    }

    pub fn is_tall(&self) -> bool {
        self.height > 1.5 * self.width
    }

    /// The upright rectangle around it: left, top, right, bottom.
    pub fn bounds(&self) -> [f32; 4] {
        let (sin, cos) = self.angle.sin_cos();
        let x = (self.width * cos.abs() + self.height * sin.abs()) / 2.0;
        let y = (self.width * sin.abs() + self.height * cos.abs()) / 2.0;
        [self.center.0 - x, self.center.1 - y, self.center.0 + x, self.center.1 + y]
    }
}

/// The same direction or one at right angles to it, within an eighth of a turn of the horizontal.
fn eighth(angle: f32) -> f32 {
    let quarter = std::f32::consts::FRAC_PI_2;
    angle - quarter * (angle / quarter).round()
}

/// The convex hull, by walking over the points from left to right and back.
fn hull(points: &[(f32, f32)]) -> Vec<(f32, f32)> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let half = |points: &mut dyn Iterator<Item = &(f32, f32)>| {
        let mut side: Vec<(f32, f32)> = Vec::new();
        for point in points {
            while let [.., a, b] = side.as_slice() {
                let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
                if turn > 0.0 {
                    break;
                }
                side.pop();
            }
            side.push(*point);
        }
        side.pop();
        side
    };
    let mut hull = half(&mut sorted.iter());
    hull.extend(half(&mut sorted.iter().rev()));
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_rectangle_lies_along_its_points() {
        for degrees in [0.0_f32, 3.0, -12.0, 40.0] {
            let angle = degrees.to_radians();
            let wanted = Frame { center: (100.0, 50.0), width: 80.0, height: 10.0, angle };
            let (sin, cos) = angle.sin_cos();
            let corner = |u: f32, v: f32| (100.0 + u * cos - v * sin, 50.0 + u * sin + v * cos);
            let points = [
                corner(-40.0, -5.0),
                corner(40.0, -5.0),
                corner(0.0, 0.0),
                corner(40.0, 5.0),
                corner(-40.0, 5.0),
                corner(20.0, -5.0),
            ];
            let found = Frame::around(&points).expect("a rectangle");
            let same = |a: f32, b: f32| (a - b).abs() < 0.01;
            assert!(
                same(found.width, wanted.width) && same(found.height, wanted.height) && same(found.angle, wanted.angle),
                "{degrees}: {found:?}"
            );
            assert!(same(found.center.0, 100.0) && same(found.center.1, 50.0), "{degrees}: {found:?}");
        }
        assert_eq!(Frame::around(&[]), None);
        assert_eq!(Frame::around(&[(1.0, 2.0)]).map(|frame| (frame.center, frame.width)), Some(((1.0, 2.0), 0.0)));
    }

    #[test]
    fn a_frame_grows_on_each_side_by_a_share_of_its_area() {
        let frame = Frame { center: (0.0, 0.0), width: 100.0, height: 10.0, angle: 0.1 };
        let grown = frame.grown(1.1);
        assert!((grown.width - 110.0).abs() < 1e-3 && (grown.height - 20.0).abs() < 1e-3, "{grown:?}");
        let none = Frame { width: 0.0, height: 0.0, ..frame };
        assert_eq!(none.grown(1.5), none);
    }

    #[test]
    fn a_quarter_turn_takes_the_top_to_the_right() {
        // In a picture 200 wide and 100 high: a line at its top left.
        let frame = Frame { center: (50.0, 10.0), width: 80.0, height: 8.0, angle: 0.0 };
        let turned = frame.turned(100.0);
        assert_eq!((turned.center, turned.width, turned.height), ((90.0, 50.0), 8.0, 80.0));
        assert!(turned.is_tall() && !frame.is_tall());
    }
}
