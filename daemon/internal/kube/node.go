package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"cnictl/daemon/cluster"
)

// Node returns the Node, from the watch once it has shown it, else with a GET.
func (c *Client) Node(ctx context.Context) (cluster.Node, error) {
	name := c.opts.NodeName
	if name == "" {
		return cluster.Node{}, errors.New("get node: MY_NODE_NAME is not set")
	}
	if n, ok, _ := c.nodes.get(name); ok {
		return n, nil
	}
	raw, err := c.getObject(ctx, nodes, "", name)
	if err != nil {
		return cluster.Node{}, err
	}
	n, err := parseNode(raw)
	if err != nil {
		return cluster.Node{}, fmt.Errorf("read node %s: %w", name, err)
	}
	return n, nil
}

// getObject reads one object and checks that it is the requested one.
func (c *Client) getObject(ctx context.Context, what resource, namespace, name string) (json.RawMessage, error) {
	path, err := what.object(namespace, name)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", what.singular, err)
	}
	key := objectKey(namespace, name)
	var raw json.RawMessage
	if err := c.get(ctx, path, &raw); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", what.singular, key, err)
	}
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", what.singular, key, err)
	}
	if object.Metadata.Name != name || object.Metadata.Namespace != namespace {
		return nil, fmt.Errorf("get %s %s: the answer is about %q", what.singular, key, objectKey(object.Metadata.Namespace, object.Metadata.Name))
	}
	return raw, nil
}
