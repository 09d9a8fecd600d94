package collect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// swept sets what the sweep read of a node. The node's other documents were not requested.
func swept(r *evidence.Reading, n document.NodeIPAM) {
	answers := map[string]reading.Answer{}
	for _, path := range introspect.DocumentPaths {
		switch {
		case n.Error != nil && n.ENIs == nil:
			answers[path] = reading.Answer{Missing: kube.Missing(&client.Error{Reason: n.Error.Reason, Err: errors.New(n.Error.Message)})}
		case n.Source == document.SourceV1 && !upstreamHas(path):
			answers[path] = reading.Answer{Missing: evidence.MissingAbsent}
		}
	}
	reading.Documents(r, answers)
	r.Metrics = evidence.Lacking[evidence.Metrics](evidence.MissingNotAsked)
	r.LogAWSNode = evidence.Lacking[map[string]evidence.Log](evidence.MissingNotAsked)
	if n.ENIs != nil {
		r.ENIs = evidence.Read(reading.Datastore(n.ENIs))
	}
	if n.Source == document.SourceSummary {
		r.Summary = evidence.Read(*n.Summary)
	}
	switch {
	case r.InstanceType.OK():
	case n.Summary != nil && n.Summary.InstanceType != "":
		r.InstanceType = evidence.Read(reading.InstanceType(n.Summary.InstanceType))
	case n.Object != nil && n.Object.InstanceType != "":
		r.InstanceType = evidence.Read(reading.InstanceType(n.Object.InstanceType))
	}
}

// deep reads everything that one node can report.
type deep struct {
	cluster *kube.Cluster // if nil, no logs and no exec
	timeout time.Duration // of one source
	exec    bool
	pod     introspect.PodRef // that was asked about
	now     func() time.Time
}

// read fills the sources of a node's daemon. c is nil if the daemon cannot be asked.
func (d *deep) read(ctx context.Context, r *evidence.Reading, t fleet.Target, c *client.Client) {
	r.At = d.now().UTC()
	reading.Documents(r, d.documents(ctx, t, c))
	if r.Summary.OK() {
		r.LogIPAMD = d.daemonLog(ctx, c)
	}
	r.Metrics = d.metrics(ctx, t)
	pod, ok := kube.Daemon(t.Object)
	if d.cluster == nil || !ok {
		return
	}
	r.LogAWSNode = d.containerLogs(ctx, pod, r)
	if set := r.DaemonSet.Content; set != nil && set.Env[evidence.ContainerNode]["AWS_VPC_K8S_CNI_LOG_FILE"] == "stdout" && r.LogAWSNode.OK() {
		r.LogIPAMD = evidence.Read(r.LogAWSNode.Content[evidence.ContainerNode])
	}
	if d.exec {
		d.onNode(ctx, r, pod)
	}
}

// bounded runs a read within the time limit of one source.
func bounded[T any](ctx context.Context, timeout time.Duration, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return read(ctx)
}

// documents requests each document. A daemon that is unreachable, or takes too long, is not asked
// for the others.
func (d *deep) documents(ctx context.Context, t fleet.Target, c *client.Client) map[string]reading.Answer {
	paths := introspect.DocumentPaths
	if d.pod.Name != "" {
		q := url.Values{"namespace": {d.pod.Namespace}, "name": {d.pod.Name}}
		paths = append(paths[:len(paths):len(paths)], introspect.PathPod+"?"+q.Encode())
	}
	out := map[string]reading.Answer{}
	gone, upstream := absence(t), false
	for _, path := range paths {
		switch {
		case gone != "":
			out[path] = reading.Answer{Missing: gone}
			continue
		case upstream && !upstreamHas(path):
			out[path] = reading.Answer{Missing: evidence.MissingAbsent}
			continue
		}
		a, err := bounded(ctx, d.timeout, func(ctx context.Context) (client.Raw, error) { return c.Raw(ctx, path) })
		if err != nil {
			gone = kube.Missing(err)
			out[path] = reading.Answer{Missing: gone}
			continue
		}
		out[path] = reading.Answer{Status: a.Status, Body: a.Body}
		upstream = upstream || path == introspect.PathSummary && introspect.PathsOf(a.Body) != nil
	}
	return out
}

// upstreamHas reports whether upstream's daemon knows a path. It would log requests for others.
func upstreamHas(path string) bool {
	return slices.Contains(introspect.UpstreamPaths, path)
}

func (d *deep) metrics(ctx context.Context, t fleet.Target) evidence.Source[evidence.Metrics] {
	if t.Metrics == nil {
		return evidence.Lacking[evidence.Metrics](cmp.Or(absence(t), "the daemon's metrics cannot be reached from here"))
	}
	text, err := bounded(ctx, d.timeout, t.Metrics)
	if err != nil {
		return evidence.Lacking[evidence.Metrics](kube.Missing(err))
	}
	return reading.Source(reading.Metrics(text))
}

