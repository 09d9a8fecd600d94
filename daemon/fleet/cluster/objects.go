package cluster

import (
	"context"
	"encoding/json"
	"net/http"
)

// Selection narrows a list.
type Selection struct{ Fields, Labels string }

// Objects reads all objects of a kind, page by page, and hands each on as the API server
// has it. Without a namespace it reads those of all.
func (c *Cluster) Objects(ctx context.Context, k Kind, namespace string, s Selection, each func(json.RawMessage)) error {
	q := query{}
	if s.Fields != "" {
		q["fieldSelector"] = s.Fields
	}
	if s.Labels != "" {
		q["labelSelector"] = s.Labels
	}
	_, err := list(ctx, c.api, k, namespace, q, each)
	return err
}

// Object reads one object as the API server has it.
func (c *Cluster) Object(ctx context.Context, k Kind, namespace, name string) (json.RawMessage, error) {
	var raw json.RawMessage
	r := k.request("get", namespace, name)
	body, err := c.api.open(ctx, http.MethodGet, r, k.path(namespace, name), nil, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	err = decode(ctx, r, body, &raw)
	return raw, err
}

// DaemonPods reads the pods of the DaemonSet as the API server has them.
func (c *Cluster) DaemonPods(ctx context.Context, each func(json.RawMessage)) error {
	return c.Objects(ctx, KindPods, c.cfg.Namespace, Selection{Labels: c.cfg.Selector}, each)
}

// Namespace is that of the DaemonSet.
func (c *Cluster) Namespace() string { return c.cfg.Namespace }
