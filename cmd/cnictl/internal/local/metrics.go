package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Limits for reading the daemon's metrics on this host.
const (
	metricsURL     = "http://127.0.0.1:61678/metrics"
	metricsTimeout = 5 * time.Second
	maxMetrics     = 8 << 20
)

// Metrics reads the metrics text of this host's daemon, which serves it on all addresses of
// the host.
func Metrics(ctx context.Context) ([]byte, error) { return metricsOf(ctx, metricsURL) }

func metricsOf(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics+1))
	if err == nil && len(text) > maxMetrics {
		err = errors.New("more than 8 MiB")
	}
	return text, err
}
