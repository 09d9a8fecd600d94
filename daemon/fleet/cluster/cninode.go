package cluster

import (
	"context"
	"errors"

	"cnictl/daemon/api/introspect"
)

// CNINode is what is used of a node's CNINode.
type CNINode struct {
	Name     string    `json:"name"`
	Features []Feature `json:"features"`
}

// Feature of a CNINode.
type Feature struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CNINode reads a node's; ok is false when it has none, or the cluster knows no such kind.
func (c *Cluster) CNINode(ctx context.Context, node string) (_ CNINode, ok bool, _ error) {
	var doc struct {
		Spec struct {
			Features []Feature `json:"features"`
		} `json:"spec"`
	}
	err := c.api.get(ctx, kindCNINodes, "", node, &doc)
	var e *Error
	if errors.As(err, &e) && e.Reason == introspect.ReasonNotFound {
		return CNINode{}, false, nil
	}
	if err != nil {
		return CNINode{}, false, err
	}
	return CNINode{Name: node, Features: doc.Spec.Features}, true, nil
}
