package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"cnictl/daemon/kubeclient"
)

// Pod is an aws-node pod.
type Pod struct{ Name, UID string }

const (
	maxPods  = 50_000  // ten times the nodes that Kubernetes is designed for
	maxError = 4 << 10 // bytes of an error response
)

// metadataOnly asks the API server to leave out spec and status, which make up most of a pod
// and are not needed here.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// partial holds the fields used of a PartialObjectMetadata.
type partial struct {
	Metadata struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"metadata"`
}

// errExpired means that the list took so long that its next page is gone.
var errExpired = errors.New("the list expired between two pages")

// Pods lists the aws-node pods.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	pods, err := c.pods(ctx)
	if errors.Is(err, errExpired) {
		pods, err = c.pods(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list pods of %s with %s: %w", namespace, selector, err)
	}
	return pods, nil
}

func (c *Client) pods(ctx context.Context) ([]Pod, error) {
	var out []Pod
	r := kubeclient.Request{Kind: kubeclient.Pods, Namespace: namespace, Selection: kubeclient.Selection{Labels: selector}}
	err := kubeclient.List(ctx, c.open, r, kubeclient.Limits{Objects: maxPods, Within: listTimeout}, func(item partial) error {
		// The name becomes part of a path.
		if item.Metadata.UID == "" || kubeclient.CheckName("pod", item.Metadata.Name) != nil {
			return fmt.Errorf("the response has a pod named %q with UID %q", item.Metadata.Name, item.Metadata.UID)
		}
		out = append(out, Pod(item.Metadata))
		return nil
	})
	return out, err
}

// open requests a page of the list.
func (c *Client) open(ctx context.Context, _ string, r kubeclient.Request, q url.Values) (io.ReadCloser, error) {
	resp, err := c.get(ctx, metadataOnly, q, r.Kind.Path(r.Namespace))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusGone:
		return nil, errExpired
	case http.StatusForbidden, http.StatusUnauthorized:
		return nil, fmt.Errorf("%w; bind the Role kube-system/cni-metrics-helper to the service account", answered(resp))
	}
	return nil, answered(resp)
}

// answered returns the error for an unexpected response: the API server's message, or the
// status alone.
func answered(resp *http.Response) error {
	var status struct {
		Message string `json:"message"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err != nil || json.Unmarshal(body, &status) != nil || status.Message == "" {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return fmt.Errorf("answered %s: %s", resp.Status, status.Message)
}
