package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/awssdk"
)

// service is a running command.
type service struct {
	t    *testing.T
	env  map[string]string
	out  *bufio.Scanner
	stop func() (code int, stderr string)
}

func start(t *testing.T, stdin string, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := run(ctx, args, strings.NewReader(stdin), w, &stderr)
		w.Close()
		done <- code
	}()
	s := &service{t: t, env: map[string]string{}, out: bufio.NewScanner(r)}
	s.stop = func() (int, string) {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		return <-done, stderr.String()
	}
	for s.env["FAKEAWS_INSTANCE_ID"] == "" {
		if !s.out.Scan() {
			code, text := s.stop()
			t.Fatalf("ended with %d: %s", code, text)
		}
		name, value, _ := strings.Cut(s.out.Text(), "=")
		s.env[name] = value
	}
	return s
}

func (s *service) ec2() *ec2.Client {
	return ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: s.env["AWS_REGION"], BaseEndpoint: aws.String(s.env["AWS_ENDPOINT_URL_EC2"]),
		Credentials: credentials.NewStaticCredentialsProvider(s.env["AWS_ACCESS_KEY_ID"], s.env["AWS_SECRET_ACCESS_KEY"], "")})
}

func TestUnknownActionFails(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	if _, err := s.ec2().DescribeVpcs(t.Context(), nil); err == nil {
		t.Error("an unknown action is answered")
	}
	if code, stderr := s.stop(); code != 1 || !strings.Contains(stderr, "DescribeVpcs") {
		t.Errorf("exit %d: %s, want 1 and the action's name", code, stderr)
	}
}

// TestExample: the example is a valid world, and a world file determines what is served.
func TestExample(t *testing.T) {
	t.Parallel()
	var example, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--example"}, nil, &example, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	s := start(t, example.String(), "--world", "-", "--instance", "i-0fa4e000000000002")
	out, err := s.ec2().DescribeSubnets(t.Context(), nil)
	if err != nil || len(out.Subnets) != 2 || *out.Subnets[1].AvailableIpAddressCount != 4091-100-254 {
		t.Errorf("subnets %+v (%v)", out, err)
	}
	if code, text := s.stop(); code != 0 {
		t.Errorf("exit %d: %s", code, text)
	}
}

func TestHelpAndMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args         []string
		stdin        string
		code         int
		out, errText string
	}{
		{[]string{"--help"}, "", 0, "Examples:", ""},
		{[]string{"--nonsense"}, "", 2, "", "nonsense"},
		{[]string{"more"}, "", 2, "", `unexpected argument "more"`},
		{[]string{"--type", "m5.none"}, "", 2, "", "m5.none"},
		{[]string{"--cidr", "10.0.0.0"}, "", 2, "", "--cidr"},
		{[]string{"--instance", "i-none"}, "", 2, "", "i-none"},
		{[]string{"--world", "/does/not/exist"}, "", 2, "", "/does/not/exist"},
		{[]string{"--world", "-"}, `{"vpcs":[],"colour":"red"}`, 2, "", "colour"},
		{[]string{"--world", "-"}, `{"latency":{"DescribeVpcs":"1s"}}`, 2, "", "DescribeVpcs"},
		{[]string{"--ec2", "nowhere:x"}, "", 2, "", "nowhere"},
		{[]string{"--control", "0.0.0.0:0"}, "", 2, "", "loopback"},
		{[]string{"--throttle", "some"}, "", 2, "", "none or account"},
		{[]string{"--metadata-lag", "-1s"}, "", 2, "", "--metadata-lag"},
		{[]string{"--faults", "/does/not/exist"}, "", 2, "", "/does/not/exist"},
		{[]string{"--faults", "-"}, `[{"action":"DescribeVpcs","reply":"hang"}]`, 2, "", "DescribeVpcs"},
		{[]string{"--faults", "-"}, `[{"action":"*","reply":"lunch"}]`, 2, "", "lunch"},
		{[]string{"--faults", "-"}, `{}`, 2, "", "faults"},
	}
	for _, tt := range tests {
		var out, stderr bytes.Buffer
		code := run(t.Context(), tt.args, strings.NewReader(tt.stdin), &out, &stderr)
		if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(stderr.String(), tt.errText) || (code == 0) != (stderr.Len() == 0) {
			t.Errorf("%q: exit %d, want %d with %q %q\n%s%s", tt.args, code, tt.code, tt.out, tt.errText, out.String(), stderr.String())
		}
	}
}
