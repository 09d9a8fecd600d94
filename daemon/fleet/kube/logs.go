package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/tunnel"
	"cnictl/daemon/fleet/watch"
)

// LogOptions select lines of a container's log.
type LogOptions struct {
	Container string        // "" = DefaultContainer
	Follow    bool          // until ctx ends
	Previous  bool          // of the previous run
	Since     time.Duration // 0 = all
	Tail      int           // lines; 0 = all
}

// DaemonLogs reads the log of a container of a daemon pod, line by line with timestamps. The
// caller closes it and limits how much it reads.
func (c *Cluster) DaemonLogs(ctx context.Context, pod tunnel.Pod, o LogOptions) (io.ReadCloser, error) {
	q := url.Values{"container": {orElse(o.Container, DefaultContainer)}, "timestamps": {"true"}}
	if o.Follow {
		q.Set("follow", "true")
	}
	if o.Previous {
		q.Set("previous", "true")
	}
	if o.Since > 0 {
		q.Set("sinceSeconds", strconv.Itoa(max(int(o.Since.Seconds()), 1)))
	}
	if o.Tail > 0 {
		q.Set("tailLines", strconv.Itoa(o.Tail))
	}
	r := tunnel.Request{Verb: "get", Resource: "pods/log", Namespace: pod.Namespace, Name: pod.Name}
	return c.api.open(ctx, http.MethodGet, r, KindPods.Path(pod.Namespace, pod.Name, "log"), q, nil)
}

// maxRead is how many bytes of a container's log are read to find its newest lines: the API
// server counts only lines, whatever their length.
const maxRead = 4 << 20

// ContainerLog reads the newest lines of the daemon container's log.
func (c *Cluster) ContainerLog(ctx context.Context, daemon document.DaemonPod, q watch.ContainerLogQuery) (watch.ContainerLog, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out := watch.ContainerLog{Namespace: daemon.Namespace, Pod: daemon.Name, Container: DefaultContainer}
	lines := q.Lines
	if lines <= 0 {
		lines = introspect.DefaultLogLines
	}
	lines = min(lines, watch.MaxContainerLines)
	o := LogOptions{Previous: q.Previous, Tail: lines}
	if !q.Since.IsZero() {
		o.Since = max(c.cfg.Now().Sub(q.Since), time.Second)
	}
	stream, err := c.DaemonLogs(ctx, tunnel.Pod{Namespace: daemon.Namespace, Name: daemon.Name}, o)
	if err != nil {
		return out, err
	}
	defer stream.Close()
	if out.Lines, out.Truncated, err = newestLines(stream, lines, watch.MaxContainerBytes); err != nil {
		return out, tunnel.Failed(ctx, err)
	}
	return out, nil
}

// newestLines keeps the last lines of a text, at most that many lines and size bytes; truncated
// reports that there were more. Of a line longer than size it keeps the beginning.
func newestLines(text io.Reader, lines, size int) (out []watch.ContainerLine, truncated bool, _ error) {
	limited := &io.LimitedReader{R: text, N: maxRead}
	r := bufio.NewReaderSize(limited, 64<<10)
	out, held := []watch.ContainerLine{}, 0
	for {
		line, cut, err := readLine(r, size)
		if len(line) > 0 || err == nil {
			one := containerLine(line)
			out, held = append(out, one), held+len(one.Text)
			truncated = truncated || cut
		}
		for len(out) > lines || held > size && len(out) > 1 {
			held -= len(out[0].Text)
			out, truncated = out[1:], true
		}
		switch {
		case errors.Is(err, io.EOF):
			return out, truncated || limited.N == 0 || len(out) == lines, nil
		case err != nil:
			return out, truncated, err
		}
	}
}

// readLine reads a line without its line ending, and only the first size bytes of a long one.
func readLine(r *bufio.Reader, size int) (line []byte, cut bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		keep := min(len(part), size-len(line))
		line, cut = append(line, part[:keep]...), cut || keep < len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), cut, err
		}
	}
}

// containerLine splits off the timestamp that Kubernetes writes before each line.
func containerLine(line []byte) watch.ContainerLine {
	stamp, text, ok := strings.Cut(string(line), " ")
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil && ok {
		return watch.ContainerLine{At: at.UTC(), Text: text}
	}
	return watch.ContainerLine{Text: string(line)}
}
