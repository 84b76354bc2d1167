//! Evaluates expressions of the publications' data.

use std::rc::Rc;

use thalweg_measure::statistics::median;

use super::expression::{Bindings, Each, Expression, Part, Text};
use super::value::{Record, Value, ValueResult};

/// Largest factor between our figure and the published one that counts as equally large, since machines differ.
const NEAR: f64 = 1.5;

/// Source of values for names that no scope defines.
pub(crate) trait Measure {
    /// Measures a name in the scope's run, under the scope's conditions.
    fn measure(&self, name: &str, scope: &Scope<'_>) -> ValueResult;
}

/// Names visible to expressions: conditions of measures, and earlier values.
pub(crate) struct Scope<'s> {
    sources: &'s dyn Measure,
    parent: Option<&'s Scope<'s>>,
    names: Record,
}

impl<'s> Scope<'s> {
    pub(crate) fn new(sources: &'s dyn Measure) -> Self {
        Self { sources, parent: None, names: Vec::new() }
    }

    /// Returns an inner scope with additional names.
    pub(crate) fn with(&'s self, names: Record) -> Self {
        Self { sources: self.sources, parent: Some(self), names }
    }

    /// Returns an inner scope with these bindings, evaluated in order.
    pub(crate) fn binding(&'s self, bindings: &Bindings) -> Self {
        let mut inner = self.with(Vec::new());
        for (name, expression) in &bindings.0 {
            let found = inner.value(expression);
            inner.names.push((name.clone(), found));
        }
        inner
    }

