package awssdk

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// held is a connection whose writes of a request's body wait for release, before or after the
// bytes are sent.
type held struct {
	net.Conn
	early   bool
	release <-chan struct{}
}

func (c *held) Write(p []byte) (int, error) {
	if strings.Contains(string(p), " HTTP/1.1\r\n") { // headers
		return c.Conn.Write(p)
	}
	if c.early {
		<-c.release
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p)
	<-c.release
	return n, err
}

// onRead is a body that calls a function before it is read.
type onRead struct {
	io.ReadCloser
	read func()
}

func (b onRead) Read(p []byte) (int, error) {
	b.read()
	return b.ReadCloser.Read(p)
}

// heldHTTP makes requests whose body is written until the SDK reads the answer: it has closed
// the body by then.
type heldHTTP struct {
	early bool
	wrote chan error // how the writing ended
}

func (h heldHTTP) Do(r *http.Request) (*http.Response, error) {
	release := make(chan struct{})
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &held{conn, h.early, release}, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { h.wrote <- i.Err }}
	resp, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		close(release)
		return resp, err
	}
	var once sync.Once
	resp.Body = onRead{resp.Body, func() {
		once.Do(func() {
			close(release)
			err := <-h.wrote // only then the answer is read
			h.wrote <- err
		})
	}}
	return resp, nil
}

// TestKeepAnswers: the answer is complete, however late the goroutine is that writes the request.
func TestKeepAnswers(t *testing.T) {
	t.Parallel()
	const answer = `<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-0a</subnetId></item></subnetSet></DescribeSubnetsResponse>`
	for _, early := range []bool{false, true} {
		for _, filters := range []int{0, 200} {
			t.Run(fmt.Sprintf("answered before the body=%t/%d values", early, filters), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					control := http.NewResponseController(w)
					if err := control.EnableFullDuplex(); err != nil {
						t.Error(err)
					}
					if !early {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					w.WriteHeader(http.StatusOK)
					if err := control.Flush(); err != nil {
						t.Error(err)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					fmt.Fprint(w, answer)
				}))
				defer server.Close()
				transport := heldHTTP{early: early, wrote: make(chan error, 1)}
				client := ec2.New(ec2.Options{
					Region: "us-west-2", BaseEndpoint: &server.URL, HTTPClient: transport, Retryer: aws.NopRetryer{}, APIOptions: APIOptions(),
					Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""),
				})
				in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("subnet-id")}}}
				for i := range filters {
					in.Filters[0].Values = append(in.Filters[0].Values, fmt.Sprintf("subnet-%017x", i))
				}
				out, err := client.DescribeSubnets(t.Context(), in)
				if err != nil || len(out.Subnets) != 1 {
					t.Errorf("answer %+v, %v", out, err)
				}
				if err := <-transport.wrote; err != nil {
					t.Errorf("request written: %v", err)
				}
			})
		}
	}
}

// TestLoad: the loaded settings keep answers, too, and AWS_CA_BUNDLE, which needs the SDK's own HTTP
// client, works.
func TestLoad(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	cfg, err := Load(t.Context(), 1)
	if err != nil || len(cfg.APIOptions) != len(APIOptions()) {
		t.Errorf("%d options, %v", len(cfg.APIOptions), err)
	}
	t.Setenv("AWS_CA_BUNDLE", "/does/not/exist")
	if _, err := Load(t.Context(), 1); err == nil || !strings.HasPrefix(err.Error(), "load AWS settings: ") {
		t.Errorf("with a CA bundle that does not exist: %v", err)
	}
}
