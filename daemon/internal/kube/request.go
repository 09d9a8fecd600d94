package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/daemon/kubeclient"
)

// maxErrorBody bounds the body of an error answer, which may be logged.
const maxErrorBody = 64 << 10

// Problems with a requested object, found by the API server or by us. Other errors mean
// that it could not be read.
var (
	ErrNotFound = errors.New("not found")
	ErrInvalid  = errors.New("it cannot be used")
)

// get reads one object.
func (c *Client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.limits.get)
	defer cancel()
	return c.fetch(ctx, path, out)
}

func (c *Client) fetch(ctx context.Context, path string, out any) error {
	body, err := c.rest.Get().AbsPath(path).MaxRetries(1).Stream(ctx)
	if err != nil {
		return c.failed(err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, kubeclient.MaxObject+1))
	if err != nil {
		return c.failed(err)
	}
	if len(data) > kubeclient.MaxObject {
		return fmt.Errorf("the answer is larger than %d MiB", kubeclient.MaxObject>>20)
	}
	return json.Unmarshal(data, out)
}

// patch applies a merge patch.
func (c *Client) patch(ctx context.Context, path string, change any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.write)
	defer cancel()
	return c.failed(c.rest.Patch(types.MergePatchType).AbsPath(path).Body(body).MaxRetries(1).Do(ctx).Error())
}

// create posts a new object.
func (c *Client) create(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.limits.write)
	defer cancel()
	return c.failed(c.rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).MaxRetries(1).Do(ctx).Error())
}

// failed explains a request's error and raises a suspicion if there was no answer. It
// returns nil for nil.
func (c *Client) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return err // which says what its policy allows
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w (the ClusterRole aws-node lacks this rule)", err)
	case !answered(err) && !errors.Is(err, context.Canceled):
		c.reach.suspect()
	}
	return err
}

// answered reports whether an error is an answer from the API server itself, which is
// therefore up.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError &&
		status.Status().Code != http.StatusTooManyRequests
}

// boundErrors limits the answers that client-go reads whole: errors, and answers to writes,
// which echo the object.
type boundErrors struct{ next http.RoundTripper }

func (b boundErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= http.StatusMultipleChoices:
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxErrorBody)
	case r.Method != http.MethodGet:
		resp.Body = http.MaxBytesReader(nil, resp.Body, kubeclient.MaxObject)
	}
	return resp, nil
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
