package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/document"
)

// Defaults and bounds of Options.
const (
	DefaultConcurrency = 32
	MaxConcurrency     = 256
	DefaultNodeTimeout = 5 * time.Second
)

// Options configure a Fleet. Targets and Now are required.
type Options struct {
	Targets     []Target
	Concurrency int           // nodes read at once; 0 = DefaultConcurrency
	NodeTimeout time.Duration // for all requests to one node; 0 = DefaultNodeTimeout
	UserAgent   string
	Now         func() time.Time
}

// Fleet reads a fixed set of nodes, any number of times. Its methods must not be called
// concurrently.
type Fleet struct {
	opts  Options
	nodes []*Reader
}

// New builds a fleet; it does not connect.
func New(opts Options) (*Fleet, error) {
	if opts.Now == nil {
		return nil, errors.New("build fleet: Now is required")
	}
	if opts.Concurrency == 0 {
		opts.Concurrency = DefaultConcurrency
	}
	if opts.Concurrency < 1 || opts.Concurrency > MaxConcurrency {
		return nil, fmt.Errorf("build fleet: concurrency %d is not in 1–%d", opts.Concurrency, MaxConcurrency)
	}
	if opts.NodeTimeout == 0 {
		opts.NodeTimeout = DefaultNodeTimeout
	}
	f := &Fleet{opts: opts}
	for _, t := range opts.Targets {
		r, err := NewReader(t, ReaderOptions{NodeTimeout: opts.NodeTimeout, UserAgent: opts.UserAgent, Now: opts.Now})
		if err != nil {
			return nil, err
		}
		f.nodes = append(f.nodes, r)
	}
	return f, nil
}

// Close ends idle connections.
func (f *Fleet) Close() {
	for _, n := range f.nodes {
		n.Close()
	}
}

// Names lists the nodes in the order of the targets.
func (f *Fleet) Names() []string {
	names := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		names[i] = n.target.Name
	}
	return names
}

// Progress counts the nodes of a running sweep. A node that runs no daemon is OK.
type Progress struct{ Done, OK, Failed, Total int }

// Query says what to read from the nodes.
type Query struct {
	ENIs     bool           // also read /v1/enis from nodes that have a summary
	Progress func(Progress) // called after each node, never concurrently; nil = unused
}

// Sweep reads every node once. When ctx ends, the remaining nodes are listed as cancelled
// or timed out.
func (f *Fleet) Sweep(ctx context.Context, q Query) document.NodeIPAMList {
	items := make([]document.NodeIPAM, len(f.nodes))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex // guards progress
	progress := Progress{Total: len(items)}
	for range min(f.opts.Concurrency, len(items)) {
		workers.Go(func() {
			for i := range next {
				items[i] = f.read(ctx, f.nodes[i], q)
				if q.Progress == nil {
					continue
				}
				mu.Lock()
				progress.Done++
				if Failed(items[i]) {
					progress.Failed++
				} else {
					progress.OK++
				}
				q.Progress(progress)
				mu.Unlock()
			}
		})
	}
	for i := range items {
		next <- i
	}
	close(next)
	workers.Wait()
	return ListOf(items, f.opts.Now())
}

// Node reads one node by name; ok is false if no target has that name.
func (f *Fleet) Node(ctx context.Context, name string, q Query) (_ document.NodeIPAM, ok bool) {
	for _, n := range f.nodes {
		if n.target.Name == name {
			return f.read(ctx, n, q), true
		}
	}
	return document.NodeIPAM{}, false
}

// Config reads the settings of one node by name; ok is false if no target has that name.
func (f *Fleet) Config(ctx context.Context, name string) (_ introspect.NodeConfig, ok bool, _ error) {
	for _, n := range f.nodes {
		if n.target.Name == name {
			ctx, cancel := context.WithTimeout(ctx, f.opts.NodeTimeout)
			defer cancel()
			doc, err := Ask(ctx, n, func(ctx context.Context, c *client.Client) (introspect.NodeConfig, error) { return c.Config(ctx) })
			return doc, true, err
		}
	}
	return introspect.NodeConfig{}, false, nil
}

// read reads a node, or reports that no time was left for it.
func (f *Fleet) read(ctx context.Context, n *Reader, q Query) document.NodeIPAM {
	if ctx.Err() == nil || n.client == nil {
		out := n.Read(ctx, q)
		if n.target.Dial != nil {
			n.Close() // keeps no more tunnels open than nodes being read
		}
		return out
	}
	out := Unread(n.target)
	out.Error = &document.NodeError{Reason: introspect.ReasonCancelled, Message: "not read: cancelled"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.Error = &document.NodeError{Reason: introspect.ReasonTimeout, Message: "not read: timed out before its turn"}
	}
	if out.Object == nil {
		out.State = document.StateUnreachable
	}
	return out
}

// Failed reports that a node could not be read completely. A node that runs no daemon and
// needs none has not failed.
func Failed(n document.NodeIPAM) bool { return n.Error != nil && !Excused(n) }

// computeType is the label with which EKS marks nodes of special compute types; the
// aws-node DaemonSet avoids them.
const computeType = "eks.amazonaws.com/compute-type"

// Excused reports that a node runs no daemon and needs none: Windows, Fargate, EKS Auto
// Mode and hybrid nodes.
func Excused(n document.NodeIPAM) bool {
	switch {
	case n.State != document.StateNoDaemon:
		return false
	case n.Object == nil || n.Error == nil:
		return n.Error == nil
	case n.Object.OS == "windows":
		return true
	}
	switch n.Object.Labels[computeType] {
	case "fargate", "auto", "hybrid":
		return true
	}
	return false
}

// ListOf combines the results with the errors of the nodes that failed.
func ListOf(items []document.NodeIPAM, at time.Time) document.NodeIPAMList {
	list := document.NodeIPAMList{
		APIVersion: introspect.APIVersion, Kind: document.KindNodeList,
		Items: items, Errors: []document.NodeError{}, SampledAt: at.UTC(),
	}
	for _, n := range items {
		if Failed(n) {
			list.Partial = true
			e := *n.Error
			e.Node = n.Metadata.Name
			list.Errors = append(list.Errors, e)
		}
	}
	return list
}
