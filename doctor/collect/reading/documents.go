package reading

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/api/promtext"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
)

// Answer is a daemon's response to the request for a document.
type Answer struct {
	Status  int // HTTP; 0 if unknown, as in an archive
	Body    []byte
	Missing string // why there is no answer
}

// Missing returns why a source of a node could not be read, in the standard words if they fit.
func Missing(e *document.NodeError) string {
	switch e.Reason {
	case introspect.ReasonForbidden:
		return evidence.MissingForbidden
	case introspect.ReasonRefused:
		return evidence.MissingRefused
	case introspect.ReasonTimeout, introspect.ReasonCancelled:
		return evidence.MissingTimeout
	case introspect.ReasonOff:
		return evidence.MissingDisabled
	case introspect.ReasonPodNotRunning:
		return "the daemon's pod is not running" // without its name: nodes are grouped by reason
	case introspect.ReasonNoPod, introspect.ReasonNoSocket, introspect.ReasonNotFound, introspect.ReasonNoEndpoint, introspect.ReasonNotServed:
		return evidence.MissingAbsent
	}
	return e.Message
}

// Documents fills the intro.* sources from the answers to introspect.Path…; those to
// introspect.PathPod have a query each. A path without an answer was not requested.
func Documents(r *evidence.Reading, answers map[string]Answer) {
	asked := func(path string) Answer {
		a, ok := answers[path]
		if !ok {
			a.Missing = evidence.MissingNotAsked
		}
		return a
	}
	enis := asked(introspect.PathENIs)
	if err := enis.check(); err != nil {
		r.ENIs, r.Counters = Source[[]evidence.ENI](nil, err), Source[map[string]evidence.Counters](nil, err)
	} else {
		list, counters, err := ENIs(enis.Body)
		r.ENIs, r.Counters = Source(list, err), Source(counters, err)
	}
	var env evidence.Env
	err := asked(introspect.PathIPAMEnv).into(&env.IPAMD)
	if err == nil {
		err = asked(introspect.PathNetworkEnv).into(&env.NetworkUtils)
	}
	r.Env = Source(env, err)
	r.ENIConfig = Source(asked(introspect.PathENIConfigs).eniConfig())

	r.Summary = ours(asked(introspect.PathSummary), introspect.KindSummary,
		func(d *introspect.Summary) (string, error) { return d.Kind, d.Check() })
	r.Config = ours(asked(introspect.PathConfig), introspect.KindConfig, func(d *introspect.NodeConfig) (string, error) { return d.Kind, nil })
	r.Plan = ours(asked(introspect.PathPlan), introspect.KindPlan, func(d *introspect.NodePlan) (string, error) { return d.Kind, nil })
	r.Failures = ours(asked(introspect.PathFailures), introspect.KindFailures,
		func(d *introspect.NodeFailures) (string, error) { return d.Kind, nil })
	r.Journal = ours(asked(introspect.PathEvents), introspect.KindEvents,
		func(d *introspect.NodeEvents) (string, error) { return d.Kind, nil })
	r.PodViews = podViews(answers)
}

// podViews returns the documents of pods. A pod that the daemon does not know has none.
func podViews(answers map[string]Answer) evidence.Source[[]introspect.NodePod] {
	views, asked, reason := []introspect.NodePod{}, 0, evidence.MissingNotAsked
	for _, path := range slices.Sorted(maps.Keys(answers)) {
		if p, _, _ := strings.Cut(path, "?"); p != introspect.PathPod {
			continue
		}
		asked++
		if answers[path].Status == 404 {
			continue
		}
		view := ours(answers[path], introspect.KindPod, func(d *introspect.NodePod) (string, error) { return d.Kind, nil })
		if !view.OK() {
			asked, reason = asked-1, view.Missing
			continue
		}
		views = append(views, view.Content)
	}
	if asked == 0 {
		return evidence.Lacking[[]introspect.NodePod](reason)
	}
	return evidence.Read(views)
}

// reason is an error whose text is one of evidence.Missing….
type reason string

func (r reason) Error() string { return string(r) }

