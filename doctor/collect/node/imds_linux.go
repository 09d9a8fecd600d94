package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
)

const (
	metadataURL = "http://169.254.169.254"
	tokenPath   = "/latest/api/token"
	tokenTime   = "60" // seconds
	macsPath    = "network/interfaces/macs/"
	maxCards    = 1_000 // and devices
)

// tokenWait bounds the wait for the token, so that an unreachable service is recognised before
// the source's time is over.
const tokenWait = 2 * time.Second

// metadata reads the tree of the instance metadata service.
type metadata struct {
	c     *collector
	url   string
	token string
}

// imds reads what the metadata service says about the instance and its interfaces. The way it
// refuses what every daemon needs at its start is evidence too.
func (c *collector) imds(ctx context.Context) (out evidence.IMDS, _ error) {
	m := metadata{c: c, url: strings.TrimSuffix(cmp.Or(c.Metadata, metadataURL), "/")}
	var err error
	if out.Token, out.Failure, err = m.authorize(ctx, min(tokenWait, c.Timeout*2/3)); err != nil || out.Token != "ok" {
		return out, err
	}
	var macs string
	for _, needed := range []struct {
		path string
		to   *string
	}{{"instance-id", &out.Instance}, {macsPath, &macs}} {
		var failure string
		if *needed.to, failure, err = m.ask(ctx, needed.path); err != nil || failure != "" {
			return evidence.IMDS{Token: "failed", Failure: needed.path + ": " + failure}, err
		}
	}
	for path, to := range map[string]*string{"instance-type": &out.InstanceType, "placement/availability-zone": &out.Zone} {
		if *to, err = m.read(ctx, path); err != nil {
			return out, err
		}
	}
	out.ENIs = []evidence.IMDSInterface{}
	for _, mac := range strings.Fields(macs) {
		i, err := m.eni(ctx, strings.TrimSuffix(mac, "/"))
		if err != nil {
			return out, err
		}
		out.ENIs = append(out.ENIs, i)
		if i.IsPrimary() {
			if out.VPCCIDRs, err = m.prefixes(ctx, macsPath+strings.TrimSuffix(mac, "/")+"/", "vpc-ipv4-cidr-blocks",
				"vpc-ipv6-cidr-blocks"); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// authorize requests a token and returns the outcome and, for an unexpected status, what it was.
func (m *metadata) authorize(ctx context.Context, wait time.Duration) (outcome, failure string, _ error) {
	ctx, cancel := within(ctx, wait)
	defer cancel()
	token, status, err := get(ctx, m.c.http, http.MethodPut, m.url+tokenPath, http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {tokenTime}})
	var network net.Error
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused", "", nil
	case errors.As(err, &network) && network.Timeout():
		return "timeout", "", nil
	case err != nil:
		return "", "", err
	case status == http.StatusForbidden:
		return "forbidden", "", nil
	case status == http.StatusNotFound:
		return "not-found", "", nil
	case status != http.StatusOK:
		return "failed", fmt.Sprintf("token: HTTP status %d", status), nil
	}
	m.token = string(token)
	return "ok", "", nil
}

// ask reads a path below meta-data that every instance has, and returns how the service refuses it.
func (m *metadata) ask(ctx context.Context, path string) (text, failure string, _ error) {
	body, status, err := m.get(ctx, path)
	switch text = strings.TrimSpace(string(body)); {
	case errors.Is(err, unix.ECONNREFUSED):
		return "", "connection refused", nil
	case err != nil:
		return "", "", err
	case status != http.StatusOK:
		return "", fmt.Sprintf("HTTP status %d", status), nil
	case text == "":
		return "", "empty", nil
	}
	return text, "", nil
}

func (m *metadata) get(ctx context.Context, path string) (body []byte, status int, err error) {
	return get(ctx, m.c.http, http.MethodGet, m.url+"/latest/meta-data/"+path, http.Header{"X-Aws-Ec2-Metadata-Token": {m.token}})
}

// read reads a path below meta-data, empty if it does not exist.
func (m *metadata) read(ctx context.Context, path string) (string, error) {
	body, status, err := m.get(ctx, path)
	switch {
	case err != nil:
		return "", err
	case status == http.StatusNotFound:
		return "", nil
	case status != http.StatusOK:
		return "", fmt.Errorf("metadata %s: HTTP status %d", path, status)
	}
	return strings.TrimSpace(string(body)), nil
}

// eni reads one interface.
func (m *metadata) eni(ctx context.Context, mac string) (out evidence.IMDSInterface, err error) {
	base := macsPath + mac + "/"
	out.MAC = strings.ToLower(mac)
	if out.ID, err = m.read(ctx, base+"interface-id"); err != nil {
		return out, err
	}
	if out.Subnet, err = m.read(ctx, base+"subnet-id"); err != nil {
		return out, err
	}
	for path, to := range map[string]*int{"device-number": &out.Device, "network-card": &out.Card} {
		text, err := m.read(ctx, base+path)
		if err != nil {
			return out, err
		}
		if text == "" {
			continue // older instance types have one card
		}
		if *to, err = strconv.Atoi(text); err != nil || *to < 0 || *to > maxCards {
			return out, fmt.Errorf("metadata %s: want a number, not %.40q", base+path, text)
		}
	}
	// IPv6 addresses of an interface are the node's own: pods get theirs from its prefixes.
	text, err := m.read(ctx, base+"local-ipv4s")
	if err != nil {
		return out, err
	}
	out.IPs = []netip.Addr{}
	for _, word := range strings.Fields(text) {
		a, err := introspect.ParseAddr(word)
		if err != nil {
			return out, fmt.Errorf("metadata %slocal-ipv4s: want IP addresses, not %.40q", base, word)
		}
		out.IPs = append(out.IPs, a)
	}
	out.Prefixes, err = m.prefixes(ctx, base, "ipv4-prefix", "ipv6-prefix")
	return out, err
}

// prefixes reads lists of CIDRs.
func (m *metadata) prefixes(ctx context.Context, base string, paths ...string) ([]netip.Prefix, error) {
	out := []netip.Prefix{}
	for _, path := range paths {
		text, err := m.read(ctx, base+path)
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(text) {
			p, err := netip.ParsePrefix(word)
			if err != nil {
				return nil, fmt.Errorf("metadata %s: want CIDRs, not %.40q", base+path, word)
			}
			out = append(out, p)
		}
	}
	return out, nil
}
