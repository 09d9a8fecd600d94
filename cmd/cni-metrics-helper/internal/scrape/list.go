package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Pod is an aws-node pod.
type Pod struct{ Name, UID string }

const (
	pageSize = 500
	maxPods  = 50_000   // ten times the nodes that Kubernetes is made for
	maxPage  = 32 << 20 // bytes; metadata of 500 pods is some 2 MiB
	maxError = 4 << 10  // bytes of an answer that refuses
)

// metadataOnly asks the API server to leave out spec and status, which are most of a
// pod and of no use here.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// page is what is used of a PartialObjectMetadataList.
type page struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"metadata"`
	} `json:"items"`
}

// errExpired says that a list took so long that its next page is gone.
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
	for next := ""; ; {
		p, err := c.page(ctx, next)
		if err != nil {
			return nil, err
		}
		for _, item := range p.Items {
			// The name becomes part of a path.
			if item.Metadata.UID == "" || len(validation.NameIsDNSSubdomain(item.Metadata.Name, false)) > 0 {
				return nil, fmt.Errorf("the response has a pod named %q with UID %q", item.Metadata.Name, item.Metadata.UID)
			}
			out = append(out, Pod(item.Metadata))
		}
		if len(out) > maxPods {
			return nil, fmt.Errorf("there are more than %d pods", maxPods)
		}
		if next = p.Metadata.Continue; next == "" {
			return out, nil
		}
	}
}

func (c *Client) page(ctx context.Context, next string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(pageSize)}}
	if next != "" {
		query.Set("continue", next)
	}
	resp, err := c.get(ctx, metadataOnly, query, "api", "v1", "namespaces", namespace, "pods")
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusGone:
		return page{}, errExpired
	case resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized:
		return page{}, fmt.Errorf("%w; bind the ClusterRole cni-metrics-helper to the service account", answered(resp))
	case resp.StatusCode != http.StatusOK:
		return page{}, answered(resp)
	}
	var p page
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxPage)).Decode(&p); err != nil {
		return page{}, fmt.Errorf("read response: %w", err)
	}
	if p.Kind != "PartialObjectMetadataList" {
		return page{}, fmt.Errorf("the response is a %q", p.Kind)
	}
	return p, nil
}

// get asks the API server. The caller closes the body.
func (c *Client) get(ctx context.Context, accept string, query url.Values, path ...string) (*http.Response, error) {
	at := c.base.JoinPath(path...)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", accept)
	return c.http.Do(req)
}

// answered is an answer other than the one that was asked for: what the API server
// says, or the status alone.
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
