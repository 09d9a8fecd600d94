package inventory

import (
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
)

// GroupEvents merges the rows of one cause on one object. The last of them stays, with how often it
// happened; what its columns already say goes from its text. The order stays that of time.
func GroupEvents(rows []Event) []Event {
	type key struct{ from, node, what, object, cause, component string }
	keyOf := func(r Event) key { return key{r.From, r.Node, r.What, r.Object, r.Cause, r.Component} }
	counts := map[key]int{}
	for _, r := range rows {
		counts[keyOf(r)] += r.Count
	}
	out := make([]Event, 0, len(counts))
	for i := len(rows) - 1; i >= 0; i-- { // the last first
		r := rows[i]
		n, ok := counts[keyOf(r)]
		if !ok {
			continue
		}
		delete(counts, keyOf(r))
		r.Count, r.Message = n, Rounded(r.Message)
		if r.From == document.FromDaemon && r.Message == introspect.EventKind(r.What).Title() {
			r.Message = ""
		}
		if r.Object == r.Node {
			r.Object = ""
		}
		out = append(out, r)
	}
	MergeEvents(out)
	return out
}

// precise matches durations with a fraction of a second.
var precise = lazy.Regexp(`\b(?:\d+h)?(?:\d+m)?\d+\.\d+s\b`)

// Rounded returns a text with its durations in whole seconds, or tenths below ten seconds.
func Rounded(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return precise().ReplaceAllStringFunc(text, func(word string) string {
		d, err := time.ParseDuration(word)
		switch {
		case err != nil:
			return word
		case d < 10*time.Second:
			return d.Round(100 * time.Millisecond).String()
		}
		return d.Round(time.Second).String()
	})
}
