package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/collect"
	"cnictl/doctor/collect/ec2"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/bundle"
)

// registerLive adds the flags for examining a cluster.
func (o *Options) registerLive(cmd *cobra.Command) {
	o.register(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&o.Once, "once", false, "read once only: what needs two readings stays undecided")
	fs.BoolVarP(&o.Watch, "watch", "w", false, "examine again every --interval (15s), each reading compared with the one before")
	fs.BoolVar(&o.AWS, "aws", false, "also read EC2, with the AWS credentials of this shell; only Describe and Get actions are called")
}

// registerFiles adds the flags that name files to examine instead of nodes.
func (o *Options) registerFiles(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.Evidence, "evidence", "", "examine the situation in this file (- is standard input) instead of nodes")
	fs.StringVar(&o.Bundle, "bundle", "", "examine this archive of cnictl bundle or eks-log-collector instead of nodes")
	_ = cmd.MarkFlagFilename("evidence", "yaml", "yml", "json") // fails only for unknown flags
	_ = cmd.MarkFlagFilename("bundle", "tar.gz", "tgz", "tar")
}

// gather reads what to examine: a file, an archive, or nodes.
func (o *Options) gather(ctx context.Context, f *cli.Factory, names []string, pod evidence.Pod) (*evidence.Evidence, error) {
	if (o.Evidence != "" || o.Bundle != "") && (len(names) > 0 || pod != "") {
		return nil, cli.Usage("a file is examined as a whole: leave out %v", append(names, string(pod))[0])
	}
	switch {
	case o.Evidence != "":
		return o.load(f)
	case o.Bundle != "":
		return o.unpack(f)
	}
	return Collect(ctx, f, Nodes{Names: names, Pod: pod, Once: o.Once, AWS: o.AWS, Installation: o.move, Full: o.move}, nil)
}

// unpack reads the archive.
func (o *Options) unpack(f *cli.Factory) (*evidence.Evidence, error) {
	in, err := open(o.Bundle)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	ev, notes, err := bundle.Read(in, filepath.Base(o.Bundle))
	var refusal *bundle.Refusal
	if errors.As(err, &refusal) {
		return nil, &cli.Error{Code: cli.ExitUsage, What: o.Bundle + " cannot be examined", Why: refusal.Why,
			Do: f.Name + " bundle -f FILE makes such an archive"}
	}
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: o.Bundle + " cannot be read", Why: err.Error()}
	}
	for _, note := range notes {
		f.Note(note)
	}
	return ev, nil
}

// Nodes selects what is read.
type Nodes struct {
	Names []string     // full names; none: all nodes, in full where they look faulty
	Pod   evidence.Pod // read its node; empty: no particular pod
	Once  bool         // take a single reading
	AWS   bool         // query EC2 too

	Installation bool // also how aws-node was installed
	Full         bool // read every node in full

	SoFar func(*evidence.Evidence) // as in collect.Options
}

