//! Judges each claim by the evidence of the runs.

use thalweg_measure::page::table::{Table, TableCell};

use super::evidence::Evidence;
use super::judgement::{ClaimFigure, ClaimVerdict, JudgedClaim};
use super::original::{Claim, FigureColumn, FigureRule, FigureTable, OpenQuestion, original};
use super::publication::Publication;
use super::results::{JudgedPublication, TitledTable};
use super::scope::Scope;
use super::sources::Sources;
use super::value::{Value, unit};
use crate::json::JsonAnalysis;

/// Judges each claim of these publications.
pub fn judge(publications: &[Publication], evidence: &Evidence) -> Vec<JudgedPublication> {
    let sources = Sources::of(evidence);
    let outermost = Scope::new(&sources);
    let answered = |&publication: &Publication| {
        let original = original(publication);
        let scope = outermost.binding(&original.values);
        let tables = original.tables.iter().filter_map(|rows| rows.table(&scope));
        JudgedPublication {
            publication,
            claims: original.claims.iter().map(|claim| claim.judge(&scope)).collect(),
            tables: tables.chain(questions(&original.questions, evidence)).collect(),
        }
    };
    publications.iter().map(answered).collect()
}

impl Claim {
    fn judge(&self, scope: &Scope<'_>) -> JudgedClaim {
        let scope = scope.binding(&self.values);
        let (verdict, ours, cause, figures) = match self.judgement(&scope) {
            Ok((verdict, ours, cause)) => (verdict, ours, cause, self.figures(&scope)),
            Err(reason) => (ClaimVerdict::CannotBeTried, "–".to_owned(), reason, Vec::new()),
        };
        let (id, claim, published) = (self.id.clone(), self.text.clone(), self.published.clone());
        JudgedClaim { id, claim, published, verdict, ours, cause, figures }
    }

    /// Returns the verdict, the findings and the cause, or why the claim cannot be judged.
    fn judgement(&self, scope: &Scope<'_>) -> Result<(ClaimVerdict, String, String), String> {
        if let Some(needs) = &self.needs
            && !scope.holds(needs)?
        {
            return Err(scope.text(&self.without)?);
        }
        let verdict = match (scope.holds(&self.effect)?, scope.holds(&self.same_size)?) {
            (true, true) => ClaimVerdict::Confirmed,
            (true, false) => ClaimVerdict::InDirection,
            (false, _) => ClaimVerdict::NotConfirmed,
        };
        Ok((verdict, scope.text(&self.ours)?, scope.text(&self.cause)?))
    }

    fn figures(&self, scope: &Scope<'_>) -> Vec<ClaimFigure> {
        let mut figures = Vec::new();
        for shown in self.figures.chunk_by(|one, next| one.of.is_some() && one.of == next.of) {
            let rows = shown[0].of.as_ref().map(|of| scope.value(of).and_then(Value::list));
            let rows = rows.unwrap_or_else(|| Ok(vec![Ok(Vec::new().into())]));
            for row in rows.into_iter().flatten().flatten() {
                let scope = scope.of(&row);
                figures.extend(shown.iter().filter_map(|shown| shown.figure(&scope).ok()));
            }
        }
        figures
    }
}

impl FigureRule {
    fn figure(&self, scope: &Scope<'_>) -> Result<ClaimFigure, String> {
        let value = scope.value(&self.value)?;
        Ok(ClaimFigure {
            name: scope.text(&self.name)?,
            value: value.number()?,
            unit: unit(&self.format).to_owned(),
            text: value.shown(&self.format)?,
        })
    }
}

impl FigureTable {
    /// Returns the table, unless it has no rows.
    fn table(&self, scope: &Scope<'_>) -> Option<TitledTable> {
        let rows = scope.value(&self.rows).and_then(Value::list).ok()?;
        let row = |row: Value| {
            let scope = scope.of(&row);
            self.columns.iter().map(|column| column.field(&scope)).collect()
        };
        let rows: Vec<Vec<TableCell>> = rows.into_iter().flatten().map(row).collect();
        let headers = self.columns.iter().map(|column| column.name.clone()).collect();
        let about = scope.text(&self.about).unwrap_or_default();
        let table = Table { headers, rows, ..Table::default() };
        (!table.rows.is_empty()).then(|| TitledTable { title: self.title.clone(), about, table })
    }
}

impl FigureColumn {
    /// Returns a figure, words or a dash.
    fn field(&self, scope: &Scope<'_>) -> TableCell {
        let field = || {
            let value = scope.value(&self.value)?;
            let (text, value) = match &self.text {
                Some(text) => (scope.text(text)?, Some(value.number()?)),
                None if self.format.is_empty() => (value.shown("")?, None),
                None => (value.shown(&self.format)?, Some(value.number()?)),
            };
            Ok::<_, String>(TableCell { value, ..TableCell::words(text) })
        };
        field().unwrap_or_else(|_| TableCell::figure(None, |_| String::new()))
    }
}

/// Returns tables for questions that the publication left open, from the JSON study.
fn questions(questions: &[OpenQuestion], evidence: &Evidence) -> Vec<TitledTable> {
    let Some(results) = evidence.json().filter(|_| !questions.is_empty()) else { return Vec::new() };
    let analysis = JsonAnalysis::of(results);
    let table = |open_question: &OpenQuestion| {
        let question = analysis.questions().iter().find(|question| question.id == open_question.id)?;
        let (title, about) = (open_question.title.clone(), question.sentences.join(" "));
        Some(TitledTable { title, about, table: question.table.clone() })
            .filter(|it| !it.table.rows.is_empty())
    };
    questions.iter().filter_map(table).collect()
}
