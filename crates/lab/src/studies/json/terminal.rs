//! A study of gRPC against a JSON API in a terminal: the answer, and each question with its figures.

use thalweg_measure::text::{aligned, wrapped};

use super::analysis::JsonAnalysis;
use super::question::{LEGEND, Question};
use crate::report::grid::Field;

/// Tables beyond so many columns are left to the page.
const COLUMNS_MAX: usize = 9;

pub(super) fn text(study: &JsonAnalysis<'_>) -> String {
    let answer = study.answer.iter().map(|answer| wrapped(answer) + "\n");
    answer.chain(study.questions.iter().map(question)).collect()
}

fn question(question: &Question) -> String {
    let sentences: String = question.sentences.iter().map(|sentence| wrapped(sentence)).collect();
    let columns = question.table.heads.len().min(COLUMNS_MAX);
    let mut rows = vec![question.table.heads[..columns].to_vec()];
    let texts = |row: &Vec<Field>| {
        row[..columns].iter().map(|field| field.text.replace('\u{a0}', " ")).collect::<Vec<_>>()
    };
    rows.extend(question.table.rows.iter().map(texts));
    let legend = if question.table.has_doubt() { wrapped(LEGEND) } else { String::new() };
    format!("{}\n{sentences}{}{legend}\n", question.title, aligned(&rows))
}
