package kube

import (
	"context"
	"errors"
	"fmt"

	"cnictl/daemon/cluster"
	"cnictl/daemon/kubeclient"
)

// ENIConfig returns an ENIConfig from the cache, or else with a GET. An open watch is proof
// enough that one is missing, so a fleet that waits for it sends no requests. An error is
// ErrNotFound, ErrInvalid or a failure to read.
func (c *Client) ENIConfig(ctx context.Context, name string) (cluster.ENIConfig, error) {
	found, ok, current := c.eniConfigs.get(name)
	if !ok {
		var err error
		if found, err = c.fetchENIConfig(ctx, name, current); err != nil {
			return cluster.ENIConfig{}, err
		}
	}
	if found.problem != "" {
		return cluster.ENIConfig{}, fmt.Errorf("%w: %s", ErrInvalid, found.problem)
	}
	return found.config, nil
}

func (c *Client) fetchENIConfig(ctx context.Context, name string, current bool) (eniConfig, error) {
	const advice = "create it, or change the node's ENIConfig label or annotation"
	if err := kubeclient.CheckName(eniConfigs.singular, name); err != nil {
		return eniConfig{}, fmt.Errorf("%w: %w; %s", ErrInvalid, err, advice)
	}
	if current {
		return eniConfig{}, fmt.Errorf("ENIConfig %s: %w; %s", name, ErrNotFound, advice)
	}
	raw, err := c.getObject(ctx, eniConfigs, "", name)
	if errors.Is(err, ErrNotFound) {
		return eniConfig{}, fmt.Errorf("%w; %s", err, advice)
	}
	if err != nil {
		return eniConfig{}, err
	}
	found, err := parseENIConfig(raw)
	if err != nil {
		return eniConfig{}, fmt.Errorf("read ENIConfig %s: %w: %w", name, ErrInvalid, err)
	}
	return found, nil
}
