use super::*;

/// Two servers, asked in two ways, with what `run` says of the run.
fn planned(run: &str, options: &Options) -> Plan {
    let text = format!(
        "run = {{ duration = '3s', warmup = '1s'{run} }}
         subject = [{{ name = 'a', cmd = 'a {{port}}' }}, {{ name = 'b', cmd = 'b {{port}}' }}]
         workload = [
             {{ name = 'closed', request = {{ path = '/' }}, connections = [4, 8] }},
             {{ name = 'open', request = {{ path = '/' }}, connections = [4], arrival = {{ rate = [100] }} }},
         ]"
    );
    let (experiment, subjects) = loaded(&text);
    plan(&experiment, &subjects, &machine(&subjects), options).unwrap()
}

#[test]
fn closed_loops_of_servers_alone_are_visited_and_others_are_named_with_the_reason() {
    let visited = planned(", visits = '200ms'", &Options::default());
    let visits = visited.visits.as_ref().unwrap();
    assert_eq!(
        (visits.length_ns, visits.lead_in_ns),
        (200_000_000, 20_000_000)
    );
    assert_eq!(visits::count(visits, Nanos(visited.duration_ns)), 15);
    insta::assert_snapshot!(lines_on_visits(&visited).join("\n"), @"
    4 combinations visited in turns of 200ms (after a lead-in of 20.0ms), 15 in each block, with the others stopped
    measured by itself, as its load is no closed loop without think time, and continues while servers are paused: a open c=4 rate=100, b open c=4 rate=100
    ");
    let without = planned("", &Options::default());
    assert_eq!(without.visits, None);
    assert_eq!(lines_on_visits(&without), Vec::<String>::new());
    // Fifteen lead-ins and as many times stopping and going on, for four cells in six blocks.
    let more = estimate(&visited, Nanos::ZERO, Beside::default())
        - estimate(&without, Nanos::ZERO, Beside::default());
    assert_eq!(more, Nanos::from_millis(30) * 15 * 4 * 6);
}

#[test]
fn the_command_line_asks_for_visits_too() {
    let options = Options {
        visits: Some(Nanos::from_millis(100)),
        ..Options::default()
    };
    let visits = planned(", visits = '1s'", &options).visits.unwrap();
    assert_eq!(visits.length_ns, 100_000_000);
    assert_eq!(visits.lead_in_ns, 15_000_000);
}

#[test]
fn who_asks_for_the_narrowest_intervals_has_visits_unless_something_else_is_said() {
    let aims = Options {
        aims: true,
        ..Options::default()
    };
    let length = |run, options: &Options| Some(planned(run, options).visits?.length_ns);
    assert_eq!(length("", &aims), Some(200_000_000));
    assert_eq!(length(", visits = '1s'", &aims), Some(1_000_000_000));
    assert_eq!(length(", visits = 'off'", &aims), None);
    let off = Options {
        visits: Some(Nanos::ZERO),
        ..aims.clone()
    };
    assert_eq!(length(", visits = '1s'", &off), None);
    // Visits are not mentioned where they were not requested and are not possible.
    let only = Options {
        only: vec!["open".to_owned()],
        ..aims
    };
    assert_eq!(length("", &only), None);
    let visits = Options {
        visits: Some(Nanos::from_millis(200)),
        ..only
    };
    assert_eq!(length("", &visits), Some(200_000_000));
}

#[test]
fn what_is_compared_is_measured_alike() {
    let text = "run = { visits = '200ms' }
        subject = [{ name = 'a', cmd = 'a {port}' }, { name = 'b', cmd = 'b {port}' }, { name = 'there', url = 'http://127.0.0.1:1' }]
        workload = [{ name = 'w', request = { path = '/' }, connections = [4] }]";
    let (experiment, subjects) = loaded(text);
    let with = |only: &[&str]| {
        let options = Options {
            only: only.iter().map(|only| (*only).to_owned()).collect(),
            ..Options::default()
        };
        let made = plan(&experiment, &subjects, &machine(&subjects), &options).unwrap();
        lines_on_visits(&made).join("\n")
    };
    insta::assert_snapshot!(with(&[]), @"
    nothing can be visited in turns
    measured by itself, as it is compared with there w c=4, which is measured by itself: a w c=4, b w c=4
    measured by itself, as it was not started by Prony, which pauses only its own processes: there w c=4
    ");
    insta::assert_snapshot!(with(&["a w*", "b w*"]), @"2 combinations visited in turns of 200ms (after a lead-in of 20.0ms), 50 in each block, with the others stopped");
    insta::assert_snapshot!(with(&["a w*"]), @"
    nothing can be visited in turns
    measured by itself, as no other server of its workload and connections is there to be visited beside it: a w c=4
    ");
}

#[test]
fn windows_of_visits_make_up_that_of_the_trial_and_pauses_have_a_longest() {
    let visits = visits::planned(Nanos::from_millis(200));
    let (duration, ms) = (Nanos::from_millis(1_100), Nanos::from_millis);
    assert_eq!(visits::count(&visits, duration), 6);
    let (least, most) = visits::lengths(&visits, duration);
    let mean = Nanos(duration.0 / 6);
    let eighth = Nanos(mean.0 / 8);
    assert_eq!((least, most), (mean - eighth, mean + eighth));
    assert_eq!(visits::turn_max(&visits, duration), most + ms(30));
    assert_eq!(visits::pause_max(&visits, duration, 4), (most + ms(30)) * 6);
    assert_eq!(visits::pause_max(&visits, duration, 1), Nanos::ZERO);
    // A window shorter than a visit is one visit.
    assert_eq!(visits::count(&visits, ms(90)), 1);
}
