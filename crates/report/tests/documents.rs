//! Whole documents from runs made by hand.

mod fixture;

use prony_record::Ended;
use prony_report::{Plot, Rendered, Run, plot_svg, render};

/// Where the pages go for someone who wants to look at them.
const PAGES: &str = "PRONY_REPORT_PAGES";

fn rendered(name: &str, run: &Run) -> Rendered {
    let rendered = render(run);
    assert_eq!(rendered, render(run), "{name}: the same bytes again");
    if let Some(folder) = std::env::var_os(PAGES) {
        let at = |ending: &str| std::path::Path::new(&folder).join(format!("{name}.{ending}"));
        std::fs::write(at("html"), &rendered.index_html).expect("a folder to write to");
        std::fs::write(at("md"), &rendered.document_md).expect("a folder to write to");
        std::fs::write(at("json"), &rendered.summary_json).expect("a folder to write to");
        std::fs::write(at("csv"), &rendered.summary_csv).expect("a folder to write to");
        for plot in Plot::ALL {
            let file = at(&format!("{plot:?}.svg"));
            std::fs::write(file, plot_svg(run, plot)).expect("a folder to write to");
        }
    }
    rendered
}

#[test]
fn a_quick_run_of_two_blocks() {
    let seen = rendered("quick", &fixture::quick());
    insta::assert_snapshot!("quick.md", seen.document_md);
    insta::assert_snapshot!("quick.csv", seen.summary_csv);
}

#[test]
fn twelve_blocks_with_a_copy_of_the_reference() {
    let seen = rendered("full", &fixture::full());
    insta::assert_snapshot!("full.md", seen.document_md);
}

#[test]
fn everything_that_can_go_wrong() {
    let seen = rendered("failures", &fixture::failures());
    insta::assert_snapshot!("failures.md", seen.document_md);
}

#[test]
fn an_empty_run() {
    let seen = rendered("empty", &Run::default());
    insta::assert_snapshot!("empty.md", seen.document_md);
}

#[test]
fn seven_blocks_of_programs() {
    let seen = rendered("programs", &fixture::programs::runtime(7));
    insta::assert_snapshot!("programs.md", seen.document_md);
}

/// The sections before the machine: the others are as in the runs above.
#[test]
fn one_work_in_several_workloads() {
    let seen = rendered("spread", &fixture::programs::spread(7));
    let (figures, _) = seen.document_md.split_once("## Machine").expect("it");
    insta::assert_snapshot!("spread.md", figures);
}

#[test]
fn programs_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("program_faults", &fixture::programs::faults());
    insta::assert_snapshot!("program_faults.md", seen.document_md);
    let head: Vec<&str> = seen.summary_csv.lines().take(4).collect();
    insta::assert_snapshot!("program_faults.csv", head.join("\n"));
}

#[test]
fn deadlines_with_and_without_the_throttle() {
    let seen = rendered("realtime", &fixture::programs::realtime(2));
    insta::assert_snapshot!("realtime.md", seen.document_md);
}

#[test]
fn seven_blocks_of_clients_that_ask() {
    let seen = rendered("clients", &fixture::clients::requests(7));
    insta::assert_snapshot!("clients.md", seen.document_md);
    let head: Vec<&str> = seen.summary_csv.lines().take(4).collect();
    insta::assert_snapshot!("clients.csv", head.join("\n"));
}

#[test]
fn six_blocks_of_downloads_over_two_networks() {
    let seen = rendered("downloads", &fixture::clients::downloads(6));
    insta::assert_snapshot!("downloads.md", seen.document_md);
}

#[test]
fn clients_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("client_faults", &fixture::clients::faults());
    insta::assert_snapshot!("client_faults.md", seen.document_md);
}

#[test]
fn seven_blocks_of_rows_that_are_killed() {
    let run = fixture::services::rows(7, Some(Ended::Killed), &[256]);
    let seen = rendered("rows", &run);
    insta::assert_snapshot!("rows.md", seen.document_md);
    insta::assert_snapshot!("rows.csv", seen.summary_csv);
    let (_, section) = seen
        .index_html
        .split_once("<section id=\"r1\">")
        .expect("it");
    let (section, _) = section.split_once("</section>").expect("its end");
    insta::assert_snapshot!("rows.html", section);
}

/// The sections before the machine: the others are as in the run above.
#[test]
fn ten_blocks_of_rows_at_two_numbers_of_connections() {
    let run = fixture::services::rows(10, None, &[64, 256]);
    let seen = rendered("rows_twice", &run);
    let (figures, _) = seen.document_md.split_once("## Machine").expect("it");
    insta::assert_snapshot!("rows_twice.md", figures);
}

#[test]
fn rows_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("row_faults", &fixture::services::faults());
    insta::assert_snapshot!("row_faults.md", seen.document_md);
}

/// The sections before the machine.
#[test]
fn all_combinations_with_what_is_around_them() {
    let seen = rendered("combined", &fixture::services::combined());
    let (figures, _) = seen.document_md.split_once("## Machine").expect("it");
    insta::assert_snapshot!("combined.md", figures);
}
