package client

import (
	"context"
	"errors"
	"io"
	"net/http"

	"cnictl/daemon/api/introspect"
)

// Raw is an answer exactly as the node sent it.
type Raw struct {
	Status      int // HTTP
	ContentType string
	Body        []byte
}

// Raw reads a path, which may carry a query. It checks only the size of the answer.
func (c *Client) Raw(ctx context.Context, path string) (Raw, error) {
	fail := func(reason introspect.Reason, err error) (Raw, error) {
		return Raw{}, &Error{Address: c.opts.Address, Path: path, Reason: reason, Err: err}
	}
	if path == "" || path[0] != '/' {
		return fail(introspect.ReasonBadRequest, errors.New("a path must start with /"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fail(introspect.ReasonBadRequest, errors.New("invalid path"))
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return fail(classify(ctx, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, introspect.MaxBody+1))
	switch {
	case err != nil:
		return fail(classify(ctx, err))
	case len(body) > introspect.MaxBody:
		return fail(introspect.ReasonTooLarge, introspect.ErrTooLarge)
	}
	return Raw{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: body}, nil
}
