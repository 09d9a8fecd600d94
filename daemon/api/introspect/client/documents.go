package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cnictl/daemon/api/introspect"
)

// Summary reads /v1/summary and the node's clock. ReasonNoEndpoint: the node runs
// an older daemon or the original.
func (c *Client) Summary(ctx context.Context) (introspect.Summary, time.Time, error) {
	var s introspect.Summary
	at, err := c.document(ctx, introspect.PathSummary, &s)
	switch {
	case err != nil:
	case s.Kind != introspect.KindSummary:
		err = c.malformed(introspect.PathSummary, fmt.Errorf("kind %.40q where a %s was expected", s.Kind, introspect.KindSummary))
	default:
		if wrong := s.Check(); wrong != nil {
			err = c.malformed(introspect.PathSummary, fmt.Errorf("malformed: %w", wrong))
		}
	}
	if err != nil {
		return introspect.Summary{}, time.Time{}, err
	}
	return s, at, nil
}

// ENIs reads /v1/enis, counted at the node's clock with the cooldown given.
func (c *Client) ENIs(ctx context.Context, cooldown time.Duration) (*introspect.Pool, time.Time, error) {
	a, err := c.Get(ctx, introspect.PathENIs)
	if err != nil {
		return nil, time.Time{}, err
	}
	pool, err := introspect.Decode(a.Body)
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

// NetworkEnv reads /v1/networkutils-env-settings.
func (c *Client) NetworkEnv(ctx context.Context) (introspect.NetworkEnv, error) {
	var doc introspect.NetworkEnv
	_, err := c.document(ctx, introspect.PathNetworkEnv, &doc)
	return doc, err
}

// IPAMEnv reads /v1/ipamd-env-settings.
func (c *Client) IPAMEnv(ctx context.Context) (introspect.IPAMEnv, error) {
	var doc introspect.IPAMEnv
	_, err := c.document(ctx, introspect.PathIPAMEnv, &doc)
	return doc, err
}

func (c *Client) document(ctx context.Context, path string, into any) (time.Time, error) {
	a, err := c.Get(ctx, path)
	if err != nil {
		return time.Time{}, err
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return time.Time{}, c.malformed(path, err)
	}
	return a.At, nil
}

func (c *Client) malformed(path string, err error) error {
	return &Error{Address: c.opts.Address, Path: path, Reason: introspect.ReasonMalformed, Err: err}
}
