package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/cmd/cni-metrics-helper/internal/scrape"
	"cnictl/daemon/api/logline"
)

// poller reads all nodes at every interval.
type poller struct {
	Deps
	cluster aggregate.Cluster
	first   int    // index in the list at which the next poll starts
	trouble string // what was logged about the last poll
}

func newPoller(d Deps) *poller { return &poller{Deps: d} }

// run polls until ctx ends, first after one interval: ipamd pods that start together with the
// helper are up by then. After every second poll it signals due.
func (p *poller) run(ctx context.Context, due chan<- struct{}) {
	ticks := time.NewTicker(p.Interval)
	defer ticks.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		p.poll(ctx)
		if n%sendEvery == 0 {
			select {
			case due <- struct{}{}:
			default: // the sender is still busy
			}
		}
	}
}

func (p *poller) poll(ctx context.Context) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, max(p.Interval, minPollTimeout))
	defer cancel()
	pods, err := p.Nodes.Pods(limited)
	if err != nil {
		if ctx.Err() == nil {
			p.Exposition.Failed()
			p.complain(ctx, noList, err.Error())
		}
		return
	}
	p.turn(pods)
	readings, skipped := p.Nodes.Read(limited, pods)
	if ctx.Err() != nil {
		return // the sums of an interrupted poll would be too low
	}
	uids := make([]string, len(pods))
	for i, pod := range pods {
		uids[i] = pod.UID
	}
	figures := p.cluster.Poll(uids, readings)
	p.Exposition.Polled(figures, len(readings), began)
	if p.Queue != nil {
		p.Queue.Add(data(figures, began)...)
	}
	p.account(ctx, pods, skipped)
	p.Log.DebugContext(ctx, "Polled the nodes", logline.KeyTotal, len(pods), logline.KeyCount, len(readings), logline.KeyDuration, time.Since(began).Round(time.Millisecond))
}

// turn rotates the list so that each poll starts with another pod: a poll that runs out of
// time then does not always skip the same ones.
func (p *poller) turn(pods []scrape.Pod) {
	if len(pods) == 0 {
		return
	}
	p.first %= len(pods)
	slices.Reverse(pods[:p.first])
	slices.Reverse(pods[p.first:])
	slices.Reverse(pods)
}

// account counts the skipped pods, and logs them when the counts change.
func (p *poller) account(ctx context.Context, pods []scrape.Pod, skipped []scrape.Skip) {
	reached := len(pods)
	counts := map[scrape.Reason]int{}
	examples := map[scrape.Reason]scrape.Skip{}
	for _, s := range skipped {
		p.Exposition.Skipped(string(s.Reason))
		if s.Reason == scrape.NotReached {
			reached--
		}
		counts[s.Reason]++
		if e, ok := examples[s.Reason]; !ok || s.Pod < e.Pod {
			examples[s.Reason] = s
		}
		p.Log.DebugContext(ctx, "Skipped a pod", logline.KeyPod, s.Pod, logline.KeyReason, s.Reason, logline.KeyError, s.Err)
	}
	p.first += reached
	var what, detail []string
	for _, r := range scrape.Reasons() {
		if n := counts[r]; n > 0 {
			what = append(what, fmt.Sprintf("%s: %d", r, n))
			detail = append(detail, fmt.Sprintf("%d %s, such as %s: %v", n, r, examples[r].Pod, examples[r].Err))
		}
	}
	p.complain(ctx, strings.Join(what, ", "), strings.Join(detail, "; "))
}

// complain logs when trouble begins, changes or ends, not at every (short) interval.
func (p *poller) complain(ctx context.Context, trouble, detail string) {
	before := p.trouble
	p.trouble = trouble
	switch {
	case trouble == before:
	case trouble == "":
		p.Log.InfoContext(ctx, "All pods can be read again")
	case trouble == noList:
		p.Log.ErrorContext(ctx, "Unable to list the aws-node pods; nothing is published until that works", logline.KeyError, detail)
	default:
		p.Log.WarnContext(ctx, "Some pods were skipped; the figures cover the others", logline.KeyReason, trouble, logline.KeyDetail, detail)
	}
}

// noList is the trouble of a poll that could not list the pods.
const noList = "no list"
