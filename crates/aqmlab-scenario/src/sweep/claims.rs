//! Claims: the expected results of a scenario, as text with its place. The modules that know the
//! metrics interpret the expressions.

use aqmlab_params::Value;

use crate::language::CLAIM;
use crate::names::is_name;
use crate::pass::{LINES, Pass, Section};
use crate::suggest::{listed, nearest, no_such};
use crate::sweep::short::{Axis, meant};
use crate::tree::{Entry, Node, Tree};

/// A `[[claim]]` of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The name of the claim, which is unique in the file.
    pub name: String,
    /// The claim in words; may be empty.
    pub text: String,
    /// The claim as an expression.
    pub expect: String,
    /// Conditions on the whole expression: an axis (by its full name), `arm`, `queue` or `class`,
    /// with its label.
    pub conditions: Vec<(String, String)>,
    /// `"firm"`, or `"soft"` if the experiment does not fail when the claim fails.
    pub strength: &'static str,
    /// The source of the claim; may be empty.
    pub source: String,
    /// Line of the expression's first character, from 1.
    pub line: usize,
    /// Column of the expression's first character, counted in characters from 1.
    pub column: usize,
}

/// The keys, other than axes, whose labels may limit an expression.
const OTHER_KEYS: [&str; 3] = ["arm", "queue", "class"];

impl Pass<'_, '_> {
    /// Returns all claims in `written`, or `None` if something is wrong with them.
    pub(crate) fn claims(
        &mut self,
        written: Option<&Node>,
        axes: &[&Axis],
        arms: &[&str],
    ) -> Option<Vec<Claim>> {
        let Some(node) = written else { return Some(Vec::new()) };
        let Tree::List(items) = &node.value else {
            self.error(&node.at, "claim", format!("`claim` is {}; write [[claim]]", node.value.what()));
            return None;
        };
        let mut claims: Vec<Claim> = Vec::new();
        let mut clean = true;
        for item in items {
            let Some(claim) = self.claim(item, axes, arms) else {
                clean = false;
                continue;
            };
            if claims.iter().any(|c| c.name == claim.name) {
                let at = match &item.value {
                    Tree::Table(table) => table.get("name").map_or(&item.at, |name| &name.at),
                    _ => &item.at,
                };
                self.error(at, "claim.name", format!("two claims are called {:?}", claim.name));
                clean = false;
            }
            claims.push(claim);
        }
        clean.then_some(claims)
    }

    fn claim(&mut self, item: &Node, axes: &[&Axis], arms: &[&str]) -> Option<Claim> {
        let section = self.section(item, "claim", CLAIM)?;
        let mut name = self.text(&section, "name");
        if let Some(wrong) = name.take_if(|name| !is_name(name)) {
            let message = format!("{wrong:?} is not a name; a claim's name has 1 to 64 printable characters");
            self.error(&section.at("name"), "claim.name", message);
        }
        let mut expect = self.text(&section, "expect");
        if expect.take_if(|expect| expect.trim().is_empty()).is_some() {
            let message = "the expression is empty; write one such as \"goodput_bps{arm=RED} > 1Mbit\"";
            self.error(&section.at("expect"), "claim.expect", message);
        }
        let conditions = self.labels(&section, axes, arms);
        let (text, source) = (self.prose(&section, "text", LINES), self.prose(&section, "source", LINES));
        let strength = match self.value(&section, "strength") {
            Some(Value::Choice(word)) => Some(word),
            _ => None,
        };
        let (line, column) = self.report.begin_of_text(&section.at("expect"));
        Some(Claim {
            name: name?,
            text: text?,
            expect: expect?,
            conditions: conditions?,
            strength: strength?,
            source: source?,
            line,
            column,
        })
    }

    /// Reads `where = { count = "20", arm = "RED" }`.
    fn labels(
        &mut self,
        section: &Section<'_>,
        axes: &[&Axis],
        arms: &[&str],
    ) -> Option<Vec<(String, String)>> {
        let Some(node) = section.node("where") else { return Some(Vec::new()) };
        let table = self.table(node, "claim.where")?;
        let labels: Vec<_> = table.entries.iter().map(|entry| self.label(entry, axes, arms)).collect();
        labels.into_iter().collect()
    }

    fn label(&mut self, entry: &Entry, axes: &[&Axis], arms: &[&str]) -> Option<(String, String)> {
        const PATH: &str = "claim.where";
        let label = match &entry.node.value {
            Tree::Text(label) => label.clone(),
            Tree::List(_) | Tree::Table(_) => {
                let quoted = self.report.quote(&entry.node.at);
                let message = format!("`{quoted}` is {}; write one label", entry.node.value.what());
                self.error(&entry.node.at, PATH, message);
                return None;
            }
            _ => self.report.written(&entry.node.at).to_string(),
        };
        let key = entry.key.as_str();
        if OTHER_KEYS.contains(&key) {
            if key == "arm" && !arms.contains(&label.as_str()) {
                self.error(&entry.node.at, PATH, no_such("arm", &label, arms.iter().copied()));
                return None;
            }
            return Some((key.to_string(), label));
        }
        let axis = match meant(key, axes).as_slice() {
            [axis] => *axis,
            [] => {
                let known = || axes.iter().map(|a| a.short.as_str()).chain(OTHER_KEYS);
                self.error(&entry.key_at, PATH, no_such("axis", key, known().collect::<Vec<_>>()));
                return None;
            }
            several => {
                let names = listed(several.iter().map(|a| a.short.as_str()));
                self.error(&entry.key_at, PATH, format!("{key:?} may mean any of {names}; choose one"));
                return None;
            }
        };
        if !axis.labels.contains(&label) {
            let known = || axis.labels.iter().map(String::as_str);
            let remedy = match nearest(&label, known()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", listed(known())),
            };
            let message = format!("{:?} has no label {label:?}; {remedy}", axis.short);
            self.error(&entry.node.at, PATH, message);
            return None;
        }
        Some((axis.name.clone(), label))
    }
}