// Source returns a source that was read, or the reason why it was not.
func Source[T any](content T, err error) evidence.Source[T] {
	var known reason
	switch {
	case err == nil:
		return evidence.Read(content)
	case errors.As(err, &known):
		return evidence.Lacking[T](string(known))
	case errors.Is(err, introspect.ErrCommands):
		return evidence.Lacking[T](evidence.MissingAbsent)
	}
	return evidence.Lacking[T](err.Error())
}

// ours reads a document that only our daemon has.
func ours[T any](a Answer, kind string, check func(*T) (string, error)) evidence.Source[T] {
	var doc T
	err := a.into(&doc)
	if err == nil {
		var got string
		if got, err = check(&doc); got != kind {
			err = fmt.Errorf("the document is a %.40q, expected a %s", got, kind)
		}
	}
	return Source(doc, err)
}

// check rejects an answer without a document.
func (a Answer) check() error {
	switch {
	case a.Missing != "":
		return reason(a.Missing)
	case len(a.Body) > introspect.MaxBody:
		return introspect.ErrTooLarge
	case introspect.PathsOf(a.Body) != nil, a.Status == 404:
		return reason(evidence.MissingAbsent)
	case a.Status == 403:
		return reason(evidence.MissingForbidden)
	case a.Status != 0 && a.Status != 200:
		return fmt.Errorf("the daemon answered with HTTP status %d: %.100q", a.Status, a.Body)
	}
	return nil
}

// into reads a JSON object.
func (a Answer) into(out any) error {
	if err := a.check(); err != nil {
		return err
	}
	if body := bytes.TrimSpace(a.Body); len(body) == 0 || body[0] != '{' {
		return fmt.Errorf("the document is not a JSON object: %.40q", body)
	}
	if err := introspect.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	return nil
}

