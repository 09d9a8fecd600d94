package logs

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
)

// repeats is how often a line stands for a failure, and since when.
type repeats struct {
	times int
	since time.Time
}

// same failures have one key: the cause and the object, whatever else the text says.
type key struct{ from, node, what, object, cause string }

func keyOf(l *line) key {
	k := key{string(l.From), l.Node, l.Kind, l.Pod, l.item.Cause}
	if l.From == fromLog || l.From == fromContainer {
		k.what = l.Text
	}
	if k.object == "" {
		k.object = l.ENI + " " + l.IP
	}
	if k.cause == "" {
		_, rest, _ := strings.Cut(l.Rest, "cause=")
		k.cause, _, _ = strings.Cut(rest, " ")
	}
	return k
}

// retold is the greatest time after which the log or the kubelet says what the daemon's event of a
// failed ADD has said.
const retold = 5 * time.Second

// once leaves out what a failed ADD makes the daemon's log and the kubelet say too: the event has the
// cause.
func once(lines []*line) []*line {
	type about struct{ node, pod string }
	failed := map[about][]*line{}
	for _, l := range lines {
		if l.From == fromEvent && l.Kind == string(introspect.EventADDFailed) && l.Pod != "" {
			failed[about{l.Node, l.Pod}] = append(failed[about{l.Node, l.Pod}], l)
		}
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l *line) bool {
		logged := l.From == fromLog && l.Kind == "" && l.Known && l.Level >= logline.Warn
		if !logged && (l.From != fromKubernetes || l.Kind != sandboxFailed) {
			return false
		}
		return slices.ContainsFunc(failed[about{l.Node, l.Pod}], func(e *line) bool {
			return l.At.Sub(e.At).Abs() <= retold && (!logged || keyOf(l).cause == e.item.Cause)
		})
	})
}

// sandboxFailed is the reason of the kubelet's event of a failed ADD.
const sandboxFailed = "FailedCreatePodSandBox"

// group keeps the last line of each failure that is repeated, and says how often it happened. What
// is no warning is never grouped: its order is what it tells.
func group(lines []*line) ([]*line, map[*line]repeats) {
	lines = once(lines)
	seen := map[key]repeats{}
	for _, l := range lines {
		if l.Known && l.Level >= logline.Warn {
			r, ok := seen[keyOf(l)]
			if !ok {
				r.since = l.At
			}
			r.times++
			seen[keyOf(l)] = r
		}
	}
	out, times := make([]*line, 0, len(lines)), map[*line]repeats{}
	for _, l := range slices.Backward(lines) {
		if l.Known && l.Level >= logline.Warn {
			r, first := seen[keyOf(l)]
			if !first {
				continue
			}
			delete(seen, keyOf(l))
			times[l] = r
		}
		out = append(out, l)
	}
	slices.Reverse(out)
	return out, times
}
