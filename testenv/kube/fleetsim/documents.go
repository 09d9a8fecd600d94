package fleetsim

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

// failed returns /v1/failures.
func (w *world) failed() introspect.NodeFailures {
	doc := introspect.NodeFailures{APIVersion: introspect.APIVersion, Kind: introspect.KindFailures, Items: []introspect.Failure{}}
	for _, f := range slices.Backward(w.failures) {
		f.At, f.Pod, f.Detail = f.At.UTC(), w.reported(f.Pod), w.node.garble(f.Detail)
		doc.Items = append(doc.Items, f)
	}
	return doc
}

// eventsAfter returns /v1/events: the events since a number, or the first that occur within
// the wait.
func (n *node) eventsAfter(r *http.Request) (introspect.NodeEvents, *introspect.Fault) {
	values := r.URL.Query()
	var since *uint64
	if text := values.Get("since"); text != "" {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return introspect.NodeEvents{}, badParameter("since is %.60q: want a number", text)
		}
		since = &v
	}
	patience := 0
	if text := values.Get("wait"); text != "" {
		v, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
		if err != nil || v < 0 || v > introspect.MaxEventWait {
			return introspect.NodeEvents{}, badParameter("wait is %.60q: want 0 to %d seconds", text, introspect.MaxEventWait)
		}
		patience = v
	}
	end := time.Now().Add(time.Duration(patience) * time.Second)
	for {
		var doc introspect.NodeEvents
		n.withWorld(func(w *world) { doc = w.eventsSince(since, values.Get("epoch")) })
		// Nothing announces the next event, so poll.
		if len(doc.Items) > 0 || !time.Now().Before(end) || !wait(r.Context(), 250*time.Millisecond) {
			return doc, nil
		}
	}
}

func (w *world) eventsSince(since *uint64, epoch string) introspect.NodeEvents {
	turns, _ := w.node.flap(w.Now)
	own := strconv.FormatInt(w.node.started.UnixNano()+int64(turns), 36)
	doc := introspect.NodeEvents{APIVersion: introspect.APIVersion, Kind: introspect.KindEvents, Epoch: own, Next: w.seq, Items: []introspect.Event{}}
	after, gap := uint64(0), ""
	if since != nil {
		after = *since
	}
	first := w.events[0].Seq
	switch {
	case epoch != "" && epoch != own, after > w.seq:
		after, gap = 0, introspect.GapRestart
	case since != nil && after+1 < first:
		gap = introspect.GapOverflow
	}
	if gap != "" {
		e := introspect.Event{Seq: first - 1, At: w.events[0].At.UTC(), Kind: introspect.EventGap, Reason: gap}
		if gap == introspect.GapOverflow {
			missed := first - 1 - after
			e.Missed = &missed
		}
		doc.Items = append(doc.Items, e)
	}
	for _, e := range w.events {
		if e.Seq <= after {
			continue
		}
		e.At, e.Message = e.At.UTC(), w.node.garble(e.Message)
		if e.Pod != nil {
			pod := w.reported(*e.Pod)
			e.Pod = &pod
		}
		doc.Items = append(doc.Items, e)
	}
	return doc
}

// podDocument returns /v1/pod. The kernel state is always as it should be.
func (n *node) podDocument(namespace, name string) (doc introspect.NodePod, found bool) {
	doc = introspect.NodePod{APIVersion: introspect.APIVersion, Kind: introspect.KindPod, Pod: introspect.PodRef{Namespace: namespace, Name: name}, Interfaces: []introspect.PodInterface{}}
	n.withWorld(func(w *world) {
		for a := range w.Book.Assignments() {
			if a.Pod.Namespace != namespace || w.node.garble(a.Pod.Name) != name {
				continue
			}
			found = true
			at := a.AssignedAt.UTC()
			link := "eni" + suffix(n.sim.hash(n.index, a.Sandbox.ContainerID), 11)
			subnet := ""
			for _, e := range w.Book.Snapshot().ENIs {
				if e.ID == a.ENI {
					subnet = e.SubnetID
				}
			}
			host := netip.PrefixFrom(a.Address, a.Address.BitLen())
			doc.Interfaces = append(doc.Interfaces, introspect.PodInterface{
				Address: a.Address, ENIID: string(a.ENI), Card: &a.Card, Device: &a.Device, SubnetID: subnet, RouteTable: &a.RouteTable, AssignedAt: &at, HostLink: link,
				Observed: &introspect.PodKernel{
					Link:       &introspect.PodLink{Name: link, Index: 7, Kind: "veth", MAC: "0e:00:00:00:00:07", MTU: 9001, Up: true, Running: true},
					Rules:      []introspect.PodRule{{Priority: 512, To: host, Table: 254}},
					Routes:     []introspect.PodRoute{{Table: 254, To: host, Link: link}},
					Tables:     []introspect.PodRoute{},
					Neighbours: []introspect.PodNeighbour{},
				},
				Differences: []string{},
			})
		}
	})
	return doc, found
}

// logs returns /v1/logs.
func (n *node) logs(values url.Values) introspect.NodeLogs {
	most := introspect.DefaultLogLines
	if v, err := strconv.Atoi(values.Get("lines")); err == nil && v > 0 {
		most = min(v, introspect.MaxLogLines)
	}
	doc := introspect.NodeLogs{APIVersion: introspect.APIVersion, Kind: introspect.KindLogs, Path: "/var/log/aws-routed-eni/ipamd.log", Lines: []string{}}
	since, _ := time.Parse(time.RFC3339Nano, values.Get("since")) // zero for all
	for _, line := range n.logLines() {
		level := values.Get("level")
		if line.at.Before(since) || (line.level == "info" && (level == "warn" || level == "error")) || (level == "error") || !strings.Contains(line.text, values.Get("match")) {
			continue
		}
		doc.Lines = append(doc.Lines, line.text)
	}
	if len(doc.Lines) > most {
		doc.Lines, doc.Truncated = doc.Lines[len(doc.Lines)-most:], true
	}
	return doc
}
