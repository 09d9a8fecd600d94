package logs

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/cluster"
	"cnictl/daemon/fleet/show"
)

// reader reads logs, and when it follows them, what is new.
type reader struct {
	f     *cli.Factory
	opts  *Options
	nodes *fleet.Fleet
	names []string
	last  map[string]place // by node
	width int              // of the nodes' names
	said  bool             // that the container's log of an original is not all

	cluster func() (*cluster.Cluster, error) // once; nil: there is none
}

// place is how far the log of a node was read: its newest time, and the lines of it.
type place struct {
	at    time.Time
	lines map[string]bool
}

// maxContainerLine bounds a line of a container's log.
const maxContainerLine = 64 << 10

// read reads the lines that are new, oldest first; original tells that a node of the
// original is among those read.
func (r *reader) read(ctx context.Context) (items []introspect.LogItem, errs []introspect.NodeError, original bool) {
	perNode := make([][]string, len(r.names))
	originals := make([]bool, len(r.names)) // they log each request
	containers := make([]bool, len(r.names))
	failures := r.nodes.Ask(ctx, nil, func(ctx context.Context, i int, t fleet.Target, c *client.Client) error {
		doc, err := c.Logs(ctx, r.query(t.Name))
		perNode[i] = doc.Lines
		switch client.ReasonOf(err) {
		case introspect.ReasonNoEndpoint, introspect.ReasonNotServed, introspect.ReasonNotFound:
			originals[i] = true
			lines, containerErr := r.container(ctx, t)
			if containerErr == nil {
				perNode[i], containers[i] = lines, true
				return nil
			}
			if !errors.Is(containerErr, errNoContainer) {
				return containerErr
			}
			return &client.Error{Address: t.Address, Path: introspect.PathLogs, Reason: client.ReasonOf(err), Err: errNoLog}
		}
		return err
	})
	items, errs = []introspect.LogItem{}, []introspect.NodeError{}
	accepts := r.opts.filter().accepts
	for i, name := range r.names {
		original = original || originals[i]
		if failures[i] != nil {
			errs = append(errs, sweep.ErrorOf(name, failures[i]))
			continue
		}
		for _, line := range r.fresh(name, perNode[i]) {
			if item := parseLine(name, line); accepts(item) {
				items = append(items, item)
			}
		}
	}
	if slices.Contains(containers, true) && !r.said {
		r.said = true
		r.f.Warn("some nodes do not serve their log: that of their container is shown, which the original writes little of; the rest is in /var/log/aws-routed-eni/ipamd.log on the node")
	}
	sortLines(items)
	return items, errs, original
}

// query asks a node for its newest lines; when the log is followed, for those since the
// newest that was read.
func (r *reader) query(name string) introspect.LogQuery {
	q := introspect.LogQuery{Lines: r.opts.Tail, Level: r.opts.Level, Match: r.opts.match()}
	if r.opts.Since > 0 {
		q.Since = r.f.Now().Add(-r.opts.Since)
	}
	if last := r.last[name]; !last.at.IsZero() {
		q.Since, q.Lines = last.at, introspect.MaxLogLines
	}
	return q
}

// fresh are the lines that were not read before, and remembers them. Lines of the same
// moment as the newest are known by their text.
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

// errNoLog: the node serves no log, and nobody else can be asked.
var errNoLog = errors.New("it does not serve its log: an older daemon, the original, or one that logs to its standard output")

// errNoContainer: there is no way to a container's log.
var errNoContainer = errors.New("no API server to ask for the container's log")

// container reads the log of a daemon's container through the API server.
func (r *reader) container(ctx context.Context, t fleet.Target) ([]string, error) {
	pod, ok := cluster.Daemon(t.Object)
	if !ok {
		return nil, errNoContainer
	}
	c, err := r.cluster()
	if err != nil || c == nil {
		return nil, errors.Join(errNoContainer, err)
	}
	stream, err := c.DaemonLogs(ctx, pod, cluster.LogOptions{Tail: r.opts.Tail, Since: r.opts.Since})
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
		return nil, errors.New("read the container's log: " + show.Safe(err.Error()))
	}
	return lines, nil
}
