package node

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"cnictl/daemon/fleet"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Read reads all sources of the node at once. It returns when the last one has been read or given
// up, at the latest after twice the longest time of one source: the targets of probes are read
// before they are probed.
func Read(ctx context.Context, o Options) *evidence.Reading {
	c := newCollector(ctx, o)
	defer c.http.CloseIdleConnections()
	r := evidence.Unread(o.Now(), evidence.MissingNotAsked)
	var a answers
	a.ask(c)
	source(c, &r.Metrics, c.metrics)
	source(c, &r.Checkpoint, c.checkpoint)
	source(c, &r.LogIPAMD, c.log("log.ipamd"))
	source(c, &r.LogPlugin, c.log("log.plugin"))
	source(c, &r.LogAgent, c.log("log.np"))
	source(c, &r.LogKubelet, onHost(c, c.kubeletLog))
	source(c, &r.LogAWSNode, onHost(c, c.containerLogs))
	source(c, &r.Links, func(context.Context) ([]evidence.Link, error) { return ask(listLinks) })
	source(c, &r.Rules, func(context.Context) ([]evidence.Rule, error) { return ask(listRules) })
	source(c, &r.Routes, func(context.Context) ([]evidence.Route, error) { return ask(listRoutes) })
	source(c, &r.IPTables, c.iptables)
	source(c, &r.Sysctls, c.sysctls)
	source(c, &r.Conntrack, c.conntrack)
	var neighbours evidence.Source[[]neighbour]
	source(c, &neighbours, c.neighbours)
	source(c, &r.Packages, onHost(c, c.packages))
	source(c, &r.CNI, c.cni)
	source(c, &r.ContainerEnv, c.environments)
	source(c, &r.Kubelet, onHost(c, c.kubelet))
	source(c, &r.Resources, c.resources)
	source(c, &r.Listeners, c.listeners)
	source(c, &r.RunFiles, c.runFiles)
	source(c, &r.BPFPins, onHost(c, c.bpfPins))
	source(c, &r.IMDS, c.imds)
	c.all.Wait()
	source(c, &r.Probes, func(ctx context.Context) ([]evidence.Probe, error) {
		return c.probes(ctx, r.ContainerEnv.Content["aws-node"], r.IMDS.Content.Zone)
	})
	c.all.Wait()
	reading.Documents(r, a.byPath)
	if t := r.IMDS.Content.InstanceType; t != "" {
		r.InstanceType = evidence.Read(reading.InstanceType(t))
	}
	if env := r.ContainerEnv.Content["aws-node"]; env["AWS_VPC_K8S_CNI_LOG_FILE"] == "stdout" && r.LogAWSNode.OK() {
		r.LogIPAMD = evidence.Read(r.LogAWSNode.Content["aws-node"])
	}
	if o.First != nil {
		reading.ContinueLogs(o.First, r)
	}
	reading.Relate(r)
	r.Neighbours = named(neighbours, r.Links.Content)
	return r
}

// collector is one reading in progress.
type collector struct {
	Options
	ctx       context.Context
	http      *http.Client // without the environment's proxies
	contained bool         // this runs in the container aws-node: the host's directories are below /host
	all       sync.WaitGroup

	processes func() ([]process, error) // findProcesses, once
}

func newCollector(ctx context.Context, o Options) *collector {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	c := &collector{Options: o, ctx: ctx, http: &http.Client{Transport: &http.Transport{}}}
	c.contained = c.exists("/host/etc/cni/net.d")
	c.processes = sync.OnceValues(c.findProcesses)
	return c
}

// source reads one source concurrently. Its limit ends the wait even if reading cannot be
// interrupted, as in a file system that hangs.
func source[T any](c *collector, into *evidence.Source[T], read func(context.Context) (T, error)) {
	c.all.Go(func() {
		own := withProgress(c.ctx)
		ctx, cancel := within(own, c.Timeout)
		defer cancel()
		done := make(chan evidence.Source[T], 1)
		go func() {
			content, err := fleet.Recover(func() (T, error) { return read(ctx) })
			if err != nil {
				done <- evidence.Lacking[T](reason(err))
				return
			}
			done <- evidence.Read(content)
		}()
		if !received(ctx, done, into) {
			// What can be interrupted says what was slow.
			last, cancel := within(own, c.Timeout)
			defer cancel()
			if !received(last, done, into) {
				*into = evidence.Lacking[T](reason(ctx.Err()))
			}
		}
	})
}

// received waits for a source until ctx ends, and reports whether it came.
func received[T any](ctx context.Context, from <-chan evidence.Source[T], into *evidence.Source[T]) bool {
	select {
	case *into = <-from:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxReason bounds the text of an unusual reason.
const maxReason = 300

// reason returns why a source is missing, in the standard words if they fit.
func reason(err error) string {
	var network net.Error
	var slow *slowError
	switch {
	case errors.As(err, &slow) && errors.Is(err, context.DeadlineExceeded):
		return evidence.MissingTimeout + ": " + clean(slow.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return evidence.MissingTimeout
	case errors.Is(err, fs.ErrNotExist):
		return evidence.MissingAbsent
	case errors.Is(err, fs.ErrPermission):
		return evidence.MissingForbidden
	case errors.Is(err, unix.ECONNREFUSED):
		return evidence.MissingRefused
	}
	text := clean(strings.Join(strings.Fields(err.Error()), " "))
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// errContainer means that a file of the host is not visible.
var errContainer = errors.New("not visible in the container aws-node")

// errNotLive means that a program of the host is not asked.
var errNotLive = errors.New("only the host that this runs on can be asked")

// live reports whether the programs of the host can be asked.
func (c *collector) live() bool { return !c.contained && path.Join("/", c.Root) == "/" }

// onHost reads what a container cannot see.
func onHost[T any](c *collector, read func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		if c.contained {
			var none T
			return none, errContainer
		}
		return read(ctx)
	}
}
