//! The table in a terminal: aligned, cut where it is too wide, coloured only when asked.

use report::table::{Cell, Column, Emphasis, Kind, Row, Styling, Table};

fn table() -> Table {
    let row =
        |group, rate: &str, scheme: &str, goodput: f64, stall: Option<f64>, probes: f64| Row {
            group,
            class: 0,
            cells: vec![
                Cell::text(rate),
                Cell::text(scheme),
                Cell::number(goodput, format!("{goodput:.3}")),
                stall.map_or(Cell::none(), |stall| Cell::number(stall, format!("{stall:.0}"))),
                Cell::number(probes, format!("{probes:.0}")),
            ],
        };
    Table {
        caption: "Two error rates".to_owned(),
        columns: vec![
            Column::name("error rate"),
            Column::name("scheme"),
            Column::value("goodput", "Mbit/s", Kind::HighestIsBest),
            Column::value("stall p95", "ms", Kind::LowestIsBest),
            Column::value("probes", "", Kind::Value),
        ],
        rows: vec![
            row(0, "none", "plain", 1.947, None, 0.0),
            row(0, "none", "snoop", 1.9471, None, 0.0),
            row(1, "1/64Kbit", "plain", 0.248, Some(2429.0), 0.0),
            row(1, "1/64Kbit", "plain-tuned", 0.311, Some(70.0), 0.0),
            row(1, "1/64Kbit", "snoop-modern", 1.513, Some(70.0), 12.0),
        ],
    }
}

#[test]
fn columns_are_aligned_with_units_under_their_names() {
    insta::assert_snapshot!(table().to_plain(), @"
    error rate  scheme        goodput  stall p95  probes
                               Mbit/s         ms
    ----------------------------------------------------
    none        plain           1.947          -       0
    none        snoop           1.947          -       0

    1/64Kbit    plain           0.248       2429       0
    1/64Kbit    plain-tuned     0.311         70       0
    1/64Kbit    snoop-modern    1.513         70      12
    ");
}

#[test]
fn a_table_too_wide_is_cut_into_blocks_that_repeat_the_names_of_the_rows() {
    let narrow = table().render(Some(43), Styling::Plain);
    insta::assert_snapshot!(narrow, @"
    error rate  scheme        goodput
                               Mbit/s
    ---------------------------------
    none        plain           1.947
    none        snoop           1.947

    1/64Kbit    plain           0.248
    1/64Kbit    plain-tuned     0.311
    1/64Kbit    snoop-modern    1.513

    error rate  scheme        stall p95  probes
                                     ms
    -------------------------------------------
    none        plain                 -       0
    none        snoop                 -       0

    1/64Kbit    plain              2429       0
    1/64Kbit    plain-tuned          70       0
    1/64Kbit    snoop-modern         70      12
    ");
}

#[test]
fn a_table_that_fits_to_the_last_column_is_not_cut() {
    let plain = table().to_plain();
    let width = plain.lines().map(|line| line.chars().count()).max().expect("it has lines") as u16;
    assert_eq!(table().render(Some(width), Styling::Plain), plain);
    assert_ne!(table().render(Some(width - 1), Styling::Plain), plain);
}

#[test]
fn without_colour_there_is_no_escape_code_and_with_it_only_what_stands_out_differs() {
    let (plain, coloured) = (table().to_plain(), table().render(None, Styling::Ansi));
    assert!(!plain.contains('\x1b'));
    let stripped = strip(&coloured);
    let trimmed: Vec<&str> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
    let best = |text: &str| coloured.lines().filter(|line| line.contains(text)).count();
    assert_eq!(best("\x1b[38;5;10m") + best("\x1b[32m"), 2, "{coloured:?}");
}

#[test]
fn best_is_best_of_its_group_among_those_that_differ_as_shown() {
    let emphasis = table().emphasis();
    let best: Vec<(usize, usize)> = (0..5)
        .flat_map(|row| (0..5).map(move |column| (row, column)))
        .filter(|&(row, column)| emphasis[row][column] == Emphasis::Best)
        .collect();
    // Goodput of the first group reads alike; two stalls share the lowest; probes are not compared.
    assert_eq!(best, [(3, 3), (4, 2), (4, 3)]);
}

#[test]
fn best_is_best_of_its_class_wherever_its_rivals_stand() {
    let mut table = table();
    // Predictions behind the measurements they belong to: the best of all is one of them.
    let predicted = |mut row: Row, goodput: f64| {
        row.class = 1;
        row.cells[2] = Cell::number(goodput, format!("{goodput:.3}"));
        row
    };
    let [plain, snoop] = [&table.rows[2], &table.rows[4]].map(Clone::clone);
    table.rows = vec![plain.clone(), predicted(plain, 2.5), snoop.clone(), predicted(snoop, 2.0)];
    let goodputs: Vec<Emphasis> = table.emphasis().iter().map(|row| row[2]).collect();
    assert_eq!(goodputs, [Emphasis::None, Emphasis::Best, Emphasis::Best, Emphasis::None]);
}

#[test]
fn what_a_cell_says_of_itself_outweighs_its_value() {
    let mut table = table();
    table.rows[4].cells[2].emphasis = Emphasis::Warning;
    assert_eq!(table.emphasis()[4][2], Emphasis::Warning);
    assert_eq!(table.emphasis()[3][2], Emphasis::None, "the best is still the best");
}

#[test]
fn neither_missing_nor_surplus_cells_nor_an_empty_table_do_harm() {
    let mut table = table();
    table.rows[0].cells.truncate(1);
    table.rows[1].cells.extend([Cell::text("surplus"), Cell::number(f64::NAN, "NaN")]);
    table.rows[2].cells.clear();
    assert!(!table.to_plain().contains("surplus"));
    assert_eq!(Table::default().to_plain(), "");
    assert_eq!(Table::default().render(Some(80), Styling::Ansi), "");
    assert!(!table.render(Some(1), Styling::Plain).is_empty());
}

/// Without escape codes: ESC [ … m.
fn strip(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}
