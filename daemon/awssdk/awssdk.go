// Package awssdk is what all AWS clients in the tree share: how the SDK's settings are loaded, and
// what every client needs beyond them. It makes no request.
package awssdk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Load loads the settings of AWS clients, among them those that get credentials. timeout is for
// one attempt of a request.
func Load(ctx context.Context, timeout time.Duration, more ...func(*config.LoadOptions) error) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, append([]func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // the SDK would write to stderr; the errors say what matters
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(timeout)),
		config.WithAPIOptions(APIOptions()),
	}, more...)...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("load AWS settings: %w", err)
	}
	return cfg, nil
}

// APIOptions are for clients that are made without [Load].
func APIOptions() []func(*middleware.Stack) error {
	return []func(*middleware.Stack) error{keepAnswers}
}

// keepAnswers keeps the answers that arrive before net/http has finished with the request's body.
//
// When the headers of an answer are there, smithy-go closes the request's body
// (transport/http/client.go). net/http reads that body in a goroutine of its own, which a process
// short of CPU runs late: often it has yet to look whether the body has more than its announced
// length. Of a closed body, smithy-go's WriteTo returns io.EOF, which io.WriterTo does not allow,
// and Read returns io.EOF wherever it is (transport/http/internal/io/safe.go). net/http takes the
// former for a failed read and the latter for a body that is too short, and closes the connection
// while the answer is being read. So each attempt gets its own copy of the body, which smithy-go cannot close.
func keepAnswers(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("KeepAnswers", withOwnBody), middleware.After)
}

func withOwnBody(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	if req, ok := in.Request.(*smithyhttp.Request); ok && req.GetStream() != nil {
		body, err := io.ReadAll(req.GetStream()) // a retry rewinds it
		if err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, fmt.Errorf("read request body: %w", err)
		}
		own, err := req.SetStream(nil) // smithy-go would wrap it
		if err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, fmt.Errorf("replace request body: %w", err)
		}
		own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		in.Request = own
	}
	return next.HandleDeserialize(ctx, in)
}
