//! The place of an event: walls, crowd, apparatus, water.

use super::canvas::{Canvas, Color, Point};
use super::classes::Event;
use super::motion::{BAR_HEIGHT, BEAM_HEIGHT, BED_HEIGHT, Course, State};
use super::scene::{Hall, View};

/// Draws the background. `state` bends boards and beds.
pub(super) fn behind(canvas: &mut Canvas, hall: &Hall, course: &Course, state: &State, view: &View) {
    canvas.fill(hall.wall);
    stripes(canvas, hall, view);
    crowd(canvas, hall, view);
    let place = Backdrop { canvas, hall, view };
    match course.event {
        Event::Platform => place.platform(course),
        Event::Springboard => place.springboard(course, state),
        Event::Floor => place.floor(),
        Event::Beam => place.beam(),
        Event::Vault => place.vault(),
        Event::Bars => place.bars(),
        Event::Trampoline => place.trampoline(state),
    }
}

/// Draws the foreground: the water's surface and the splash.
pub(super) fn before(canvas: &mut Canvas, hall: &Hall, course: &Course, state: &State, view: &View) {
    if !course.event.is_diving() {
        return;
    }
    let (left, right) = edges(view);
    let bottom = (view.middle()[1] - view.reach() * 1.2).min(-0.1);
    canvas.veil(&corners(view, left, bottom, right, 0.0), hall.water, 0.6);
    let Some(seconds) = state.splash else { return };
    let high = (4.0 * seconds).min(1.0) * (1.4 - 2.0 * seconds).max(0.2);
    for drop in -4..=4 {
        let across = f64::from(drop) / 4.0;
        let place =
            [state.place[0] + across * (0.2 + 0.6 * seconds), 0.05 + 0.6 * high * (1.0 - across * across)];
        canvas.circle(view.point(place), 0.09 * view.scale(), Color([0.97, 0.98, 0.98]));
    }
}

fn edges(view: &View) -> (f64, f64) {
    let reach = view.reach() * 1.1;
    (view.middle()[0] - reach, view.middle()[0] + reach)
}

fn corners(view: &View, left: f64, bottom: f64, right: f64, top: f64) -> [Point; 4] {
    [[left, bottom], [right, bottom], [right, top], [left, top]].map(|it| view.point(it))
}

/// Parallax of the far wall: it moves less than the athlete when the camera follows.
const FAR: f64 = 0.5;

/// The shift of a far object.
fn far_shift(view: &View, axis: usize) -> f64 {
    (1.0 - FAR) * view.middle()[axis]
}

fn stripes(canvas: &mut Canvas, hall: &Hall, view: &View) {
    let axis = usize::from(hall.stripes_lie);
    let (shift, reach) = (far_shift(view, axis), view.reach() * 1.1);
    let (low, high) = (view.middle()[axis] - reach - shift, view.middle()[axis] + reach - shift);
    let period = 2.0 * hall.stripe_width;
    let mut at = (low / period).floor() * period;
    let across = [view.middle()[1 - axis] - reach, view.middle()[1 - axis] + reach];
    while at < high {
        let (from, to) = (at + shift, at + hall.stripe_width + shift);
        let points = match hall.stripes_lie {
            true => corners(view, across[0], from, across[1], to),
            false => corners(view, from, across[0], to, across[1]),
        };
        canvas.polygon(&points, hall.stripe);
        at += period;
    }
}

/// Spectators repeat along the wall and fill every hall to the top: a frame without apparatus must not reveal the
/// event.
fn crowd(canvas: &mut Canvas, hall: &Hall, view: &View) {
    let [shift, lift] = [far_shift(view, 0), far_shift(view, 1)];
    let height = 7.0;
    let (width, reach) = (6.0, view.reach() * 1.1);
    for spectator in &hall.crowd {
        let left = view.middle()[0] - reach - shift;
        let x = left + (spectator.place[0] * width - left).rem_euclid(width) + shift;
        let y = hall.crowd_height + spectator.place[1] * height + lift;
        if (y - view.middle()[1]).abs() < reach && x < view.middle()[0] + reach {
            canvas.circle(view.point([x, y]), 0.09 * view.scale(), spectator.color);
        }
    }
}

struct Backdrop<'a> {
    canvas: &'a mut Canvas,
    hall: &'a Hall,
    view: &'a View,
}

