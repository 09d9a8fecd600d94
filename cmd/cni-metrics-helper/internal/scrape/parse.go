package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
)

// Limits of one answer. A node with 50 interfaces shows some 100 KiB; upstream's
// error texts and CIDRs stay forever and make that grow.
const (
	maxAnswer = 8 << 20  // bytes
	maxLine   = 64 << 10 // bytes; label values of upstream hold whole error texts
	maxWanted = 1 << 20  // bytes of the families that are wanted

	// maxValue is the largest count that is exact. It also keeps sums finite, which
	// CloudWatch insists on.
	maxValue = 1 << 53
)

// Families of every process, which tell that it is another one.
const (
	cpuTime   = "process_cpu_seconds_total"
	startTime = "process_start_time_seconds"
)

// wanted are the families that are parsed, and the names of their lines.
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

// Parse reads an answer in Prometheus's text format.
func Parse(r io.Reader) (aggregate.Reading, error) {
	text, err := pick(r)
	if err != nil {
		return aggregate.Reading{}, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return aggregate.Reading{}, faultf(Malformed, "parse metrics: %w", err)
	}
	out, err := read(families)
	if err != nil {
		return aggregate.Reading{}, &fault{Malformed, err}
	}
	return out, nil
}

// pick copies the lines that are wanted: the parser builds objects many times the size
// of its text, and what other collectors of a node write is their affair.
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

// family is the name that a line is about, "" for comments and help.
func family(line []byte) string {
	if rest, ok := bytes.CutPrefix(line, []byte("# TYPE ")); ok {
		line = rest
	}
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, "{ \t"); end >= 0 {
		line = line[:end]
	}
	return string(line)
}

// read takes the values out of parsed families.
func read(families map[string]*dto.MetricFamily) (aggregate.Reading, error) {
	r := aggregate.Reading{Values: make(map[string]float64)}
	for _, m := range aggregate.Metrics() {
		f := families[m.Source]
		if f == nil {
			continue
		}
		var err error
		if m.Kind == aggregate.Latency {
			err = readLatency(f, &r)
		} else {
			r.Values[m.Source], err = sum(f, m.Kind)
		}
		if err != nil {
			return aggregate.Reading{}, fmt.Errorf("%s: %w", m.Source, err)
		}
	}
	if len(r.Values) == 0 {
		return aggregate.Reading{}, errors.New("the response has no ipamd metric")
	}
	return r, readProcess(families, &r)
}

// sum adds up the series of a family.
func sum(f *dto.MetricFamily, kind aggregate.Kind) (float64, error) {
	total := 0.0
	for _, m := range f.GetMetric() {
		v, err := value(f.GetType(), m, kind)
		if err != nil {
			return 0, err
		}
		total += v
	}
	return total, within(total)
}

// value is the number of one series. A family without a TYPE line is taken for what it
// should be.
func value(t dto.MetricType, m *dto.Metric, kind aggregate.Kind) (float64, error) {
	var v float64
	switch {
	case t == dto.MetricType_UNTYPED:
		v = m.GetUntyped().GetValue()
	case t == dto.MetricType_COUNTER && kind == aggregate.Counter:
		v = m.GetCounter().GetValue()
	case t == dto.MetricType_GAUGE && kind == aggregate.Gauge:
		v = m.GetGauge().GetValue()
	default:
		return 0, fmt.Errorf("is a %s", strings.ToLower(t.String()))
	}
	if kind == aggregate.Counter && v < 0 {
		return 0, fmt.Errorf("counts %v", v)
	}
	return v, within(v)
}

func within(v float64) error {
	if math.IsNaN(v) || v > maxValue || v < -maxValue {
		return fmt.Errorf("has the value %v", v)
	}
	return nil
}

// notCalls is a pseudo-API under which ipamd records how long a new interface took to
// appear on the node. That is no call, and would hide how long calls take.
const notCalls = "waitForENIAndIPsAttached"

// readLatency adds up the calls of each API, whatever came of them. Quantiles are used
// where an ipamd offers them; upstream and ours offer none.
func readLatency(f *dto.MetricFamily, r *aggregate.Reading) error {
	if t := f.GetType(); t != dto.MetricType_SUMMARY {
		return fmt.Errorf("is a %s", strings.ToLower(t.String()))
	}
	r.Calls = make(map[string]aggregate.Calls)
	for _, m := range f.GetMetric() {
		api := label(m, "api")
		if api == notCalls {
			continue
		}
		s := m.GetSummary()
		c := r.Calls[api]
		c.Count += float64(s.GetSampleCount())
		c.Took += s.GetSampleSum()
		if c.Took < 0 {
			return fmt.Errorf("calls took %v ms", c.Took)
		}
		if err := errors.Join(within(c.Count), within(c.Took)); err != nil {
			return err
		}
		r.Calls[api] = c
		for _, q := range s.GetQuantile() {
			// A quantile of no calls is NaN.
			if v := q.GetValue(); q.GetQuantile() == 0.99 && v > r.P99 && within(v) == nil {
				r.P99 = v
			}
		}
	}
	return nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// readProcess reads what tells one process from the next. Either may be absent.
func readProcess(families map[string]*dto.MetricFamily, r *aggregate.Reading) (err error) {
	if f := families[cpuTime]; f != nil {
		if r.CPU, err = sum(f, aggregate.Counter); err != nil {
			return fmt.Errorf("%s: %w", cpuTime, err)
		}
	}
	if f := families[startTime]; f != nil {
		at, err := sum(f, aggregate.Gauge)
		if err != nil {
			return fmt.Errorf("%s: %w", startTime, err)
		}
		r.Started = time.UnixMilli(int64(math.Round(min(math.Abs(at), maxSeconds) * 1000)))
	}
	return nil
}

// maxSeconds keeps a start time inside what is a date.
const maxSeconds = 1 << 40
