package logs

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
)

// reader reads logs. When following, it returns only new lines.
type reader struct {
	f               *cli.Factory
	opts            *Options
	nodes           *fleet.Fleet
	names           []string
	last            map[string]place // by node
	width           int              // of the nodes' names
	warnedContainer bool             // warned that an upstream node's container log is incomplete
	cut             bool             // a node had more lines than its share
	noted           bool             // warned that lines were left out
	day             string           // on which printing began
	dated           bool             // times are printed with dates

	cluster func() (*kube.Cluster, error) // computed once; nil if there is none
}

// place is how far a node's log was read: its newest time, and the lines of that time.
type place struct {
	at    time.Time
	lines map[string]bool
}

// maxContainerLine bounds a line of a container's log.
const maxContainerLine = 64 << 10

// defaultLimit bounds the lines printed of all nodes together: nobody reads more, and
// gathering more takes long.
const defaultLimit = 10_000

// spare is how many times its share of --limit a node is asked for, since some nodes log more
// than others.
const spare = 4

// share returns how many lines each of the nodes is asked for.
func (o *Options) share(nodes int) int {
	if nodes <= 1 {
		return min(o.Tail, o.Limit)
	}
	return min(o.Tail, max(1, spare*o.Limit/nodes))
}

// among sets the nodes to read from now on. It forgets what was read of nodes that left,
// since another node may get the name.
func (r *reader) among(nodes *fleet.Fleet) {
	names := nodes.Names()
	if r.nodes != nodes {
		gone := map[string]bool{}
		for _, name := range r.names {
			gone[name] = true
		}
		for _, name := range names {
			delete(gone, name)
		}
		maps.DeleteFunc(r.last, func(name string, _ place) bool { return gone[name] })
		follow.Left(r.f, slices.Sorted(maps.Keys(gone)))
	}
	r.nodes, r.names = nodes, names
}

// newest keeps the newest --limit lines, and warns when lines are left out.
func (r *reader) newest(items []document.LogItem) []document.LogItem {
	over := len(items) - r.opts.Limit
	if (over > 0 || r.cut) && !r.noted {
		r.noted = true
		r.f.Warn("only the newest %d lines of %s are shown: give node names, narrow with --since, --level, --pod or --grep, or raise --limit",
			min(len(items), r.opts.Limit), human.Plural(len(r.names), "node", "nodes"))
	}
	return items[max(over, 0):]
}

// answer is the response of a node.
type answer struct {
	lines     []string
	upstream  bool // the node logs each request
	container bool // the lines come from the container's log
	cut       bool // the node has more lines, but was only asked for its share
}

// read reads the new lines, oldest first. upstream reports whether an upstream node was read.
func (r *reader) read(ctx context.Context) (items []document.LogItem, errs []document.NodeError, upstream bool) {
	answers := make([]answer, len(r.names))
	queries := make([]introspect.LogQuery, len(r.names))
	for i, name := range r.names {
		queries[i] = r.query(name)
	}
	done, erase := sweep.Asking(r.f, len(r.names))
	failures := r.recorded(ctx, answers)
	if r.f.Recording == nil {
		failures = r.nodes.Ask(ctx, nil, func(ctx context.Context, i int, t fleet.Target, c *client.Client) (err error) {
			answers[i], err = r.one(ctx, t, c, queries[i])
			if t.Dial != nil {
				c.Close() // keeps no more tunnels open than nodes are being read
			}
			done(err)
			return err
		})
	}
	erase()
	items, errs = []document.LogItem{}, []document.NodeError{}
	accepts := r.opts.filter().accepts
	containers := false
	for i, name := range r.names {
		a := answers[i]
		upstream = upstream || a.upstream
		if failures[i] != nil {
			errs = append(errs, sweep.ErrorOf(name, failures[i]))
			continue
		}
		containers, r.cut = containers || a.container, r.cut || a.cut
		var of []document.LogItem
		_, again := r.last[name]
		for _, line := range r.fresh(name, a.lines) {
			of = append(of, parseLine(name, line))
		}
		if r.opts.Since > 0 { // some nodes and API servers ignore it
			of = since(of, r.f.Now().Add(-r.opts.Since))
		}
		of = slices.DeleteFunc(of, func(item document.LogItem) bool { return !accepts(item) })
		if !again {
			of = of[max(0, len(of)-r.opts.Tail):]
		}
		items = append(items, of...)
	}
	if containers && !r.warnedContainer {
		r.warnedContainer = true
		r.f.Warn("some nodes do not serve their log; showing their container's log instead. Upstream writes little to it; the rest is in /var/log/aws-routed-eni/ipamd.log on the node")
	}
	sortLines(items)
	return items, errs, upstream
}

