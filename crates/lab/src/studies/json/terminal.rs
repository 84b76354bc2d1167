//! Terminal output of a JSON study: the answer, and each question with its figures.

use thalweg_measure::text::wrapped;

use super::analysis::JsonAnalysis;
use super::cell_pair::LEGEND;
use super::question::Question;

/// Most columns of a table; wider ones are only on the page.
const COLUMNS_MAX: usize = 9;

pub(super) fn text(study: &JsonAnalysis<'_>) -> String {
    let answer = study.answer.iter().map(|answer| wrapped(answer) + "\n");
    answer.chain(study.questions.iter().map(question)).collect()
}

fn question(question: &Question) -> String {
    let sentences: String = question.sentences.iter().map(|sentence| wrapped(sentence)).collect();
    let table = question.table.text_of_columns(|column, _| column < COLUMNS_MAX);
    let legend = if question.has_doubt() { wrapped(LEGEND) } else { String::new() };
    format!("{}\n{sentences}{table}{legend}\n", question.title)
}