    /// Returns an inner scope with the fields of a record.
    pub(crate) fn of(&'s self, record: &Value) -> Self {
        let Value::Record(fields) = record else { return self.with(Vec::new()) };
        self.with(fields.as_ref().clone())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ValueResult> {
        let own = self.names.iter().rev().find(|(own, _)| own == name);
        own.map(|(_, found)| found).or_else(|| self.parent?.get(name))
    }

    /// Returns a number that a measure needs.
    pub(crate) fn number(&self, name: &str) -> Result<f64, String> {
        self.value(&Expression::Name(name.to_owned()))?.number()
    }

    /// Returns a text that a measure needs.
    pub(crate) fn words(&self, name: &str) -> Result<String, String> {
        self.value(&Expression::Name(name.to_owned()))?.shown("")
    }

    pub(crate) fn value(&self, expression: &Expression) -> ValueResult {
        match expression {
            Expression::Number(number) => Ok(Value::Number(*number)),
            Expression::Text(text) => self.text(text).map(Value::Words),
            Expression::Name(name) => match self.get(name) {
                Some(found) => found.clone(),
                None => self.sources.measure(name, self),
            },
            Expression::List(items) => Ok(Value::List(items.iter().map(|item| self.value(item)).collect())),
            Expression::Record(bindings) => Ok(Value::Record(Rc::new(self.binding(bindings).names))),
            Expression::Field(of, name) => self.value(of)?.field(name),
            Expression::Call(name, arguments) => self.call(name, arguments),
            Expression::Measure(name, bindings) => self.sources.measure(name, &self.binding(bindings)),
            Expression::Binary(operator, sides) => self.binary(operator, &sides.0, &sides.1),
            Expression::Each(each) => {
                let mut items = Vec::new();
                self.each(each, &each.over, &mut items)?;
                Ok(Value::List(items))
            }
        }
    }

    pub(crate) fn holds(&self, expression: &Expression) -> Result<bool, String> {
        Ok(self.value(expression)?.number()? != 0.0)
    }

    pub(crate) fn text(&self, text: &Text) -> Result<String, String> {
        let mut written = String::new();
        for part in &text.0 {
            match part {
                Part::Words(words) => written.push_str(words),
                Part::Figure(figure, format) => written.push_str(&self.value(figure)?.shown(format)?),
                Part::Optional(text) => written.push_str(&self.text(text).unwrap_or_default()),
            }
        }
        Ok(written)
    }

    fn each(
        &self,
        each: &Each,
        over: &[(String, Expression)],
        items: &mut Vec<ValueResult>,
    ) -> Result<(), String> {
        let Some(((name, list), inner)) = over.split_first() else {
            if each.condition.as_ref().is_none_or(|condition| self.holds(condition) == Ok(true)) {
                items.push(self.value(&each.item));
            }
            return Ok(());
        };
        for element in self.value(list)?.list()? {
            let mark = items.len();
            self.with(vec![(name.clone(), element.clone())]).each(each, inner, items)?;
            // A resulting record gets the element as its first field.
            for item in &mut items[mark..] {
                if let Ok(Value::Record(fields)) = item {
                    Rc::make_mut(fields).insert(0, (name.clone(), element.clone()));
                }
            }
        }
        Ok(())
    }

    fn binary(&self, operator: &str, left: &Expression, right: &Expression) -> ValueResult {
        let left = self.value(left)?;
        match operator {
            "or" if left.number()? != 0.0 => return Ok(left),
            "and" if left.number()? == 0.0 => return Ok(left),
            _ => {}
        }
        let right = self.value(right)?;
        if let (Value::Words(left), Value::Words(right)) = (&left, &right) {
            return Ok((if operator == "!=" { left != right } else { left == right }).into());
        }
        let (left, right) = (left.number()?, right.number()?);
        Ok(match operator {
            "+" => Value::Number(left + right),
            "-" => Value::Number(left - right),
            "*" => Value::Number(left * right),
            "/" => Value::Number(left / right),
            "<" => (left < right).into(),
            "<=" => (left <= right).into(),
            ">" => (left > right).into(),
            ">=" => (left >= right).into(),
            "==" => left.total_cmp(&right).is_eq().into(),
            "!=" => left.total_cmp(&right).is_ne().into(),
            _ => Value::Number(right),
        })
    }

    fn call(&self, name: &str, arguments: &[Expression]) -> ValueResult {
        let argument = |index: usize| match arguments.get(index) {
            Some(argument) => self.value(argument),
            None => Err(format!("`{name}` needs more arguments")),
        };
        let number = |index| argument(index)?.number();
        match name {
            "if" if self.holds(&arguments[0])? => return argument(1),
            "if" => return argument(2),
            "else" => return argument(0).or_else(|_| argument(1)),
            "is" => return Ok(argument(0).is_ok().into()),
            "near" => return Ok(is_near(number(0)?, number(1)?, NEAR).into()),
            "within" => return Ok(is_near(number(0)?, number(1)?, number(2)?).into()),
            "above" => return Ok(is_sure(&argument(0), number(1)?, f64::gt)),
            "below" => return Ok(is_sure(&argument(0), number(1)?, f64::lt)),
            "low" => {
                let interval = argument(0)?.ratio()?.interval.ok_or("no interval")?;
                return Ok(interval.low.into());
            }
            "pairs" => return Ok((argument(0)?.ratio()?.pairs as f64).into()),
            "ends" => return Ok(argument(0)?.shown("")?.ends_with(&argument(1)?.shown("")?).into()),
            "by_rounds" => {
                let (one, other) = (argument(0)?, argument(1)?);
                return one
                    .cell()?
                    .rate_over(other.cell()?)
                    .map(Value::Ratio)
                    .ok_or_else(|| "no round has both".into());
            }
            _ => {}
        }
        let mut list = argument(0)?.list()?;
        let reason = || argument(arguments.len() - 1)?.shown("");
        let within = |item: &ValueResult, index: usize| {
            self.of(item.as_ref().map_err(Clone::clone)?).value(&arguments[index])
        };
        match name {
            "filter" => {
                list.retain(|item| within(item, 1).and_then(|it| it.number()).is_ok_and(|it| it != 0.0));
                return Ok(Value::List(list));
            }
            "best" => {
                let of = |item: &ValueResult| {
                    within(item, 1).and_then(|it| it.number()).unwrap_or(f64::NEG_INFINITY)
                };
                let best = list.into_iter().max_by(|a, b| of(a).total_cmp(&of(b)));
                return best.unwrap_or_else(|| Err(reason()?));
            }
            "first" => return list.into_iter().next().unwrap_or_else(|| Err(reason()?)),
            "len" => return Ok((list.len() as f64).into()),
            "join" => {
                let words: Result<Vec<String>, String> =
                    list.into_iter().map(|item| item?.shown("")).collect();
                return Ok(Value::Words(words?.join(&argument(1)?.shown("")?)));
            }
            _ => {}
        }
        let numbers: Vec<f64> = list.into_iter().map(|item| item?.number()).collect::<Result<_, _>>()?;
        let found = match name {
            "sum" => Some(numbers.into_iter().sum()),
            "min" => numbers.into_iter().reduce(f64::min),
            "max" => numbers.into_iter().reduce(f64::max),
            "median" => median(numbers),
            _ => return Err(format!("unknown function `{name}`")),
        };
        found.map(Value::Number).ok_or(()).or_else(|()| Err(reason()?))
    }
}

/// Returns whether the two differ by at most `factor`.
fn is_near(ours: f64, published: f64, factor: f64) -> bool {
    ours > 0.0 && published > 0.0 && (ours / published).ln().abs() <= factor.ln()
}

/// Returns whether the condition holds for the ratio and both ends of its interval.
fn is_sure(ratio: &ValueResult, bound: f64, holds: fn(&f64, &f64) -> bool) -> Value {
    let ratio = ratio.as_ref().ok().and_then(|ratio| ratio.ratio().ok());
    let ends = ratio.and_then(|ratio| Some([ratio.ratio, ratio.interval?.low, ratio.interval?.high]));
    ends.is_some_and(|ends| ends.iter().all(|end| holds(end, &bound))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source without measures.
    struct Nothing;

    impl Measure for Nothing {
        fn measure(&self, name: &str, _: &Scope<'_>) -> ValueResult {
            Err(format!("no `{name}`"))
        }
    }

    #[test]
    fn expressions_are_evaluated() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = Scope::new(&Nothing).value(&text.to_owned().try_into().unwrap());
            let shown = found.and_then(|value| value.shown("tenths"));
            assert_eq!(shown, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        };
        // Equally large means within a factor.
        check("near(7, 7) + near(4.7, 7) + near(10.4, 7)", Ok("3.0"));
        check("near(4.6, 7) + near(0, 7)", Ok("0.0"));
        check("max([n * 2 for n in [1, 2, 3] if n < 3]) - 1", Ok("3.0"));
        check(
            "sum(filter([{twice: 2 * a + b} for a in [1, 2] for b in [0, 10]], b > 0 and a == 2).twice)",
            Ok("14.0"),
        );
        check(r#"best([{of: n} for n in [1, 3, 2]], of, "none").of"#, Ok("3.0"));
        check(r#"join([{it: "{n|tenths}"} for n in [1, 2]].it, "; ")"#, Ok("1.0; 2.0"));
        check(r#""[left out: {1 + nothing}]{if(1 > 0 or nothing, "there", "not")}""#, Ok("there"));
        check("max([])", Err("not a number"));
        check(r#"min([], "nothing {2}")"#, Err("nothing 2"));
        check("1 + nothing", Err("no `nothing`"));
    }
}
