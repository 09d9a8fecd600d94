package e2e_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
)

// TestConfig_EC2Endpoint makes a daemon reach EC2 through a proxy inside the node, by setting
// AWS_EC2_ENDPOINT, which takes precedence over the SDK's own variable. Each request names
// the release in VPC_CNI_VERSION.
func TestConfig_EC2Endpoint(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	listener, err := n.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: vpc.EC2.String()})
	transport := &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
		return n.Dial(network, address, testenv.Left(t))
	}}
	proxy.Transport = transport
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) } // the daemon exits during a request
	var mu sync.Mutex
	agents := map[string]int{} // guarded by mu: user agents, with their number of requests
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		agents[r.UserAgent()]++
		mu.Unlock()
		proxy.ServeHTTP(w, r)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }() // ends on Close
	t.Cleanup(func() { _ = server.Close(); <-ended; transport.CloseIdleConnections() })

	l.start(n, map[string]string{
		"AWS_EC2_ENDPOINT":     "http://" + listener.Addr().String(),
		"AWS_ENDPOINT_URL_EC2": "http://127.0.0.1:1", // nothing listens there
		"VPC_CNI_VERSION":      "v9.8.7",
	})
	l.mustAdd(n, "p", 1, 1)
	mu.Lock()
	defer mu.Unlock()
	if len(agents) == 0 {
		t.Error("no request came through the proxy")
	}
	for agent, count := range agents {
		if !strings.Contains(agent, "amazon-vpc-cni-k8s/v9.8.7") {
			t.Errorf("%d requests of user agent %q, which does not name the release", count, agent)
		}
	}
}
