package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"cnictl/daemon/api/introspect"
)

// Summary reads /v1/summary and the node's clock. ReasonNoEndpoint means that the node runs
// an older daemon or upstream. While a node's answer does not change, the results share
// memory: the caller must not modify what they point to.
func (c *Client) Summary(ctx context.Context) (introspect.Summary, time.Time, error) {
	a, err := c.Get(ctx, introspect.PathSummary)
	if err != nil {
		return introspect.Summary{}, time.Time{}, err
	}
	if a.summary != nil {
		return *a.summary, a.At, nil
	}
	s, err := decodeSummary(a.Body)
	if err != nil {
		return introspect.Summary{}, time.Time{}, c.malformed(introspect.PathSummary, err)
	}
	c.keepSummary(a, s)
	return s, a.At, nil
}

func decodeSummary(body []byte) (introspect.Summary, error) {
	var s introspect.Summary
	if err := introspect.Unmarshal(body, &s); err != nil {
		return introspect.Summary{}, err
	}
	if s.Kind != introspect.KindSummary {
		return introspect.Summary{}, fmt.Errorf("kind %.40q where a %s was expected", s.Kind, introspect.KindSummary)
	}
	if wrong := s.Check(); wrong != nil {
		return introspect.Summary{}, fmt.Errorf("malformed: %w", wrong)
	}
	return s, nil
}

// ENIs reads /v1/enis, and counts by the node's clock and the given cooldown.
func (c *Client) ENIs(ctx context.Context, cooldown time.Duration) (*introspect.Pool, time.Time, error) {
	a, err := c.Get(ctx, introspect.PathENIs)
	if err != nil {
		return nil, time.Time{}, err
	}
	pool, err := introspect.DecodeValid(a.Body)
	if err != nil {
		return nil, time.Time{}, c.malformed(introspect.PathENIs, err)
	}
	pool.Recount(a.At, cooldown)
	return pool, a.At, nil
}

// Config reads /v1/config.
func (c *Client) Config(ctx context.Context) (introspect.NodeConfig, error) {
	var doc introspect.NodeConfig
	_, err := c.document(ctx, introspect.PathConfig, &doc)
	if err == nil && doc.Kind != introspect.KindConfig {
		err = c.malformed(introspect.PathConfig, fmt.Errorf("kind %.40q where a %s was expected", doc.Kind, introspect.KindConfig))
	}
	return doc, err
}

// IPAMEnv holds the settings used from /v1/ipamd-env-settings; nil if a release does not
// report one. introspect.IPAMEnv is the whole document, as the node serves it.
type IPAMEnv struct {
	CustomNetworking *bool `json:"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"`
	WarmENITarget    *int  `json:"WARM_ENI_TARGET"`
	WarmIPTarget     *int  `json:"WARM_IP_TARGET"`
}

// IPAMEnv reads /v1/ipamd-env-settings.
func (c *Client) IPAMEnv(ctx context.Context) (IPAMEnv, error) {
	var doc IPAMEnv
	_, err := c.document(ctx, introspect.PathIPAMEnv, &doc)
	return doc, err
}

// Plan reads /v1/plan: the next actions of the pool, under the targets of the query.
func (c *Client) Plan(ctx context.Context, q introspect.PlanQuery) (introspect.NodePlan, time.Time, error) {
	values := url.Values{}
	for _, p := range q.Parameters() {
		if *p.Value != nil {
			values.Set(p.Name, strconv.Itoa(**p.Value))
		}
	}
	var doc introspect.NodePlan
	at, err := c.ours(ctx, introspect.PathPlan, values, introspect.KindPlan, &doc.Kind, &doc)
	return doc, at, err
}

// Failures reads /v1/failures: the last failed ADDs.
func (c *Client) Failures(ctx context.Context) (introspect.NodeFailures, time.Time, error) {
	var doc introspect.NodeFailures
	at, err := c.ours(ctx, introspect.PathFailures, nil, introspect.KindFailures, &doc.Kind, &doc)
	return doc, at, err
}

// SubnetHistory reads /v1/subnet-history: EC2's earlier counts of free addresses.
func (c *Client) SubnetHistory(ctx context.Context) (introspect.NodeSubnetHistory, error) {
	var doc introspect.NodeSubnetHistory
	_, err := c.ours(ctx, introspect.PathSubnetHistory, nil, introspect.KindSubnetHistory, &doc.Kind, &doc)
	return doc, err
}

// Pod reads /v1/pod. ReasonNotFound: the node has assigned no address to that pod.
func (c *Client) Pod(ctx context.Context, pod introspect.PodRef) (introspect.NodePod, time.Time, error) {
	var doc introspect.NodePod
	values := url.Values{"namespace": {pod.Namespace}, "name": {pod.Name}}
	at, err := c.ours(ctx, introspect.PathPod, values, introspect.KindPod, &doc.Kind, &doc)
	return doc, at, err
}

// Logs reads /v1/logs. With Lines 0 the node chooses the number. ReasonNotFound: the daemon
// does not log to a file.
func (c *Client) Logs(ctx context.Context, q introspect.LogQuery) (introspect.NodeLogs, error) {
	values := url.Values{}
	for name, value := range map[string]string{"level": q.Level, "match": q.Match} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Lines != 0 {
		values.Set("lines", strconv.Itoa(q.Lines))
	}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	var doc introspect.NodeLogs
	_, err := c.ours(ctx, introspect.PathLogs, values, introspect.KindLogs, &doc.Kind, &doc)
	return doc, err
}

// ours reads one of our documents and checks its kind, which decoding also stores in got.
func (c *Client) ours(ctx context.Context, path string, q url.Values, kind string, got *string, into any) (time.Time, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	at, err := c.document(ctx, path, into)
	if err == nil && *got != kind {
		err = c.malformed(path, fmt.Errorf("kind %.40q where a %s was expected", *got, kind))
	}
	return at, err
}

func (c *Client) document(ctx context.Context, path string, into any) (time.Time, error) {
	a, err := c.Get(ctx, path)
	if err != nil {
		return time.Time{}, err
	}
	if err := introspect.Unmarshal(a.Body, into); err != nil {
		return time.Time{}, c.malformed(path, err)
	}
	return a.At, nil
}

func (c *Client) malformed(path string, err error) error {
	return &Error{Address: c.opts.Address, Path: path, Reason: introspect.ReasonMalformed, Err: err}
}
