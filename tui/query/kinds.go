package query

import "cnictl/tui/show"

// Of adapts columns of a part of each row to the whole row.
func Of[T, U any](columns []Column[U], part func(T) U) []Column[T] {
	out := make([]Column[T], len(columns))
	for i, c := range columns {
		of := Column[T]{
			Name: c.Name, Header: c.Header, Title: c.Title, Right: c.Right, Wide: c.Wide, Named: c.Named, Drop: c.Drop, Least: c.Least, Unit: c.Unit,
			Text: func(row T) string { return c.Text(part(row)) },
		}
		if c.CSV != nil {
			of.CSV = Of(c.CSV, part)
		}
		if c.Number != nil {
			of.Number = func(row T) (float64, bool) { return c.Number(part(row)) }
		}
		if c.Also != nil {
			of.Also = func(row T) string { return c.Also(part(row)) }
		}
		if c.Rank != nil {
			of.Rank = func(row T) int { return c.Rank(part(row)) }
		}
		out[i] = of
	}
	return out
}

// Words is a text column with values from a node or the cluster, "-" if empty.
func Words[T any](name, header, title string, drop int, of func(T) string) Column[T] {
	return Column[T]{Name: name, Header: header, Title: title, Drop: drop, Text: func(row T) string {
		return show.OrUnknown(of(row))
	}}
}

// Count is a column of numbers; nil is unknown.
func Count[T any](name, header, title string, drop int, of func(T) *int) Column[T] {
	return Column[T]{
		Name: name, Header: header, Title: title, Right: true, Drop: drop,
		Text:   func(row T) string { return show.Int(of(row)) },
		Number: func(row T) (float64, bool) { return Number(of(row)) },
	}
}

// Number converts v for comparisons; false if unknown.
func Number(v *int) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return float64(*v), true
}
