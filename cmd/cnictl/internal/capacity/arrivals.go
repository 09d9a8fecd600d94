package capacity

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/record"
)

// maxLine bounds a line of an arrivals file, maxPodsALine the pods on one line, and
// mostArrivals the pods of a rate or a recording.
const (
	maxLine      = 64 << 10
	maxPodsALine = 1 << 16
	mostArrivals = 10_000_000
)

// loadFlags are the flags that describe how pods come and go.
type loadFlags struct {
	arrivals string
	rate     float64
	life     time.Duration
	length   time.Duration
	seed     uint64
	free     int
}

func (l *loadFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&l.arrivals, "arrivals", "",
		"`file` of JSON lines {\"at\": RFC 3339, \"node\": name or null, \"pods\": ±n}, or a recording; - is standard input")
	fs.Float64Var(&l.rate, "rate", 1, "`pods` that arrive per minute, on all nodes together")
	fs.DurationVar(&l.life, "life", 0, "mean lifetime of these pods (a `duration`); 0: each replaces another pod")
	fs.DurationVar(&l.length, "for", 24*time.Hour, "simulate this `duration`")
	fs.Lookup("for").DefValue = "24h" // not 24h0m0s
	fs.Uint64Var(&l.seed, "seed", 1, "`seed` of the random numbers")
	fs.IntVar(&l.free, "subnet-free", -1, "`N` free addresses in the nodes' subnet at the start (default enough)")
	fs.Lookup("subnet-free").DefValue = "0" // which help does not show
}

