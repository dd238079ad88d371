use super::layout::{HEIGHT, LaidArrow, lay_out};
use super::*;
use crate::report::sample::{self, NASTY};
use lockstead_inspect::check::model::HoldMode;
use lockstead_inspect::check::order::RecordedEdge;
use lockstead_inspect::stack::{Frame, Stack, StackEnd};
use roxmltree::Document;

fn order(locks: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> RecordedOrder {
    let lock = |at: usize| LockIdentity {
        name: format!("lock_{at}"),
        class: format!("class_{}", at % 100),
        ..LockIdentity::default()
    };
    let edge = |(from, to)| RecordedEdge { from, to, ..RecordedEdge::default() };
    RecordedOrder {
        locks: (0..locks).map(lock).collect(),
        edges: pairs.into_iter().map(edge).collect(),
        ..RecordedOrder::default()
    }
}

fn count(svg: &str, class: &str) -> usize {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let nodes = document.descendants();
    nodes.filter(|node| node.attribute("class") == Some(class)).count()
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let texts = document.descendants().filter(|node| node.tag_name().name() == "text");
    texts.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_cycle_stands_out_and_names_are_harmless() {
    let mut two = order(3, [(0, 1), (1, 0), (1, 2)]);
    two.locks[2].name = NASTY.into();
    let drawing = draw(&two, &[&sample::inversion("lock_0", "lock_1")]).expect("a picture");
    assert_eq!(count(&drawing.svg, "lock cycle"), 2);
    assert_eq!(count(&drawing.svg, "lock"), 1);
    // A line and its tip each.
    assert_eq!((count(&drawing.svg, "cycle"), count(&drawing.svg, "order")), (4, 2));
    assert!(drawing.left_out.is_none() && !drawing.svg.contains("Map<int>"));
    assert!(draw(&order(2, []), &[]).is_none());
}

#[test]
fn an_arrow_says_where_and_how_and_the_table_says_the_same() {
    let mut one = order(3, [(0, 1), (2, 2)]);
    let frame = Frame {
        function: Some("transfer".into()),
        file: Some("/src/bank.c".into()),
        line: Some(25),
        ..Frame::default()
    };
    one.stacks = vec![Stack { frames: vec![frame], end: StackEnd::Bottom }];
    one.edges[0] = RecordedEdge {
        from_how: HoldMode::Read,
        tried: true,
        asked: Some(0),
        timed: true,
        gates: vec![2],
        ..one.edges[0].clone()
    };
    let drawing = draw(&one, &[]).expect("a picture");
    let said = texts(&drawing.svg);
    let wanted =
        ["2: transfer() at bank.c:25", "held for reading, by trylock", "asked until a deadline"];
    for words in wanted {
        assert!(said.contains(&words.to_owned()), "{words}: {said:?}");
    }
    let row = &drawing.rows[1];
    assert_eq!((&*row.number, &*row.held, &*row.asked), ("2", "lock_0", "lock_1"));
    assert_eq!(row.witness.asked, ["transfer() at bank.c:25"]);
    assert_eq!(row.witness.acquired, ["a place that was not recorded"]);
    assert_eq!(row.witness.held_how, "for reading, by trylock");
    assert_eq!(row.witness.asked_how, "until a deadline");
    assert_eq!(row.witness.gates, "lock_2");
    // To itself: the number alone stands beside it.
    assert!(said.contains(&"1".to_owned()), "{said:?}");
    assert!(!drawing.bare);
}

#[test]
fn of_many_arrows_those_of_cycles_have_words() {
    let many = order(30, (0..29).map(|at| (at, at + 1)));
    let drawing = draw(&many, &[&sample::inversion("lock_3", "lock_4")]).expect("a picture");
    let numbered: Vec<&str> = drawing.rows.iter().map(|row| &*row.number).collect();
    assert_eq!(numbered[..3], ["1", "2", ""]);
    assert!(drawing.bare && drawing.rows[..2].iter().all(|row| row.in_cycle));
    assert_eq!(drawing.rows.len(), 30, "the one back, too");
    assert!(drawing.svg.contains("In cycles: lock_3 before lock_4; lock_4 before lock_3"));
}

/// A place, or a width and a height.
type Pair = (f64, f64);

/// Returns whether no two of these middles and sizes lie on each other.
fn are_apart(placed: &[(Pair, Pair)]) -> bool {
    let apart = |(a, b): Pair, (c, d): Pair| (a - b).abs() >= (c + d) / 2.0 - 0.1;
    (0..placed.len()).all(|one| {
        (0..one).all(|other| {
            let ((x, y), (width, height)) = placed[one];
            let ((x2, y2), (width2, height2)) = placed[other];
            apart((x, x2), (width, width2)) || apart((y, y2), (height, height2))
        })
    })
}

#[test]
fn neither_boxes_nor_words_lie_on_each_other() {
    for pairs in [
        (0..30).map(|at| (at % 7, at % 11)).collect::<Vec<_>>(),
        (0..12).map(|at| (at, (at + 1) % 12)).collect(),
        (1..20).map(|at| (0, at)).collect(),
        vec![(0, 0)],
        vec![(0, 1), (1, 0)],
        vec![(0, 1), (2, 3), (4, 5)],
    ] {
        for words in [None, Some((150.0, 34.0))] {
            let widths: Vec<f64> = (0..30).map(|at| 60.0 + f64::from(at)).collect();
            let arrow = |&(from, to): &(usize, usize)| LaidArrow { from, to, words };
            let arrows: Vec<LaidArrow> = pairs.iter().map(arrow).collect();
            let layout = lay_out(&widths, &arrows);
            let boxes = layout.boxes.iter().zip(&widths).map(|(&at, &wide)| (at, (wide, HEIGHT)));
            let said = layout.words.iter().zip(&arrows);
            let said = said.filter_map(|(at, arrow)| Some(((*at)?, arrow.words?)));
            let placed: Vec<_> = boxes.chain(said).collect();
            assert!(are_apart(&placed), "{pairs:?}: {placed:?}");
        }
    }
}

#[test]
fn the_words_of_two_opposite_arrows_lie_between_their_boxes() {
    let words = Some((100.0, 30.0));
    let arrows = [LaidArrow { from: 0, to: 1, words }, LaidArrow { from: 1, to: 0, words }];
    let layout = lay_out(&[80.0, 80.0], &arrows);
    let [one, other] = [0, 1].map(|at| layout.words[at].expect("words"));
    assert!((one.1 - other.1).abs() < 0.1, "side by side: {layout:?}");
    assert!(layout.boxes[0].1 < one.1 && one.1 < layout.boxes[1].1, "{layout:?}");
}

#[test]
fn of_many_locks_the_cycles_are_left() {
    let pairs = (0..5000).map(|at| (at, (at * 7 + 1) % 5000));
    let many = order(5000, pairs);
    let drawing = draw(&many, &[&sample::inversion("x", "y")]).expect("a picture");
    assert_eq!(count(&drawing.svg, "lock cycle"), 2);
    assert_eq!(count(&drawing.svg, "lock") + 2, BOXES);
    assert!(count(&drawing.svg, "order") <= 2 * ARROWS);
    let left = drawing.left_out.expect("much");
    assert!(left.contains("42 further locks or classes"), "{left}");
}

#[test]
fn any_graph_can_be_drawn() {
    let mut state = 7_u64;
    let mut any = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..200 {
        let locks = any(25) + 1;
        let pairs: Vec<_> = (0..any(60) + 1).map(|_| (any(locks), any(locks))).collect();
        let drawing = draw(&order(locks, pairs.clone()), &[]).expect("a picture");
        assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"), "{pairs:?}");
        assert!(drawing.rows.len() <= pairs.len());
    }
}
