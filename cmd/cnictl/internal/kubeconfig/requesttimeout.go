package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"
)

// bounded aborts requests that take longer than --request-timeout, including reading the
// response. Long-lived ones are exempt: watches, followed logs, tunnels.
type bounded struct {
	limit time.Duration
	next  http.RoundTripper
}

// boundRequests returns bounded in the form that clients take.
func boundRequests(limit time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return bounded{limit, next} }
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if lasting(r) {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), b.limit, fmt.Errorf("no complete response within --request-timeout=%s", b.limit))
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil && r.Context().Err() == nil {
			err = context.Cause(ctx)
		}
		cancel()
		return nil, err
	}
	resp.Body = boundedBody{resp.Body, ctx, cancel}
	return resp, nil
}

func lasting(r *http.Request) bool {
	q := r.URL.Query()
	last := path.Base(r.URL.Path)
	return q.Get("watch") != "" || q.Get("follow") != "" || last == "portforward" || last == "exec"
}

// boundedBody is a response body whose timeout runs until it is closed.
type boundedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

func (b boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ctx.Err() != nil && !errors.Is(err, io.EOF) {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