// absence returns why a target is not asked, empty if it can be.
func absence(t fleet.Target) string {
	if t.Absent == nil {
		return ""
	}
	return kube.Missing(&client.Error{Reason: t.Absent.Reason, Err: errors.New(t.Absent.Message)})
}

// daemonLog reads the log that our daemon serves.
func (d *deep) daemonLog(ctx context.Context, c *client.Client) evidence.Source[evidence.Log] {
	doc, err := bounded(ctx, d.timeout, func(ctx context.Context) (introspect.NodeLogs, error) {
		return c.Logs(ctx, introspect.LogQuery{Lines: introspect.MaxLogLines})
	})
	if err != nil {
		return evidence.Lacking[evidence.Log](kube.Missing(err))
	}
	return reading.LogOfLines(doc.Lines, doc.Truncated, d.now())
}

// Limits of a container's log.
const (
	logLines = 3000
	logBytes = 4 << 20
)

// containerLogs reads the logs of the daemon's pod, including the previous run if one ended.
func (d *deep) containerLogs(ctx context.Context, pod tunnel.Pod, r *evidence.Reading) evidence.Source[map[string]evidence.Log] {
	out := map[string]evidence.Log{}
	containers := []evidence.DaemonContainer{{Name: evidence.ContainerNode}} // if pods cannot be listed
	for _, p := range r.DaemonPods.Content {
		if p.Pod == evidence.Pod(pod.Namespace+"/"+pod.Name) {
			containers = p.Containers
		}
	}
	var failed error
	for _, c := range containers {
		log, err := d.containerLog(ctx, pod, kube.LogOptions{Container: c.Name, Tail: logLines})
		if err != nil {
			failed = err
			continue
		}
		if c.Restarts != nil && *c.Restarts > 0 {
			if before, err := d.containerLog(ctx, pod, kube.LogOptions{Container: c.Name, Tail: logLines, Previous: true}); err == nil {
				log.Previous = &before
			}
		}
		out[c.Name] = log
	}
	if len(out) == 0 && failed != nil {
		return evidence.Lacking[map[string]evidence.Log](kube.Missing(failed))
	}
	return evidence.Read(out)
}

func (d *deep) containerLog(ctx context.Context, pod tunnel.Pod, o kube.LogOptions) (evidence.Log, error) {
	return bounded(ctx, d.timeout, func(ctx context.Context) (evidence.Log, error) {
		stream, err := d.cluster.DaemonLogs(ctx, pod, o)
		if err != nil {
			return evidence.Log{}, err
		}
		defer stream.Close()
		limited := &io.LimitedReader{R: stream, N: logBytes}
		log, err := reading.ReadLog(limited, d.now())
		if err != nil {
			return evidence.Log{}, tunnel.Failed(ctx, err)
		}
		log.Truncated = log.Truncated || limited.N == 0
		return log, nil
	})
}

// onNodeWithin bounds what is read on the node, which runs many programs there.
const onNodeWithin = 30 * time.Second

// program reads what only a node can see of itself, and prints it as an evidence file.
var program = []string{"cnictl", "local", "doctor", "--once", "--save-evidence", "-"}

// onNode adds what our image's own program reads in the daemon's container. Its output is only
// the node's word: it is bounded, and it fills only sources that were missing and that are of a
// node.
func (d *deep) onNode(ctx context.Context, r *evidence.Reading, pod tunnel.Pod) {
	if r.ENIs.OK() && !r.Summary.OK() {
		lackOnNode(r, "upstream's image has no cnictl")
		return
	}
	found, err := bounded(ctx, onNodeWithin, func(ctx context.Context) (*evidence.Reading, error) {
		conn, err := d.cluster.Tunnels().Exec(ctx, pod, evidence.ContainerNode, program)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		var out bytes.Buffer
		if _, err := io.Copy(&out, io.LimitReader(conn, file.MaxBytes+1)); err != nil {
			return nil, tunnel.Failed(ctx, err)
		}
		ev, err := file.Load(out.Bytes())
		if err != nil {
			return nil, fmt.Errorf("what the node printed is not evidence: %w", err)
		}
		return ev.Nodes[0].Last(), nil
	})
	if err != nil {
		lackOnNode(r, "exec: "+kube.Missing(err))
		return
	}
	merge(r, found)
	reading.Relate(r)
}

// lackOnNode sets the reason why the node's own sources are missing.
func lackOnNode(r *evidence.Reading, reason string) {
	merge(r, evidence.Unread(r.At, reason))
}

// ofNode are the families of sources that a node itself may fill. In all others it has no say.
var ofNode = []string{"log", "kern", "host", "ckpt", "imds", "probe", "metrics"}

// merge fills missing sources with what the node says.
func merge(r, from *evidence.Reading) {
	r.Fill(from, func(id string) bool {
		family, _, _ := strings.Cut(id, ".")
		return slices.Contains(ofNode, family)
	})
}
