package logs

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
)

// near is the greatest time between the log line and the event of one occurrence.
const near = time.Second

// written maps kinds of events to words in the log lines for the same occurrence. Lines
// equal to the title of the kind match too.
var written = map[string][]string{
	string(introspect.EventAddressAssigned): {"address assigned"},
	string(introspect.EventAddressReleased): {"address released", logline.TextCooling},
	string(introspect.EventActionStarted):   {"pool action started"},
	string(introspect.EventActionDone):      {"pool action done"},
	string(introspect.EventActionFailed):    {"pool action failed"},
}

// same reports whether a log line and an event describe the same occurrence: they are near,
// the text matches, and fields that both have are equal.
func same(log, event *line) bool {
	if log.From != fromLog || event.From != fromEvent || log.Kind != "" || log.Node != event.Node || log.At.Sub(event.At).Abs() > near {
		return false
	}
	agree := func(a, b string) bool { return a == "" || b == "" || a == b }
	if !agree(log.Pod, event.Pod) || !agree(log.ENI, event.ENI) || !agree(log.IP, event.IP) {
		return false
	}
	return log.Text == event.title ||
		slices.ContainsFunc(written[event.Kind], func(words string) bool { return strings.Contains(log.Text, words) })
}

// fold merges the log line and the event of an occurrence into the log line. Lines must be
// ordered by time; those before from have been merged already. The result reuses all's
// memory.
func fold(all []*line, from time.Time) []*line {
	first, _ := slices.BinarySearchFunc(all, from.Add(-near), func(l *line, at time.Time) int { return l.At.Compare(at) })
	gone := map[*line]bool{}
	for i := first; i < len(all); i++ {
		if e := all[i]; e.From == fromEvent {
			if l := partner(all, i); l != nil {
				l.take(e)
				gone[e] = true
			}
		}
	}
	if len(gone) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(l *line) bool { return gone[l] })
}

// partner returns the nearest log line for an event's occurrence, nil if none.
func partner(all []*line, at int) *line {
	var best *line
	event := all[at]
	for _, step := range []int{-1, 1} {
		for i := at + step; i >= 0 && i < len(all); i += step {
			l := all[i]
			apart := l.At.Sub(event.At).Abs()
			if apart > near {
				break
			}
			if same(l, event) && (best == nil || apart < best.At.Sub(event.At).Abs()) {
				best = l
			}
		}
	}
	return best
}

// take adds to the log line what only the event contains.
func (l *line) take(e *line) {
	l.Kind, l.Level, l.Known, l.item = e.Kind, max(l.Level, e.Level), true, e.item
	if l.Pod == "" {
		l.Pod, l.ref = e.Pod, e.ref
	}
	if l.ENI == "" {
		l.ENI, l.eni = e.ENI, e.eni
	}
	if l.IP == "" {
		l.IP = e.IP
	}
	text := strings.Join([]string{l.Text, l.Pod, l.ENI, l.IP, l.Rest}, " ")
	var more []string
	for _, piece := range e.pieces {
		if !strings.Contains(text, piece) {
			more = append(more, piece)
		}
	}
	l.Rest = strings.TrimSpace(l.Rest + "  " + strings.Join(more, "  "))
}
