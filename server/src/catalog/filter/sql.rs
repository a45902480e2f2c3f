//! Translates a filter to a condition on `spans s JOIN visible_videos v`, and one on videos to a condition on `videos f`.

use super::{BuiltIn, Field, Filter, Node, Order, Scalar, Test, VideoFilter};
use crate::catalog::database::{Sql, Value};
use crate::catalog::tables::stored::level_name;

impl Filter {
    /// The statement that selects the keys of all matching spans, and its values.
    pub(in crate::catalog) fn to_sql(&self) -> (Sql, Vec<Value>) {
        self.selecting("s.key AS key")
    }

    /// The statement that selects the numbers of all videos with a matching span, and its values.
    pub(in crate::catalog) fn videos_to_sql(&self) -> (Sql, Vec<Value>) {
        self.selecting("DISTINCT v.number AS number")
    }

    fn selecting(&self, columns: &str) -> (Sql, Vec<Value>) {
        let mut writer = Writer::default();
        let condition = writer.node(&self.root);
        let sql = format!(
            "SELECT {columns} FROM spans s JOIN visible_videos v ON v.id = s.video WHERE {condition}"
        );
        (Sql::Built(sql), writer.values)
    }
}

impl VideoFilter {
    /// A condition on `videos f`, and its values. Their placeholders follow `before` others.
    pub(in crate::catalog) fn condition(&self, before: usize) -> (String, Vec<Value>) {
        let mut writer = Writer { before, on_videos: true, ..Writer::default() };
        let condition = writer.node(&self.0.root);
        (condition, writer.values)
    }
}

/// Collects the bound values of the conditions. Every condition is true or false, never null.
#[derive(Default)]
struct Writer {
    values: Vec<Value>,
    /// Number of placeholders that the statement has beside these values.
    before: usize,
    /// Whether the condition is on `videos f`.
    on_videos: bool,
}