// load builds the load for these nodes; given reports whether a flag was set.
func (l *loadFlags) load(ctx context.Context, f *cli.Factory, names []string, given func(flag string) bool) (whatif.Load, error) {
	out := whatif.Load{For: l.length, Seed: l.seed, Free: l.free}
	const most = 366 * 24 * time.Hour
	switch {
	case l.length <= 0 || l.length > most:
		return out, cli.Usage("--for is %s: want more than 0 and at most %s", l.length, most)
	case l.rate < 0 || l.rate > 1e5:
		return out, cli.Usage("--rate is %g: want 0 to 100000 pods per minute", l.rate)
	case l.rate*l.length.Minutes() > mostArrivals:
		return out, cli.Usage("--rate %g for %s is more than %d pods", l.rate, l.length, mostArrivals)
	case l.life < 0:
		return out, cli.Usage("--life is %s: want 0 or more", l.life)
	case l.free < -1:
		return out, cli.Usage("--subnet-free is %d: want 0 or more", l.free)
	}
	if l.arrivals == "" {
		out.Steps = whatif.Arrivals(l.rate, l.life, l.length, l.seed)
		if l.life == 0 {
			out.Steps = whatif.Replacements(l.rate, l.length, l.seed)
		}
		return out, nil
	}
	if given("rate") || given("life") {
		return out, cli.Usage("--arrivals cannot be used with --rate or --life")
	}
	in := f.Streams.In
	if l.arrivals != "-" {
		file, err := os.Open(l.arrivals)
		if err != nil {
			var path *os.PathError
			if errors.As(err, &path) {
				err = path.Err
			}
			return out, &cli.Error{Code: cli.ExitNotFound, What: l.arrivals + " could not be read", Why: err.Error()}
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewReader(in)
	if start, _ := lines.Peek(len(gzipped)); string(start) == gzipped { // too short if Peek fails
		return l.recorded(ctx, f, lines, names, given)
	}
	steps, err := readArrivals(lines, names)
	if err != nil {
		return out, &cli.Error{Code: cli.ExitUsage, What: l.arrivals + " is not a file of arrivals", Why: err.Error(),
			Do: `write lines such as {"at": "2026-01-31T08:00:00Z", "node": null, "pods": 5}`}
	}
	out.Steps = steps
	if n := len(steps); n > 0 && !given("for") {
		out.For = steps[n-1].At + time.Minute
	}
	return out, nil
}

// readArrivals parses the lines; times are relative to the first. Nodes may have short names.
// Errors name the line and field.
func readArrivals(in io.Reader, names []string) (steps []whatif.Step, err error) {
	index, targets := map[string]int{}, []fleet.Target{}
	for i, n := range names {
		index[n] = i
		targets = append(targets, fleet.Target{Name: n})
	}
	var first, last time.Time
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		var l struct {
			At   *time.Time `json:"at"`
			Node *string    `json:"node"`
			Pods *int       `json:"pods"`
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			var of *json.UnmarshalTypeError
			var when *time.ParseError
			switch {
			case errors.As(err, &of):
				return nil, fmt.Errorf("line %d, field %s: a %s, want a %s", n, of.Field, of.Value,
					map[string]string{"pods": "whole number", "node": "name or null"}[of.Field])
			case errors.As(err, &when):
				return nil, fmt.Errorf("line %d, field at: %q is not an RFC 3339 time", n, strings.Trim(when.Value, `"`))
			}
			return nil, fmt.Errorf("line %d: %s", n, strings.TrimPrefix(err.Error(), "json: "))
		}
		switch {
		case d.More():
			return nil, fmt.Errorf("line %d: more than one object", n)
		case l.At == nil:
			return nil, fmt.Errorf("line %d, field at: missing", n)
		case l.Pods == nil:
			return nil, fmt.Errorf("line %d, field pods: missing", n)
		case *l.Pods == 0 || *l.Pods > maxPodsALine || *l.Pods < -maxPodsALine:
			return nil, fmt.Errorf("line %d, field pods: %d, want 1 to %d, or less than 0 for pods that leave", n, *l.Pods, maxPodsALine)
		case l.At.Before(last):
			return nil, fmt.Errorf("line %d, field at: earlier than the line before", n)
		}
		s := whatif.Step{Node: whatif.AnyNode, Pods: *l.Pods}
		if l.Node != nil {
			i, known := index[*l.Node]
			if !known {
				switch full := access.Meant(*l.Node, targets); len(full) {
				case 0:
					return nil, fmt.Errorf("line %d, field node: no node %s is simulated", n, *l.Node)
				case 1:
					i = index[full[0]]
					index[*l.Node] = i
				default:
					return nil, fmt.Errorf("line %d, field node: %s matches %d nodes, such as %s", n, *l.Node, len(full), full[0])
				}
			}
			s.Node = i
		}
		if last = *l.At; first.IsZero() {
			first = last
		}
		s.At = last.Sub(first)
		steps = append(steps, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(steps) == 0 {
		return nil, errors.New("it has no lines")
	}
	return steps, nil
}

// gzipped is how a recording starts.
const gzipped = "\x1f\x8b"

// recorded returns the load from the pods that come and go in a recording.
func (l *loadFlags) recorded(ctx context.Context, f *cli.Factory, in io.Reader, names []string,
	given func(flag string) bool) (whatif.Load, error) {
	out := whatif.Load{For: l.length, Seed: l.seed, Free: l.free}
	p, err := record.Open(in, record.Options{Now: f.Now})
	if err != nil {
		return out, &cli.Error{Code: cli.ExitUsage, What: l.arrivals + " cannot be replayed", Why: err.Error(),
			Do: f.Name + " record FILE makes a new recording"}
	}
	shown := newProgress(ctx, f)
	defer shown.Erase()
	t := tally{index: map[string]int{}, anywhere: given("type"), seen: map[string]whatif.Seen{}, left: map[string]bool{}}
	for i, n := range names {
		t.index[n] = i
	}
	var length time.Duration
	t.from, _ = p.Range()
	for s := range p.Samples {
		if !shown.say(func() string { return l.arrivals + ": read up to " + moment(s.At) }) {
			return out, ctx.Err()
		}
		length = s.At.Sub(t.from)
		if len(t.steps) >= mostArrivals {
			return out, cli.Usage("%s: more than %d pods come and go until %s", l.arrivals, mostArrivals, moment(s.At))
		}
		t.take(s)
	}
	shown.Erase()
	switch {
	case len(t.seen) == 0 && len(t.left) > 0:
		return out, &cli.Error{Code: cli.ExitUsage, What: l.arrivals + " has none of the simulated nodes",
			Why: "it has others, such as " + slices.Min(slices.Collect(maps.Keys(t.left))),
			Do:  "add --replay " + l.arrivals + " --at +0m to simulate its nodes, or give --type and --pods"}
	case len(t.seen) == 0:
		return out, &cli.Error{Code: cli.ExitUsage, What: l.arrivals + " has no pods", Why: "no node reports its pool"}
	case len(t.left) > 0:
		f.Warn("%s: pods on %s that are not simulated are left out", l.arrivals, human.Plural(len(t.left), "node", "nodes"))
	}
	if p.Interrupted() {
		f.Warn("%s is cut off: it has pods up to %s", l.arrivals, moment(t.from.Add(length)))
	}
	whatif.SortSteps(t.steps)
	if out.Steps = t.steps; !given("for") {
		out.For = length + time.Minute
	}
	return out, nil
}

// tally turns samples into steps.
type tally struct {
	from     time.Time
	index    map[string]int // indices of the simulated nodes
	anywhere bool           // pods may arrive at any simulated node; otherwise at the node of that name
	seen     map[string]whatif.Seen
	left     map[string]bool // nodes whose pods are ignored
	steps    []whatif.Step
}

func (t *tally) take(s record.Sample) {
	node, simulated := t.index[s.Name]
	if t.anywhere {
		node = whatif.AnyNode
	} else if !simulated {
		t.left[s.Name] = true
		return
	}
	before, known := t.seen[s.Name]
	now := whatif.Seen{At: s.At.Sub(t.from)}
	switch n := s.Node; {
	case n == nil:
	case n.Summary == nil || len(n.Summary.Cards) == 0:
		return
	default:
		now.Pods = n.Summary.Cards[0].Assigned
		if a := n.Summary.ADDs; a != nil && a.Failed != nil {
			now.ADDs = new(a.Total - *a.Failed)
		}
		if o := n.Object; !known && o != nil && o.CreatedAt != nil && o.CreatedAt.After(t.from) {
			before, known = whatif.Seen{At: now.At}, true
		}
	}
	if t.seen[s.Name] = now; !known {
		return
	}
	for step := range whatif.Between(node, before, now) {
		if t.steps = append(t.steps, step); len(t.steps) >= mostArrivals {
			return
		}
	}
}
