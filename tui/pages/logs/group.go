package logs

import (
	"slices"
	"strings"
	"time"

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

// group keeps the last line of each failure that is repeated, and says how often it happened. What
// is no warning is never grouped: its order is what it tells.
func group(lines []*line) ([]*line, map[*line]repeats) {
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