impl Writer {
    fn placeholder(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.before + self.values.len())
    }

    fn node(&mut self, node: &Node) -> String {
        match node {
            Node::All(nodes) => self.join(nodes, " AND ", "(1 = 1)"),
            Node::Any(nodes) => self.join(nodes, " OR ", "(1 = 0)"),
            Node::Not(node) => format!("(NOT {})", self.node(node)),
            Node::Test(Field::Metadata { path, top }, test) => self.metadata(path, top, test),
            Node::Test(Field::BuiltIn(BuiltIn::Tags), test) => self.tags(test),
            Node::Test(Field::BuiltIn(BuiltIn::Folder), test) => self.folder(test),
            Node::Test(Field::BuiltIn(field), test) => self.column(column(*field), test),
        }
    }

    fn join(&mut self, nodes: &[Node], operator: &str, empty: &str) -> String {
        let conditions: Vec<String> = nodes.iter().map(|node| self.node(node)).collect();
        if conditions.is_empty() { empty.to_owned() } else { format!("({})", conditions.join(operator)) }
    }

    fn column(&mut self, column: &str, test: &Test) -> String {
        match test {
            Test::Exists(true) => format!("({column} IS NOT NULL)"),
            Test::Exists(false) => format!("({column} IS NULL)"),
            Test::In(scalars) if scalars.is_empty() => "(1 = 0)".to_owned(),
            Test::In(scalars) => {
                let list: Vec<String> = scalars.iter().map(|scalar| self.scalar(scalar)).collect();
                format!("({column} IS NOT NULL AND {column} IN ({}))", list.join(", "))
            }
            Test::Order(order, scalar) => {
                let value = self.scalar(scalar);
                format!("({column} IS NOT NULL AND {column} {} {value})", operator(*order))
            }
            Test::Under(_) => "(1 = 0)".to_owned(),
        }
    }

    /// A condition on the tags of the video.
    fn tags(&mut self, test: &Test) -> String {
        let video = self.video();
        match test {
            Test::Exists(false) => format!("(NOT {})", self.tags(&Test::Exists(true))),
            Test::In(keys) => {
                let list: Vec<String> = keys.iter().map(|key| self.scalar(key)).collect();
                if list.is_empty() {
                    return "(1 = 0)".to_owned();
                }
                let list = list.join(", ");
                format!("({video}.id IN (SELECT g.video FROM video_tags g WHERE g.key IN ({list})))")
            }
            // Tags have no order, and the parser refuses tests of it.
            _ => format!("({video}.id IN (SELECT g.video FROM video_tags g))"),
        }
    }

    /// A condition on the folder of the video. No folder has the empty key.
    fn folder(&mut self, test: &Test) -> String {
        let video = self.video();
        match test {
            Test::Exists(false) => format!("(length({video}.folder_key) = 0)"),
            Test::Under(folder) => {
                let first = self.placeholder(folder.key().to_vec());
                let end = self.placeholder(folder.end());
                format!("({video}.folder_key >= {first} AND {video}.folder_key < {end})")
            }
            Test::In(_) => self.column(&format!("{video}.folder_key"), test),
            // Folders have no order, and the parser refuses tests of it.
            _ => format!("(length({video}.folder_key) > 0)"),
        }
    }

    /// The name of the row of the video.
    fn video(&self) -> &'static str {
        if self.on_videos { "f" } else { "v" }
    }

    /// A condition on a metadata value: the clip's if the clip has the top-level field, else the video's. The inner
    /// selects do not depend on the row, so each runs once.
    fn metadata(&mut self, path: &[u8], top: &[u8], test: &Test) -> String {
        if let Test::Exists(false) = test {
            return format!("(NOT {})", self.metadata(path, top, &Test::Exists(true)));
        }
        if self.on_videos {
            let (path, matches) = (self.placeholder(path.to_vec()), self.attribute(test));
            return format!(
                "(f.id IN (SELECT a.video FROM video_attributes a WHERE a.path = {path} AND {matches}))"
            );
        }
        let top = self.placeholder(top.to_vec());
        let path = self.placeholder(path.to_vec());
        let matches = self.attribute(test);
        format!(
            "(CASE WHEN s.given AND s.key IN (SELECT a.span FROM span_attributes a WHERE a.path = {top}) \
             THEN s.key IN (SELECT a.span FROM span_attributes a WHERE a.path = {path} AND {matches}) \
             ELSE s.video IN (SELECT a.video FROM video_attributes a WHERE a.path = {path} AND {matches}) END)"
        )
    }

    /// A condition on an attribute row `a`.
    fn attribute(&mut self, test: &Test) -> String {
        match test {
            Test::Exists(_) => "a.kind <> 'null'".to_owned(),
            Test::Under(_) => "(1 = 0)".to_owned(),
            Test::Order(order, scalar) => {
                let (kind, column) = storage(scalar);
                let value = self.stored(scalar);
                format!("(a.kind = '{kind}' AND a.{column} {} {value})", operator(*order))
            }
            Test::In(scalars) => {
                let mut conditions = Vec::new();
                for kind in ["number", "string", "boolean"] {
                    let of_kind: Vec<&Scalar> =
                        scalars.iter().filter(|scalar| storage(scalar).0 == kind).collect();
                    let Some(first) = of_kind.first() else { continue };
                    let column = storage(first).1;
                    let list: Vec<String> = of_kind.into_iter().map(|scalar| self.stored(scalar)).collect();
                    conditions.push(format!("(a.kind = '{kind}' AND a.{column} IN ({}))", list.join(", ")));
                }
                if conditions.is_empty() {
                    "(1 = 0)".to_owned()
                } else {
                    format!("({})", conditions.join(" OR "))
                }
            }
        }
    }

    /// Binds the value in the form of attribute rows: texts as bytes.
    fn stored(&mut self, scalar: &Scalar) -> String {
        match scalar {
            Scalar::Text(text) => self.placeholder(text.clone().into_bytes()),
            _ => self.scalar(scalar),
        }
    }

    fn scalar(&mut self, scalar: &Scalar) -> String {
        match scalar {
            Scalar::Number(number) => self.placeholder(*number),
            Scalar::Bool(value) => self.placeholder(f64::from(u8::from(*value))),
            Scalar::Ms(ms) => self.placeholder(*ms),
            Scalar::Id(id) => self.placeholder(*id),
            Scalar::Level(level) => self.placeholder(level_name(*level)),
            Scalar::Text(text) => self.placeholder(text.clone()),
            Scalar::Key(key) => self.placeholder(key.clone()),
        }
    }
}

fn column(field: BuiltIn) -> &'static str {
    match field {
        BuiltIn::Duration => "v.duration_ms",
        BuiltIn::RecordedAt => "v.recorded_at_ms",
        BuiltIn::CreatedAt => "v.created_at_ms",
        BuiltIn::Title => "v.title",
        BuiltIn::VideoId => "v.id",
        BuiltIn::Level => "s.level",
        // Tests of them have conditions of their own.
        BuiltIn::Tags | BuiltIn::Folder => "NULL",
    }
}

/// The kind of attribute row for such a value, and its column.
fn storage(scalar: &Scalar) -> (&'static str, &'static str) {
    match scalar {
        Scalar::Text(_) => ("string", "text"),
        Scalar::Bool(_) => ("boolean", "number"),
        _ => ("number", "number"),
    }
}

fn operator(order: Order) -> &'static str {
    match order {
        Order::Less => "<",
        Order::LessOrEqual => "<=",
        Order::Greater => ">",
        Order::GreaterOrEqual => ">=",
    }
}
