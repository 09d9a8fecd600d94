package pages

import (
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// StateOf returns how much is known about a node and since when, and the role in which to
// write it.
func StateOf(n *store.Node, now time.Time) (string, draw.Role) {
	switch {
	case n == nil:
		return "no such node", draw.Stale
	case n.State == document.StateLive:
		return n.Status(), SeverityRole(n.Severity)
	}
	words := string(n.State)
	if n.SampledAt != nil && n.Summary != nil {
		words += " " + show.Since(n.SampledAt, now)
	}
	if n.Error != nil {
		words += ": " + Reason(*n.Error)
	}
	return words, draw.Stale
}

// Sign returns the sign before what has a severity, in its colour: ! for an error, ⚠ for a warning.
func Sign(s draw.Style, of document.Severity) draw.Span {
	return draw.T(SeverityRole(of), s.Pick(of.Sign(), of.SignASCII()))
}

// SeverityRole returns the role in which a severity is shown, next to its word.
func SeverityRole(s document.Severity) draw.Role {
	switch s {
	case document.SeverityCritical, document.SeverityError:
		return draw.Bad
	case document.SeverityWarning:
		return draw.Warn
	case document.SeverityInfo:
		return draw.Info
	}
	return draw.Good
}