// Collect reads nodes. On a node without a cluster it reads that node's files and state. If
// progress is nil, it shows progress on standard error.
func Collect(ctx context.Context, f *cli.Factory, n Nodes, progress func(done, total int, what string)) (*evidence.Evidence, error) {
	w, err := access.Find(ctx, f, n.Names)
	if err != nil {
		return nil, err
	}
	if w.IsLocal() && n.Pod == "" {
		return readings(ctx, f, n.Once, interval(f))
	}
	targets, err := w.Targets(ctx)
	if err != nil {
		return nil, err
	}
	if f.Recording != nil {
		return recorded(ctx, f, n, targets)
	}
	o := collect.Options{
		Cluster: w.Cluster, Targets: targets, Named: len(n.Names) > 0 || len(f.Globals.Nodes) > 0, Pod: n.Pod, Once: n.Once,
		Interval:     interval(f),
		Installation: n.Installation, Full: n.Full, Exec: f.Globals.Via == document.ViaExec, NodeTimeout: f.Globals.NodeTimeout,
		Timeout: max(sourceTimeout(f), collect.DefaultTimeout), Concurrency: f.Globals.Concurrency, UserAgent: f.UserAgent(), Now: f.Now,
		Progress: progress, SoFar: n.SoFar,
	}
	aws := func() uint64 { return 0 }
	if n.AWS {
		reader, err := ec2.New(ctx, ec2.Options{UserAgent: f.UserAgent()})
		if err != nil {
			return nil, &cli.Error{Code: cli.ExitUsage, What: "EC2 cannot be read", Why: err.Error(), Do: "aws sts get-caller-identity"}
		}
		o.AWS, o.Access, aws = reader.Read, reader.Installation, reader.Requests
		o.Region, o.Warn = reader.ResolveRegion(""), func(text string) { f.Warn("%s", text) }
	}
	if progress == nil {
		var erase func()
		o.Progress, erase = showProgress(f)
		defer erase()
	}
	ev, err := collect.Collect(ctx, o)
	if w.Cluster != nil && f.Globals.Verbosity > 0 {
		f.Note(fmt.Sprintf("%d requests to the API server, %d to AWS", w.Cluster.Requests(), aws()))
	}
	var failure *kube.Error
	switch {
	case n.Pod != "" && errors.As(err, &failure) && failure.Reason == introspect.ReasonNotFound:
		namespace, _, _ := strings.Cut(string(n.Pod), "/")
		return nil, &cli.Error{Code: cli.ExitNotFound, What: fmt.Sprintf("pod %s not found", n.Pod), Do: "kubectl get pods -n " + namespace}
	case err != nil:
		return nil, access.ClusterError(f, "read the evidence", err)
	}
	return ev, nil
}

// recorded turns a recording's data about nodes into evidence.
func recorded(ctx context.Context, f *cli.Factory, n Nodes, targets []fleet.Target) (*evidence.Evidence, error) {
	scope := evidence.Scope{Pod: n.Pod}
	var names []string // nil: all
	switch {
	case n.Pod != "":
		var err error
		if names, err = recordedNode(ctx, f.Recording, n.Pod); err != nil {
			return nil, err
		}
	case len(n.Names) > 0 || len(f.Globals.Nodes) > 0:
		names = []string{}
		for _, t := range targets {
			names = append(names, t.Name)
		}
	}
	if scope.Cluster = n.Pod == "" && len(names) != 1; !scope.Cluster && n.Pod == "" {
		scope.Node = names[0]
	}
	return watched.Evidence(ctx, f.Recording, scope, names, func(int, int, string) {}, nil)
}

// recordedNode returns the node that a pod is on; nil if pods were not recorded, so that it
// may be any.
func recordedNode(ctx context.Context, p *record.Player, pod evidence.Pod) ([]string, error) {
	var q watch.PodQuery
	q.Namespace, q.Name, _ = strings.Cut(string(pod), "/")
	pods := p.Detail(ctx, "", watch.WantClusterPods, watch.Query{Find: q}).ClusterPods
	if pods == nil {
		return nil, nil
	}
	for _, found := range pods.Pods {
		if found.Name == q.Name && found.Node != "" {
			return []string{found.Node}, nil
		}
	}
	return nil, &cli.Error{Code: cli.ExitNotFound, What: fmt.Sprintf("pod %s not found", pod),
		Why: "the recording does not have it on a node at this time"}
}

// showProgress shows the progress of a long examination on a terminal.
func showProgress(f *cli.Factory) (show func(done, total int, what string), erase func()) {
	if !f.Streams.ErrTTY {
		return nil, func() {}
	}
	p := cli.NewProgress(f.Streams, f.Now)
	return func(done, total int, what string) {
		p.Say(func() string {
			if total > 0 {
				return fmt.Sprintf("%s %d/%d  %.0fs", what, done, total, p.Took().Seconds())
			}
			return what
		})
	}, p.Erase
}
