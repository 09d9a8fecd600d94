package vpcapi

import (
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// boundedHTTP limits answers, so that an endless one cannot fill memory.
type boundedHTTP struct {
	next ec2.HTTPClient
	max  int64
}

func (b boundedHTTP) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.next.Do(r)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, b.max, b.max}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left, max int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, fmt.Errorf("answer is longer than %d bytes", b.max)
	}
	return n, err
}
