//! Draws the packages as SVG: one box per package, its rooms in layers, an arrow for each "uses".

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::circles::{components, room};
use crate::imports::Imports;
use crate::layers::{Edge, Graph};
use crate::tree::Tree;

/// Path of the picture, relative to the workspace's folder.
pub const PICTURE: &str = "docs/house.svg";
/// Packages by storey, from the top.
const STOREYS: [&[&str]; 3] = [&["server/cli"], &["server", "research"], &["encoders", "index"]];

const ROOM_HEIGHT: f64 = 26.0;
const LAYER_HEIGHT: f64 = 58.0;
const GAP: f64 = 14.0;
const MARGIN: f64 = 16.0;
const TITLE_HEIGHT: f64 = 30.0;
const STOREY_GAP: f64 = 56.0;
const LETTER_WIDTH: f64 = 7.3;
const BEND_WIDTH: f64 = 6.0;

const STYLE: &str = "\
.package{fill:#f6f5f1;stroke:#b9b4a6}.room{fill:#fff;stroke:#6b7280}.use{fill:none;stroke:#7d8899}\
.floor{fill:none;stroke:#374151;stroke-width:2.5}text{font:12px ui-monospace,monospace;fill:#1f2937;\
text-anchor:middle}.title{font-weight:bold;text-anchor:start}";

/// One package with its rooms, drawn from its own upper left corner.
struct Drawn {
    package: &'static str,
    width: f64,
    height: f64,
    svg: String,
}

/// Position of a package in the picture.
struct Placed {
    middle: f64,
    top: f64,
    bottom: f64,
    /// Lower end of the storey.
    floor: f64,
}

/// The picture of the rooms and their imports.
pub fn picture(tree: &Tree, imports: &Imports) -> String {
    let storeys: Vec<Vec<Drawn>> = STOREYS
        .iter()
        .map(|storey| storey.iter().filter_map(|package| draw(package, tree, imports)).collect())
        .collect();
    let width_of = |storey: &[Drawn]| {
        storey.iter().map(|drawn| drawn.width).sum::<f64>()
            + STOREY_GAP * storey.len().saturating_sub(1) as f64
    };
    let width = storeys.iter().map(|storey| width_of(storey)).fold(0.0, f64::max) + 2.0 * MARGIN;
    let mut placed = BTreeMap::new();
    let mut body = String::new();
    let mut top = MARGIN;
    for storey in &storeys {
        let mut left = (width - width_of(storey)) / 2.0;
        let floor = top + storey.iter().map(|drawn| drawn.height).fold(0.0, f64::max);
        for drawn in storey {
            let _ = writeln!(body, "<g transform=\"translate({left:.0} {top:.0})\">\n{}</g>", drawn.svg);
            let middle = left + drawn.width / 2.0;
            placed.insert(drawn.package, Placed { middle, top, bottom: top + drawn.height, floor });
            left += drawn.width + STOREY_GAP;
        }
        top = floor + STOREY_GAP;
    }
    let height = top - STOREY_GAP + MARGIN;
    let floors = floors(&placed, imports);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\">\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"context-stroke\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}{floors}</svg>\n"
    )
}

/// The package of a file: its path before `/src/`.
fn package_of(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(package, _)| package)
}

/// The rooms of a package in layers; `None` if it has none.
fn draw(package: &'static str, tree: &Tree, imports: &Imports) -> Option<Drawn> {
    let rooms: BTreeSet<String> =
        tree.paths().into_iter().filter(|path| package_of(path) == package).filter_map(room).collect();
    let rooms: Vec<String> = rooms.into_iter().collect();
    if rooms.is_empty() {
        return None;
    }
    let number: BTreeMap<&str, usize> =
        rooms.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let edges = imports.files.iter().filter_map(|import| {
        let from = *number.get(room(&import.from)?.as_str())?;
        let to = *number.get(room(&import.to)?.as_str())?;
        (from != to).then_some(Edge { from, to })
    });
    let graph = Graph { nodes: rooms.len(), edges: one_way(&rooms, edges) }.reduced();
    let names: Vec<&str> = rooms.iter().map(|name| &name[package.len() + 1..]).collect();
    Some(draw_rooms(package, &names, &graph))
}