impl Backdrop<'_> {
    fn bar(&mut self, left: f64, bottom: f64, right: f64, top: f64, color: Color) {
        let reach = self.view.reach() * 1.1;
        let [x, y] = self.view.middle();
        let seen = left < x + reach && right > x - reach && bottom < y + reach && top > y - reach;
        if seen {
            self.canvas.polygon(&corners(self.view, left, bottom, right, top), color);
        }
    }

    fn line(&mut self, from: [f64; 2], to: [f64; 2], width: f64, color: Color) {
        let metre = self.view.scale();
        self.canvas.line(self.view.point(from), self.view.point(to), (width * metre).max(1.0), color);
    }

    /// Fills the full width.
    fn across(&mut self, bottom: f64, top: f64, color: Color) {
        let (left, right) = edges(self.view);
        self.bar(left, bottom, right, top, color);
    }

    fn below(&mut self, top: f64, color: Color) {
        let bottom = (self.view.middle()[1] - self.view.reach() * 1.2).min(top - 0.1);
        self.across(bottom, top, color);
    }

    fn water(&mut self) {
        let water = self.hall.water;
        self.below(0.0, water);
        for depth in 0..4 {
            let top = -0.3 - 0.5 * f64::from(depth);
            self.across(top - 0.05, top, water.times(1.2));
        }
    }

    fn platform(mut self, course: &Course) {
        self.water();
        let (top, grey) = (course.start_height, Color([0.62, 0.62, 0.63]).towards(self.hall.frame, 0.3));
        self.bar(-2.2, -1.0, -1.1, top - 0.28, grey.times(0.75));
        self.bar(-3.8, top - 0.28, 0.18, top, grey);
        self.bar(-3.8, top - 0.05, 0.18, top, grey.times(1.3));
        self.bar(-3.8, top + 0.9, -0.9, top + 0.97, self.hall.frame);
        self.bar(-0.95, top, -0.88, top + 0.97, self.hall.frame);
    }

    fn springboard(mut self, course: &Course, state: &State) {
        self.water();
        let top = course.start_height - 0.03;
        let bend = if state.airborne { 0.05 } else { -0.15 * state.press };
        self.bar(-2.7, -1.0, -2.45, top, self.hall.frame);
        self.bar(-1.5, -1.0, -1.35, top - 0.08, self.hall.frame);
        self.line([-2.7, top], [-1.2, top], 0.08, self.hall.wood.times(1.1));
        self.line([-1.2, top], [0.2, top + bend], 0.07, self.hall.wood.times(1.1));
    }

    fn floor(mut self) {
        let mat = self.hall.mat;
        self.below(0.0, mat);
        self.across(-0.12, -0.06, Color([0.93; 3]));
        let (left, right) = edges(self.view);
        for seam in (left / 1.2).floor() as i64..=(right / 1.2).ceil() as i64 {
            let x = seam as f64 * 1.2;
            self.bar(x - 0.02, -3.0, x + 0.02, -0.12, mat.times(0.85));
        }
    }

    fn beam(mut self) {
        self.below(0.0, self.hall.mat);
        let (left, right) = edges(self.view);
        for leg in (left / 4.0).floor() as i64..=(right / 4.0).ceil() as i64 {
            let x = leg as f64 * 4.0 - 1.8;
            self.bar(x, 0.0, x + 0.15, BEAM_HEIGHT - 0.14, self.hall.frame);
        }
        self.across(BEAM_HEIGHT - 0.15, BEAM_HEIGHT, self.hall.wood);
        self.across(BEAM_HEIGHT - 0.15, BEAM_HEIGHT - 0.12, self.hall.wood.times(0.6));
    }

    fn vault(mut self) {
        self.below(0.0, self.hall.mat);
        self.canvas.polygon(
            &[[-0.7, 0.0], [0.15, 0.0], [0.15, 0.18], [0.05, 0.2]].map(|it| self.view.point(it)),
            self.hall.wood,
        );
        self.bar(0.95, 0.0, 1.3, 1.0, self.hall.frame);
        self.bar(0.6, 1.0, 1.7, 1.3, self.hall.wood.towards(self.hall.mat, 0.3));
        self.bar(2.0, 0.0, 5.2, 0.2, self.hall.mat.times(1.3));
    }

    fn bars(mut self) {
        self.below(0.0, self.hall.mat);
        self.across(0.0, 0.2, self.hall.mat.times(1.25));
        for (x, height) in [(-1.8, 1.75), (0.0, BAR_HEIGHT)] {
            self.bar(x - 0.04, 0.0, x + 0.04, height, self.hall.frame);
            self.line([x, height], [x - 1.5, 0.0], 0.02, self.hall.frame.times(1.2));
            self.canvas.circle(self.view.point([x, height]), 0.06 * self.view.scale(), self.hall.wood);
        }
    }

    fn trampoline(mut self, state: &State) {
        self.below(0.0, self.hall.mat);
        let press = if state.airborne { 0.0 } else { state.press };
        let middle = state.place[0].clamp(-1.9, 1.9);
        for x in [-2.2, 2.2] {
            self.line([x, BED_HEIGHT], [x * 1.1, 0.0], 0.08, self.hall.frame);
            self.line([x, BED_HEIGHT], [x * 0.7, 0.0], 0.06, self.hall.frame);
        }
        let dip = BED_HEIGHT - 0.25 * press;
        self.line([-2.2, BED_HEIGHT], [middle, dip], 0.05, self.hall.frame.times(1.6));
        self.line([middle, dip], [2.2, BED_HEIGHT], 0.05, self.hall.frame.times(1.6));
        for x in [-2.3, 2.0] {
            self.bar(x, BED_HEIGHT - 0.05, x + 0.3, BED_HEIGHT + 0.06, self.hall.mat.times(1.4));
        }
    }
}
