package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/promtext"
)

// Limits for a metrics text.
const (
	MaxMetrics     = 4 << 20 // bytes
	maxMetricCount = 1 << 31 // no node counts higher
	maxEC2Actions  = 64
)

// metrics is what parseMetrics extracts. Counts are -1 if missing.
type metrics struct {
	total, assigned, cooling int
	enis, eniLimit           int
	addressLimit             int
	prefixes                 int
	adds, failed, noAddress  int
	dels                     int
	waiting, maxPods         int
	version                  string
	started                  float64
	calls                    map[string]introspect.EC2Calls
}

// SummaryOfMetrics makes a summary from a daemon's metrics, ours or upstream's; whatever they
// lack is null. Upstream's have no cooldown: addresses in cooldown count as free. On a node
// with several cards, its gauges show the card that changed last.
func SummaryOfMetrics(text []byte) (introspect.Summary, error) {
	m, err := parseMetrics(text)
	if err != nil {
		return introspect.Summary{}, err
	}
	if m.total < 0 || m.assigned < 0 {
		return introspect.Summary{}, errors.New("metrics: the addresses of the pool are missing")
	}
	card := introspect.CardSummary{
		ENIs: known(m.enis), Total: m.total, Assigned: m.assigned, Cooling: known(m.cooling),
		Prefixes: known(m.prefixes), ENILimit: known(m.eniLimit),
	}
	switch {
	case m.prefixes > 0:
		card.Mode = introspect.ModePrefix
	case m.prefixes == 0:
		card.Mode, card.FreePrefixes = introspect.ModeSecondaryIP, new(0)
	}
	if m.addressLimit > 0 && card.Mode != introspect.ModePrefix { // 0 in IPv6; it counts prefixes as addresses
		card.AddressLimit = &m.addressLimit
	}
	// The gauges are set one after the other and may briefly disagree.
	taken := card.Assigned + max(m.cooling, 0)
	card.Total = max(card.Total, taken)
	card.Free = card.Total - taken
	s := introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: m.version,
		Cards: []introspect.CardSummary{card}, WaitingADDs: known(m.waiting), EC2Calls: m.ec2(),
	}
	if m.adds >= 0 {
		s.ADDs = &introspect.RequestCounts{Total: m.adds, Failed: known(max(m.failed, m.noAddress))}
	}
	if m.dels >= 0 {
		s.DELs = &introspect.RequestCounts{Total: m.dels}
	}
	if m.maxPods >= 0 {
		s.MaxPods = &introspect.MaxPods{Value: &m.maxPods, Verdict: introspect.MaxPodsUnknown}
	}
	if m.started > 0 {
		at := time.UnixMilli(int64(m.started * 1000)).UTC()
		s.StartedAt = &at
	}
	if wrong := s.Check(); wrong != nil { // as for a summary: no node has millions of addresses
		return introspect.Summary{}, fmt.Errorf("metrics: %w", wrong)
	}
	return s, nil
}

func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func (m *metrics) ec2() []introspect.EC2Calls {
	if len(m.calls) == 0 {
		return nil
	}
	list := make([]introspect.EC2Calls, 0, len(m.calls))
	for action, c := range m.calls {
		c.Action = action
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b introspect.EC2Calls) int { return cmp.Compare(a.Action, b.Action) })
	return list
}

// parseMetrics reads the few families that a summary has a field for. It skips all others,
// whatever they contain.
func parseMetrics(text []byte) (*metrics, error) {
	if len(text) > MaxMetrics {
		return nil, fmt.Errorf("metrics: more than %d MiB", MaxMetrics>>20)
	}
	m := &metrics{calls: map[string]introspect.EC2Calls{}}
	counts := m.counts()
	for _, into := range counts {
		*into = -1
	}
	wanted := func(name string) bool { return counts[name] != nil || isWanted(name) }
	for s, err := range promtext.Samples(text, wanted) {
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		if err := m.take(s.Name, counts[s.Name], s); err != nil {
			return nil, fmt.Errorf("metrics: %s: %w", s.Name, err)
		}
	}
	return m, nil
}

func (m *metrics) counts() map[string]*int {
	return map[string]*int{
		"awscni_total_ip_addresses":        &m.total,
		"awscni_assigned_ip_addresses":     &m.assigned,
		"awscni_cooling_ip_addresses":      &m.cooling,
		"awscni_eni_allocated":             &m.enis,
		"awscni_eni_max":                   &m.eniLimit,
		"awscni_ip_max":                    &m.addressLimit,
		"awscni_total_ipv4_prefixes":       &m.prefixes,
		"awscni_add_ip_req_count":          &m.adds,
		"awscni_failed_add_count":          &m.failed,
		"awscni_no_available_ip_addresses": &m.noAddress,
		"awscni_del_ip_req_count":          &m.dels,
		"awscni_waiting_add_requests":      &m.waiting,
		"awscni_max_pods":                  &m.maxPods,
	}
}

// Families that are not a single count.
const (
	metricCalls   = "awscni_ec2api_req_count"
	metricErrors  = "awscni_ec2api_error_count"
	metricBuild   = "awscni_build_info"
	metricStarted = "process_start_time_seconds"
)

func isWanted(name string) bool {
	switch name {
	case metricCalls, metricErrors, metricBuild, metricStarted:
		return true
	}
	return false
}

func (m *metrics) take(name string, into *int, s promtext.Sample) error {
	switch name {
	case metricBuild:
		if version := s.Labels["version"]; len(version) <= 64 {
			m.version = version
		}
		return nil
	case metricStarted:
		if !(s.Value > 0 && s.Value < 1e11) {
			return fmt.Errorf("%v is not a time", s.Value)
		}
		m.started = s.Value
		return nil
	}
	// A gauge that was decremented too often is negative: it counts as zero.
	if !(s.Value < maxMetricCount) || math.IsInf(s.Value, -1) {
		return fmt.Errorf("%v is not a count", s.Value)
	}
	n := max(int(s.Value), 0)
	if into != nil {
		// A family with several series, such as one per cause, is summed.
		*into = min(max(*into, 0)+n, maxMetricCount-1)
		return nil
	}
	action := s.Labels["fn"]
	c, have := m.calls[action]
	if !have && len(m.calls) == maxEC2Actions {
		return nil
	}
	if name == metricCalls {
		c.Calls = n
	} else {
		c.Errors = n
	}
	m.calls[action] = c
	return nil
}