/// Removes circles: of each circle, the edge with the fewest imports is left out.
fn one_way(rooms: &[String], edges: impl Iterator<Item = Edge>) -> BTreeSet<Edge> {
    let mut imports: BTreeMap<Edge, usize> = BTreeMap::new();
    for edge in edges {
        *imports.entry(edge).or_default() += 1;
    }
    loop {
        let names = |edge: &Edge| (rooms[edge.from].as_str(), rooms[edge.to].as_str());
        let circle = components(imports.keys().map(names)).into_iter().find(|rooms| rooms.len() > 1);
        let Some(circle) = circle else { return imports.into_keys().collect() };
        let inside = |edge: &Edge| circle.contains(names(edge).0) && circle.contains(names(edge).1);
        let lightest = imports.iter().filter(|(edge, _)| inside(edge)).min_by_key(|(_, count)| **count);
        let Some((&lightest, _)) = lightest else { return imports.into_keys().collect() };
        imports.remove(&lightest);
    }
}

fn draw_rooms(package: &'static str, names: &[&str], graph: &Graph) -> Drawn {
    let laid = graph.layers();
    let width_of =
        |node: usize| names.get(node).map_or(BEND_WIDTH, |name| name.len() as f64 * LETTER_WIDTH + 18.0);
    let mut places = laid.places(&width_of, GAP);
    let least = places.iter().map(|(node, place)| place - width_of(*node) / 2.0).fold(f64::MAX, f64::min);
    places.values_mut().for_each(|place| *place += MARGIN - least);
    let most = places.iter().map(|(node, place)| place + width_of(*node) / 2.0).fold(0.0, f64::max);
    let width = (most + MARGIN).max(package.len() as f64 * LETTER_WIDTH + 2.0 * MARGIN);
    let height = TITLE_HEIGHT + (laid.layers.len() - 1) as f64 * LAYER_HEIGHT + ROOM_HEIGHT + MARGIN;

    let mut tops = BTreeMap::new();
    for (layer, nodes) in laid.layers.iter().enumerate() {
        tops.extend(nodes.iter().map(|node| (*node, TITLE_HEIGHT + layer as f64 * LAYER_HEIGHT)));
    }
    let mut svg = format!(
        "<rect class=\"package\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"19\">{package}</text>\n"
    );
    for route in laid.routes.values() {
        let mut path = format!("M{:.0} {:.0}", places[&route[0]], tops[&route[0]] + ROOM_HEIGHT);
        for step in route.windows(2) {
            let (from, to) = (places[&step[0]], places[&step[1]]);
            let (begin, end) = (tops[&step[0]] + ROOM_HEIGHT, tops[&step[1]]);
            let middle = (begin + end) / 2.0;
            let _ = write!(path, "C{from:.0} {middle:.0} {to:.0} {middle:.0} {to:.0} {end:.0}");
            if step[1] >= names.len() {
                let _ = write!(path, "V{:.0}", end + ROOM_HEIGHT);
            }
        }
        let _ = writeln!(svg, "<path class=\"use\" d=\"{path}\" marker-end=\"url(#tip)\"/>");
    }
    for (node, name) in names.iter().enumerate() {
        let (middle, top, wide) = (places[&node], tops[&node], width_of(node));
        let (left, text) = (middle - wide / 2.0, top + 17.0);
        let _ = writeln!(
            svg,
            "<rect class=\"room\" x=\"{left:.0}\" y=\"{top:.0}\" width=\"{wide:.0}\" height=\"{ROOM_HEIGHT}\" \
             rx=\"4\"/><text x=\"{middle:.0}\" y=\"{text:.0}\">{name}</text>"
        );
    }
    Drawn { package, width, height, svg }
}

/// Arrows between packages.
fn floors(placed: &BTreeMap<&str, Placed>, imports: &Imports) -> String {
    let pairs: BTreeSet<(&str, &str)> = imports
        .files
        .iter()
        .map(|import| (package_of(&import.from), package_of(&import.to)))
        .filter(|(from, to)| from != to)
        .collect();
    let follows = |from: &str, to: &str| {
        let mut between = pairs.iter().filter(|(begin, _)| *begin == from);
        between.any(|(_, between)| pairs.contains(&(*between, to)))
    };
    let mut svg = String::new();
    for (from, to) in pairs.iter().filter(|(from, to)| !follows(from, to)) {
        if let (Some(upper), Some(lower)) = (placed.get(from), placed.get(to)) {
            let (from, to, end) = (upper.middle, lower.middle, lower.top);
            let middle = (upper.floor + end) / 2.0;
            let _ = writeln!(
                svg,
                "<path class=\"floor\" d=\"M{from:.0} {:.0}V{:.0}C{from:.0} {middle:.0} {to:.0} {middle:.0} {to:.0} \
                 {end:.0}\" marker-end=\"url(#tip)\"/>",
                upper.bottom, upper.floor
            );
        }
    }
    svg
}