// eniConfig returns the name of the node's ENIConfig, nil if the daemon cannot read the node. An
// archive has only the text of that answer.
func (a Answer) eniConfig() (*string, error) {
	if a.Missing == "" && (a.Status == 404 || a.Status == 0 && bytes.EqualFold(bytes.TrimSpace(a.Body), []byte("not found"))) {
		return nil, nil
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	var name *string
	if err := json.Unmarshal(a.Body, &name); err != nil {
		return nil, fmt.Errorf("read the name of the ENIConfig: %w", err)
	}
	if name == nil {
		return nil, errors.New("read the name of the ENIConfig: null")
	}
	return name, nil
}

// ENIs reads a /v1/enis document of any release: the interfaces, and the counters of each network
// card.
func ENIs(body []byte) ([]evidence.ENI, map[string]evidence.Counters, error) {
	pool, err := introspect.Decode(body)
	if err != nil {
		return nil, nil, err
	}
	counters := map[string]evidence.Counters{}
	for _, c := range pool.Cards {
		counters[strconv.Itoa(c.Card)] = evidence.Counters{}
	}
	for _, e := range pool.ENIs {
		card := strconv.Itoa(e.Card)
		c := counters[card]
		c.TotalIPs, c.AssignedIPs = c.TotalIPs+e.Total, c.AssignedIPs+e.Assigned
		counters[card] = c
	}
	for _, m := range pool.Mismatches {
		card := strconv.Itoa(m.Card)
		c := counters[card]
		if m.Member == "TotalIPs" {
			c.TotalIPs = m.Reported
		} else {
			c.AssignedIPs = m.Reported
		}
		counters[card] = c
	}
	return Datastore(pool.ENIs), counters, nil
}

// Datastore converts interfaces that were decoded before.
func Datastore(enis []introspect.NodeENI) []evidence.ENI {
	out := []evidence.ENI{}
	for _, e := range enis {
		out = append(out, eni(e))
	}
	return out
}

func eni(e introspect.NodeENI) evidence.ENI {
	out := evidence.ENI{
		ID: e.ID, Card: e.Card, Device: e.Device, Primary: e.Primary, Trunk: e.Trunk, EFA: e.EFA, Excluded: e.Excluded,
		Subnet: e.SubnetID, RouteTable: e.RouteTable, IPs: []evidence.Address{}, Prefixes: []evidence.Prefix{},
	}
	for _, c := range e.CIDRs {
		records := []evidence.Address{}
		for _, a := range c.Addresses {
			records = append(records, address(a))
		}
		switch {
		case c.IsPrefix():
			out.Prefixes = append(out.Prefixes, evidence.Prefix{CIDR: c.CIDR, IPs: records})
		case len(records) > 0:
			out.IPs = append(out.IPs, records...)
		default:
			out.IPs = append(out.IPs, evidence.Address{Address: c.CIDR.Addr()})
		}
	}
	return out
}

// address converts a record. An assigned one has a pod, whose name is empty up to v1.10.
func address(a introspect.NodeAddress) evidence.Address {
	out := evidence.Address{Address: a.Address}
	if a.State == introspect.AddressAssigned {
		out.Pod = new(evidence.PodOf(a.PodNamespace, a.PodName))
	}
	out.AssignedAt, out.UnassignedAt = evidence.Moment(a.AssignedAt), evidence.Moment(a.UnassignedAt)
	return out
}

// maxMetrics bounds the text of metrics, maxSamples the series kept from it.
const (
	maxMetrics = 8 << 20
	maxSamples = 20_000
)

// Metrics reads a text of metrics, without values that are not numbers.
func Metrics(text []byte) (evidence.Metrics, error) {
	if len(text) > maxMetrics {
		return evidence.Metrics{}, fmt.Errorf("metrics: more than %d MiB", maxMetrics>>20)
	}
	m := evidence.Metrics{Samples: map[string]float64{}}
	wanted := func(name string) bool {
		return strings.HasPrefix(name, "awscni_") || name == startTime
	}
	for s, err := range promtext.Samples(text, wanted) {
		switch {
		case err != nil:
			return evidence.Metrics{}, fmt.Errorf("metrics: %w", err)
		case math.IsNaN(s.Value) || math.IsInf(s.Value, 0):
			continue
		case s.Name == startTime && s.Value > 0 && s.Value < maxSeconds:
			m.ProcessStart = time.UnixMilli(int64(s.Value * 1000)).UTC()
			continue
		case len(m.Samples) == maxSamples:
			return evidence.Metrics{}, fmt.Errorf("metrics: more than %d series", maxSamples)
		}
		m.Samples[s.Series()] = max(s.Value, 0) // a gauge that was decremented below zero counts as zero
	}
	if len(m.Samples) == 0 {
		return evidence.Metrics{}, errors.New("metrics: none of them is the daemon's")
	}
	return m, nil
}

const (
	startTime  = "process_start_time_seconds"
	maxSeconds = 1e11
)

// AddCard adds the checkpoint of a further network card to that of card 0. If one is damaged, its
// path and error are shown.
func AddCard(c *evidence.Checkpoint, card evidence.Checkpoint) {
	if card.Error != nil && (c.Error == nil || c.Bytes == nil) {
		c.Path, c.Error, c.Version = card.Path, card.Error, card.Version
	}
	size := *card.Bytes
	if c.Bytes != nil {
		size += *c.Bytes
	}
	c.Bytes, c.ModifiedAt = &size, later(c.ModifiedAt, card.ModifiedAt)
	c.Allocations = append(c.Allocations, card.Allocations...)
}

// Checkpoint reads the checkpoint at path, or records why it cannot be used. err is the
// error of reading it: unless the file does not exist, that says nothing about the file, only
// about the reader's rights.
func Checkpoint(path string, data []byte, err error) (evidence.Checkpoint, error) {
	c := evidence.Checkpoint{Path: path}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Error = new("no such file")
		return c, nil
	case err != nil:
		return evidence.Checkpoint{}, err
	}
	c.Bytes = new(len(data))
	entries, err := checkpoint.Decode(data)
	var format *checkpoint.FormatError
	if errors.As(err, &format) {
		c.Version = format.Version
		text := format.Error()
		switch format.Problem {
		case checkpoint.Empty, checkpoint.Truncated, checkpoint.NotJSON:
			text = format.Err.Error() // encoding/json's own error, as upstream logs it
		}
		c.Error = &text
		return c, nil
	}
	c.Version, c.Allocations = netnames.CheckpointVersion, []evidence.Allocation{}
	for _, e := range entries {
		c.Allocations = append(c.Allocations, evidence.Allocation{Pod: evidence.PodOf(e.PodNamespace, e.PodName), Address: e.Address(),
			At: evidence.Moment(&e.AllocatedAt)})
	}
	return c, nil
}
