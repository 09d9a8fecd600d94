package node

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"cnictl/daemon/api/promtext"
	"cnictl/daemon/fleet/document"
)

// Limits for metrics text: far above what a daemon serves.
const (
	maxMetricsBytes = 8 << 20
	maxMetrics      = 100_000
)

// parseMetrics reads every sample, with the type and help of its family.
func parseMetrics(text []byte) ([]document.Metric, error) {
	if len(text) > maxMetricsBytes {
		return nil, fmt.Errorf("more than %d bytes", maxMetricsBytes)
	}
	families := promtext.Families(text)
	metrics := []document.Metric{}
	for s, err := range promtext.Samples(text, nil) {
		if err != nil {
			return nil, err
		}
		if len(metrics) == maxMetrics {
			return nil, fmt.Errorf("more than %d samples", maxMetrics)
		}
		m := document.Metric{Name: s.Name, Labels: s.Labels, Type: "untyped"}
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			base, ok := strings.CutSuffix(m.Name, suffix)
			if f, known := families[base]; ok && known {
				m.Type, m.Help = cmp.Or(f.Type, m.Type), f.Help
				break
			}
		}
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			m.Value = &s.Value
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}
