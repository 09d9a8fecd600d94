package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ServerVersion asks the API server for its version, such as "v1.35.4".
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.version)
	defer cancel()
	var body json.RawMessage
	if err := c.fetch(ctx, "/version", &body); err != nil {
		return "", fmt.Errorf("get /version: %w", err)
	}
	return parseVersion(body)
}

func parseVersion(body []byte) (string, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read /version: %w", err)
	}
	const most = 128 // bytes; it is logged and shown
	if info.GitVersion == "" || len(info.GitVersion) > most {
		return "", errors.New("read /version: the answer has no gitVersion")
	}
	return info.GitVersion, nil
}
