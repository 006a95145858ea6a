//! Many values of one figure as what a record keeps of them.

use prony_record::Spread;

/// Count, smallest, mean, median, deviation and largest of some values.
pub fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
        return Spread::default();
    };
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let middle = values.len() / 2;
    let p50 = if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    };
    Spread {
        count: values.len() as u64,
        min,
        mean,
        p50,
        // Of a sample; of one value there is none.
        stdev: (squares / (count - 1.0).max(1.0)).sqrt(),
        max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_says_what_its_values_are() {
        let of = spread(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((of.count, of.min, of.max), (4, 1.0, 4.0));
        assert_eq!((of.mean, of.p50), (2.5, 2.5));
        assert!((of.stdev - 1.290_994).abs() < 1e-6);
        assert_eq!(spread(vec![7.0]).stdev, 0.0);
        assert_eq!(spread(Vec::new()), Spread::default());
    }
}
