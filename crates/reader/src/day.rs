//! Days as people write them.

/// The day that is so many days after 1970-01-01.
pub(crate) fn since_1970(days: i64) -> String {
    // From 0000-03-01, whose years end with a leap day.
    let from = days.saturating_add(719_468);
    let (era, day) = (from.div_euclid(146_097), from.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_are_counted_with_leap_years() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (-134_774, "1601-01-01"),
            (47_540, "2100-02-28"),
        ] {
            assert_eq!(super::since_1970(days), expected);
        }
    }
}
