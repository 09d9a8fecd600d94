package query

import "cnictl/daemon/fleet/show"

// Words is a column of text that came from a node or the cluster: made safe, and "-"
// where there is none.
func Words[T any](name, header, title string, drop int, of func(T) string) Column[T] {
	return Column[T]{Name: name, Header: header, Title: title, Drop: drop, Text: func(row T) string { return show.OrUnknown(show.Safe(of(row))) }}
}

// Count is a column of numbers of which one may not be known: nil.
func Count[T any](name, header, title string, drop int, of func(T) *int) Column[T] {
	return Column[T]{
		Name: name, Header: header, Title: title, Right: true, Drop: drop,
		Text:   func(row T) string { return show.Int(of(row)) },
		Number: func(row T) (float64, bool) { return Number(of(row)) },
	}
}

// Number is a number for comparisons; false: not known.
func Number(v *int) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return float64(*v), true
}
