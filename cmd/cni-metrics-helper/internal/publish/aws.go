package publish

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"cnictl/daemon/awssdk"
)

const maxAnswer = 4 << 20 // bytes of any AWS response; tags and errors are below 64 KiB

// LoadAWS loads the configuration of all AWS clients. timeout is for one attempt.
func LoadAWS(ctx context.Context, timeout time.Duration) (aws.Config, error) {
	cfg, err := awssdk.Load(ctx, timeout)
	if err != nil {
		return aws.Config{}, err
	}
	cfg.HTTPClient = boundedHTTP{cfg.HTTPClient} // only now: AWS_CA_BUNDLE needs the SDK's own client
	return cfg, nil
}

// boundedHTTP keeps an endless response from filling memory: the SDK reads whole bodies.
type boundedHTTP struct{ next aws.HTTPClient }

func (b boundedHTTP) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.next.Do(r)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("response is longer than %d bytes", maxAnswer)
	}
	return n, err
}
