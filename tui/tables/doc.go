// Package tables has the columns of nodes, pods, ENIs, addresses, subnets, trunks and events, which
// commands and screens share: what a column is called, how it shows, sorts and filters its value,
// and its numbers in CSV. Texts are as nodes wrote them: what draws a cell escapes it.
package tables

import "cnictl/tui/query"

// wide leaves a column to -o wide.
func wide[T any](c query.Column[T]) query.Column[T] { c.Wide = true; return c }

// plain is a text that is always known.
func plain[T any](name, header, title string, of func(T) string) query.Column[T] {
	return query.Column[T]{Name: name, Header: header, Title: title, Text: of}
}
