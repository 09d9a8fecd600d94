package scrape

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/daemon/api/promtext"
)

// Limits of one response. A node with 50 interfaces shows some 100 KiB; upstream's error
// texts and CIDRs stay forever and make that grow.
const (
	maxAnswer = 8 << 20  // bytes
	maxLine   = 64 << 10 // bytes; upstream's label values contain error texts
	maxWanted = 1 << 20  // bytes of the wanted families

	// maxValue is the largest exact count. It also keeps sums finite, which CloudWatch
	// requires.
	maxValue = 1 << 53
)

// Families of every process, which reveal a restart.
const (
	cpuTime   = "process_cpu_seconds_total"
	startTime = "process_start_time_seconds"
)

// wanted are the families to parse, and the names of their lines.
var wanted = func() map[string]bool {
	out := map[string]bool{
		cpuTime: true, startTime: true,
		aggregate.APILatency + "_sum": true, aggregate.APILatency + "_count": true,
	}
	for _, m := range aggregate.Metrics() {
		out[m.Source] = true
	}
	return out
}()

// Parse reads a response in the Prometheus text format.
func Parse(r io.Reader) (aggregate.Reading, error) {
	text, err := pick(r)
	if err != nil {
		return aggregate.Reading{}, err
	}
	out, err := read(text)
	if err != nil {
		return aggregate.Reading{}, &fault{Malformed, err}
	}
	return out, nil
}

// pick copies only the wanted lines: parsing takes many times the size of the text, and the
// metrics of other collectors on a node are none of our business.
func pick(r io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: r, N: maxAnswer + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	var out []byte
	for lines.Scan() {
		line := lines.Bytes()
		if !wanted[family(line)] {
			continue
		}
		if len(out)+len(line) >= maxWanted {
			return nil, faultf(TooLarge, "metrics of ipamd are longer than %d bytes", maxWanted)
		}
		out = append(append(out, line...), '\n')
	}
	switch err := lines.Err(); {
	case limited.N == 0:
		return nil, faultf(TooLarge, "response is longer than %d bytes", maxAnswer)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, faultf(TooLarge, "response has a line longer than %d bytes", maxLine)
	case err != nil:
		return nil, fmt.Errorf("read response: %w", err)
	}
	return out, nil
}

// family returns the metric name of a line, "" for comments and help.
func family(line []byte) string {
	if rest, ok := bytes.CutPrefix(line, []byte("# TYPE ")); ok {
		line = rest
	}
	return promtext.NameOf(line)
}

// metrics is the content of a response, by name.
type metrics struct {
	families map[string]promtext.Family
	samples  map[string][]promtext.Sample
}

// read extracts the values from the picked lines.
func read(text []byte) (aggregate.Reading, error) {
	all := metrics{promtext.Families(text), map[string][]promtext.Sample{}}
	for s, err := range promtext.Samples(text, nil) {
		if err != nil {
			return aggregate.Reading{}, fmt.Errorf("parse metrics: %w", err)
		}
		all.samples[s.Name] = append(all.samples[s.Name], s)
	}
	r := aggregate.Reading{Values: make(map[string]float64)}
	for _, m := range aggregate.Metrics() {
		var err error
		switch {
		case m.Kind == aggregate.Latency:
			err = all.latency(m.Source, &r)
		case len(all.samples[m.Source]) > 0:
			r.Values[m.Source], err = all.sum(m.Source, m.Kind)
		}
		if err != nil {
			return aggregate.Reading{}, fmt.Errorf("%s: %w", m.Source, err)
		}
	}
	if len(r.Values) == 0 {
		return aggregate.Reading{}, errors.New("the response has no ipamd metric")
	}
	return r, all.process(&r)
}

// sum adds up the series of a family. Without a TYPE line the expected type is assumed.
func (a metrics) sum(name string, kind aggregate.Kind) (float64, error) {
	switch t := a.families[name].Type; {
	case t == "", t == "untyped", t == "counter" && kind == aggregate.Counter, t == "gauge" && kind == aggregate.Gauge:
	default:
		return 0, fmt.Errorf("is a %s", t)
	}
	total := 0.0
	for _, s := range a.samples[name] {
		if kind == aggregate.Counter && s.Value < 0 {
			return 0, fmt.Errorf("counts %v", s.Value)
		}
		if err := within(s.Value); err != nil {
			return 0, err
		}
		total += s.Value
	}
	return total, within(total)
}

func within(v float64) error {
	if math.IsNaN(v) || v > maxValue || v < -maxValue {
		return fmt.Errorf("has the value %v", v)
	}
	return nil
}

// notCalls is a pseudo-API under which ipamd records how long a new interface took to appear
// on the node. That is no call, and would hide the latency of the real calls.
const notCalls = "waitForENIAndIPsAttached"

// latency adds up the calls of each API, whatever their outcome. Quantiles are used if an
// ipamd has them; neither upstream nor ours does.
func (a metrics) latency(name string, r *aggregate.Reading) error {
	t := a.families[name].Type
	if t != "summary" {
		if len(a.samples[name]) > 0 {
			return fmt.Errorf("is a %s", cmp.Or(t, "untyped"))
		}
		return nil
	}
	calls := make(map[string]aggregate.Calls)
	add := func(suffix string, into func(*aggregate.Calls) *float64) error {
		for _, s := range a.samples[name+suffix] {
			api := s.Labels["api"]
			if api == notCalls {
				continue
			}
			c := calls[api]
			at := into(&c)
			if s.Value < 0 {
				return fmt.Errorf("calls have a %s of %v", suffix[1:], s.Value)
			}
			*at += s.Value
			if err := within(*at); err != nil {
				return err
			}
			calls[api] = c
		}
		return nil
	}
	if err := errors.Join(
		add("_count", func(c *aggregate.Calls) *float64 { return &c.Count }),
		add("_sum", func(c *aggregate.Calls) *float64 { return &c.Took }),
	); err != nil {
		return err
	}
	for _, s := range a.samples[name] {
		// Without calls a quantile is NaN.
		if q, _ := strconv.ParseFloat(s.Labels["quantile"], 64); q == 0.99 && s.Labels["api"] != notCalls && s.Value > r.P99 && within(s.Value) == nil {
			r.P99 = s.Value
		}
	}
	r.Calls = calls
	return nil
}

// process reads the values that identify a process. Either may be absent.
func (a metrics) process(r *aggregate.Reading) (err error) {
	if len(a.samples[cpuTime]) > 0 {
		if r.CPU, err = a.sum(cpuTime, aggregate.Counter); err != nil {
			return fmt.Errorf("%s: %w", cpuTime, err)
		}
	}
	if len(a.samples[startTime]) > 0 {
		at, err := a.sum(startTime, aggregate.Gauge)
		if err != nil {
			return fmt.Errorf("%s: %w", startTime, err)
		}
		r.Started = time.UnixMilli(int64(math.Round(min(math.Abs(at), maxSeconds) * 1000)))
	}
	return nil
}

// maxSeconds keeps a start time within the range of valid dates.
const maxSeconds = 1 << 40
