//! The Gregorian calendar of RFC 3339: converts day counts to dates and back.

pub(crate) const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// Days are counted from 0000-03-01, so that a leap day is the last of its year. 1970-01-01 is 719,468 days later; 400
/// years have 146,097 days.
const DAYS_BEFORE_1970: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097;

/// Returns year, month and day for a count of days since 1970-01-01, from year 1.
pub(crate) fn date(days: i64) -> (i64, u32, u32) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / DAYS_PER_ERA, (days % DAYS_PER_ERA) as u32);
    // Every 4th year is a day longer (after 1,460 days), except every 100th (36,524), except every 400th (146,096).
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Starting in March, every five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + i64::from(year_of_era + u32::from(month <= 2)), month, day)
}

/// The inverse of [`date`].
pub(crate) fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let year = year - u32::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i64::from(era) * DAYS_PER_ERA + i64::from(day_of_era) - DAYS_BEFORE_1970
}

/// Returns the number of days of a month.
pub(crate) fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_round_trip() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in -719_162..=2_932_896 {
            let found = (date(days), days_since_1970(year, month, day));
            assert_eq!(found, ((year.into(), month, day), days));
            day += 1;
            if day > days_in(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[test]
    fn known_days_have_known_dates() {
        let check = |days, expected| assert_eq!(date(days), expected);
        check(0, (1970, 1, 1));
        check(59, (1970, 3, 1));
        check(11_016, (2000, 2, 29));
        check(11_017, (2000, 3, 1));
        check(47_481, (2099, 12, 31));
    }
}
