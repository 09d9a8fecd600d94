package ipamd

import (
	"net"
	"testing"
	"time"

	"cnictl/daemon/config"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/testenv"
)

// TestHTTPTimeout: HTTP_TIMEOUT bounds an EC2 call. The minimum is ten seconds, so the test
// waits a hundredth of the setting.
func TestHTTPTimeout(t *testing.T) {
	// Nothing may look for credentials outside the test.
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, but nothing answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	env := map[string]string{"HTTP_TIMEOUT": "20", "ENABLE_IPv4": "true", "AWS_EC2_ENDPOINT": "http://" + silent.Addr().String()}
	c, problems := config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if len(problems) > 0 || c.HTTPTimeout != 20*time.Second {
		t.Fatalf("HTTP_TIMEOUT=20 is %v: %v", c.HTTPTimeout, problems)
	}
	c.HTTPTimeout /= 100
	var took time.Duration
	ec2, err := newEC2(t.Context(), c, imds.Identity{Region: "us-west-2", InstanceID: "i-0"}, func(call vpcapi.Call) { took = call.Took })
	if err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 9*time.Second, "the timeout, which is less than the default", func() {
		if _, err := ec2.DescribeSubnets(t.Context()); err == nil || took < c.HTTPTimeout {
			t.Errorf("%v after %s, want a timeout of %s", err, took, c.HTTPTimeout)
		}
	})
}
