package vpc_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/fakeaws"
	"cnictl/testenv/vpc"
)

func TestLink_AppearsAfterTheDelayAndGoesWithTheAttachment(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	l := newLab(t, vpc.Options{LinkDelay: delay, LinkName: vpc.EthLinkName})
	b := l.host(0) // ENIs attached at boot are there at once
	if got := b.links(); got[b.primary.MAC] != "eth0" || len(got) != 1 {
		t.Fatalf("links at boot: %v", got)
	}
	var second fakeaws.ENI
	took := testenv.Took(func() {
		second = b.attach(0, 1)
		testenv.Eventually(t, "the link", func() bool { return len(b.links()) == 2 })
	})
	if took < delay {
		t.Errorf("link appeared after %v, before the delay of %v", took, delay)
	}
	if got := b.links(); got[second.MAC] != "eth1" {
		t.Errorf("links: %v; want eth1 with MAC %s", got, second.MAC)
	}
	b.configure(second, 2)
	x := l.assign(second)
	b.own(x)
	b.from(x, 2)
	a := l.host(1)
	a.reaches(anyAddr, x)

	if err := l.world.DetachENI(second.Attachment.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the link to go", func() bool { return len(b.links()) == 1 })
	a.misses(anyAddr, x)
	a.misses(anyAddr, second.PrimaryIP)
	a.reaches(anyAddr, b.primary.PrimaryIP)
}

func TestLink_DetachedDuringTheDelayNeverAppears(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	l := newLab(t, vpc.Options{LinkDelay: delay})
	b := l.host(0)
	first := b.attach(0, 1)
	if err := l.world.DetachENI(first.Attachment.ID); err != nil {
		t.Fatal(err)
	}
	// Once a later attachment's link is there, the first one's delay is over too.
	second := b.attach(0, 2)
	testenv.Eventually(t, "the second link", func() bool { return b.links()[second.MAC] != "" })
	if got := b.links(); got[first.MAC] != "" {
		t.Errorf("links: %v; %s was detached", got, first.MAC)
	}
}

func TestJoin_LeavesAndComesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	a, b := l.host(0), l.host(0)
	if err := l.fabric.Join(b.id, b.ns); err == nil {
		t.Error("an instance joined twice")
	}
	if err := l.fabric.Leave(b.id); err != nil {
		t.Fatal(err)
	}
	a.misses(anyAddr, b.primary.PrimaryIP)
	if got := b.links(); len(got) != 0 {
		t.Errorf("links after Leave: %v", got)
	}
	if err := l.fabric.Join(b.id, b.ns); err != nil {
		t.Fatal(err)
	}
	b.configure(b.primary, 254)
	a.reaches(anyAddr, b.primary.PrimaryIP)
}

func TestNewFabric_FollowsAWorldThatIsThere(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	b := l.host(0)
	x := l.assign(b.primary)
	second, err := vpc.NewFabric(vpc.Options{World: l.world})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if id, ok := second.Instance(x); !ok || id != b.id {
		t.Errorf("Instance(%s) = %q, %v; want %s", x, id, ok, b.id)
	}
	if id, ok := second.Instance(netip.MustParseAddr("10.1.0.200")); ok {
		t.Errorf("a free address belongs to %s", id)
	}
}

// client makes HTTP requests from a host.
func (h *host) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return nil, err
			}
			return h.ns.Dial(ctx, network, netip.Addr{}, to)
		},
	}}
}

func (h *host) http(method, url string, header http.Header, body io.Reader) (int, string) {
	h.lab.t.Helper()
	req, err := http.NewRequestWithContext(h.lab.t.Context(), method, url, body)
	if err != nil {
		h.lab.t.Fatal(err)
	}
	req.Header = header
	resp, err := h.client().Do(req)
	if err != nil {
		h.lab.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.lab.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestServers_KnowTheInstanceByItsAddress(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	imds := "http://" + vpc.IMDS.Addr().String()
	for _, h := range []*host{l.host(0), l.host(1)} {
		status, token := h.http("PUT", imds+"/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}}, nil)
		if status != http.StatusOK {
			t.Fatalf("token: status %d, %s", status, token)
		}
		status, id := h.http("GET", imds+"/latest/meta-data/instance-id", http.Header{"X-Aws-Ec2-Metadata-Token": {token}}, nil)
		if status != http.StatusOK || id != h.id {
			t.Errorf("instance-id: status %d, %q; want %s", status, id, h.id)
		}
	}
}

func TestServers_EC2API(t *testing.T) {
	t.Parallel()
	l := newLab(t, vpc.Options{})
	h := l.host(0)
	// Unsigned, so EC2 refuses it. The daemon's tests cover signed calls.
	status, text := h.http("POST", "http://"+vpc.EC2.String()+"/",
		http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}},
		strings.NewReader("Action=DescribeSubnets&Version=2016-11-15"))
	if status != http.StatusUnauthorized || !strings.Contains(text, "<Code>AuthFailure</Code>") {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestNewFabric_WithoutWorld(t *testing.T) {
	t.Parallel()
	if _, err := vpc.NewFabric(vpc.Options{}); err == nil {
		t.Error("NewFabric accepted no world")
	}
}