// recorded takes the lines from the recording. It returns nil if there is no recording.
func (r *reader) recorded(ctx context.Context, answers []answer) []error {
	if r.f.Recording == nil {
		return nil
	}
	errs := make([]error, len(r.names))
	for i, name := range r.names {
		d := r.f.Recording.Detail(ctx, name, watch.WantLogs, watch.Query{})
		if d.Logs == nil {
			e := d.Errors[watch.WantLogs]
			errs[i] = &client.Error{Address: name, Reason: e.Reason, Err: errors.New(e.Message)}
			continue
		}
		answers[i].lines = d.Logs.Lines
	}
	return errs
}

// one reads the log that a node serves, else that of its container.
func (r *reader) one(ctx context.Context, t fleet.Target, c *client.Client, q introspect.LogQuery) (a answer, err error) {
	doc, err := c.Logs(ctx, q)
	switch reason := client.ReasonOf(err); reason {
	case introspect.ReasonNoEndpoint, introspect.ReasonNotServed, introspect.ReasonNotFound:
		a.upstream = true
		if a.lines, err = r.container(ctx, t, q.Lines); errors.Is(err, errNoContainer) {
			return a, &client.Error{Address: t.Address, Path: introspect.PathLogs, Reason: reason, Err: errNoLog}
		}
		a.container = err == nil
		return a, err
	}
	a.lines, a.cut = doc.Lines, doc.Truncated && r.opts.share(len(r.names)) < r.opts.Tail
	return a, err
}

// query asks a node for its newest lines or, when following, for those since the newest one
// read.
func (r *reader) query(name string) introspect.LogQuery {
	q := introspect.LogQuery{Lines: r.opts.share(len(r.names)), Level: r.opts.Level, Match: r.opts.match()}
	if !r.opts.AccessLines {
		q.Lines = min(spare*q.Lines, introspect.MaxLogLines) // enough lines must remain without them
	}
	if r.opts.Since > 0 {
		q.Since = r.f.Now().Add(-r.opts.Since)
	}
	if last := r.last[name]; !last.at.IsZero() {
		q.Since, q.Lines = last.at, introspect.MaxLogLines
	}
	return q
}

// fresh returns the lines that were not read before, and remembers them. Lines with the same
// time as the newest are recognized by their text.
func (r *reader) fresh(name string, lines []string) []string {
	last, seen := r.last[name]
	if last.lines == nil {
		last.lines = map[string]bool{}
	}
	newest := last
	var out []string
	for _, line := range lines {
		item := parseLine(name, line)
		switch {
		case item.At == nil:
			if !seen {
				out = append(out, line)
			}
			continue
		case item.At.Before(last.at), item.At.Equal(last.at) && last.lines[line]:
			continue
		}
		out = append(out, line)
		if item.At.After(newest.at) {
			newest = place{at: *item.At, lines: map[string]bool{}}
		}
		if item.At.Equal(newest.at) {
			newest.lines[line] = true
		}
	}
	r.last[name] = newest
	return out
}

// errNoLog means that the node serves no log, and there is no other source.
var errNoLog = errors.New("the daemon does not serve its log: it is upstream's or older, or logs to standard output")

// errNoContainer means that the container's log cannot be read.
var errNoContainer = errors.New("there is no API server to read the container's log from")

// container reads the log of a daemon's container through the API server.
func (r *reader) container(ctx context.Context, t fleet.Target, newest int) ([]string, error) {
	pod, ok := kube.Daemon(t.Object)
	if !ok {
		return nil, errNoContainer
	}
	c, err := r.cluster()
	if err != nil || c == nil {
		return nil, errors.Join(errNoContainer, err)
	}
	stream, err := c.DaemonLogs(ctx, pod, kube.LogOptions{Tail: newest, Since: r.opts.Since})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var lines []string
	scanner := bufio.NewScanner(stream)
	scanner.Buffer(nil, maxContainerLine)
	for scanner.Scan() && len(lines) < introspect.MaxLogLines {
		lines = append(lines, strings.Clone(scanner.Text()))
	}
	if err := scanner.Err(); err != nil {
		return nil, errors.New("read the container's log: " + err.Error())
	}
	return lines, nil
}
