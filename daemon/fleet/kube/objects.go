package kube

import (
	"context"
	"encoding/json"
)

// objects reads all objects of a kind, page by page, and passes each on as the API server sent
// it. Namespace "" means all namespaces.
func (c *Cluster) objects(ctx context.Context, k Kind, namespace string, s Selection, each func(json.RawMessage)) error {
	return list(ctx, c.api, k, namespace, s, each)
}

// object reads one object as the API server sends it.
func (c *Cluster) object(ctx context.Context, k Kind, namespace, name string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.api.get(ctx, k, namespace, name, &raw)
	return raw, err
}

// DaemonPods reads the pods of the DaemonSet as the API server sends them.
func (c *Cluster) DaemonPods(ctx context.Context, each func(json.RawMessage)) error {
	return c.objects(ctx, KindPods, c.cfg.Namespace, Selection{Labels: c.cfg.Selector}, each)
}

// Namespace returns the namespace of the DaemonSet.
func (c *Cluster) Namespace() string { return c.cfg.Namespace }
