package imds

import (
	"context"
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"cnictl/daemon/ipam"
)

const (
	documentPath = dynamic + "instance-identity/document"
	macPath      = metaData + "mac"
	macsPath     = metaData + "network/interfaces/macs/"
	ipv6Path     = metaData + "ipv6"
)

// Identity identifies the instance.
type Identity struct {
	Region, AZ   string
	Account      string // of the instance and its role; empty if the document has none
	InstanceID   string
	InstanceType string
	VPCID        string
	SubnetID     string // of the primary ENI
	PrimaryIPv4  netip.Addr
	PrimaryIPv6  netip.Addr // zero if none; read only with Config.IPv6
	PrimaryMAC   string     // lower-case colon form
	PrimaryENI   ipam.ENIID
}

// Identity reads the instance's identity in two rounds of parallel reads.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	var mac string
	var ipv6 netip.Addr
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		body, err := c.need(gctx, documentPath)
		if err == nil {
			id, err = parseDocument(body)
		}
		return err
	})
	g.Go(func() (err error) {
		mac, err = c.need(gctx, macPath)
		return err
	})
	if c.conf.IPv6 {
		intoOptional(g, gctx, c, ipv6Path, &ipv6, func(path, s string) (netip.Addr, error) { return parseAddr(path, strings.TrimSpace(s), true) })
	}
	if err := g.Wait(); err != nil {
		return Identity{}, err
	}
	id.PrimaryIPv6 = ipv6
	mac = strings.TrimSpace(mac)
	canonical, err := parseMAC(macPath, mac)
	if err != nil {
		return Identity{}, err
	}
	id.PrimaryMAC = canonical
	base := macsPath + mac + "/"
	g, gctx = errgroup.WithContext(ctx)
	into(g, gctx, c, base+"interface-id", &id.PrimaryENI, parseENIID)
	into(g, gctx, c, base+"subnet-id", &id.SubnetID, func(path, s string) (string, error) { return parseID(path, "subnet-", s) })
	into(g, gctx, c, base+"vpc-id", &id.VPCID, func(path, s string) (string, error) { return parseID(path, "vpc-", s) })
	if err := g.Wait(); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// into reads a path that must exist, in g, and parses it into *to.
func into[T any](g *errgroup.Group, ctx context.Context, c *Client, path string, to *T, parse func(path, s string) (T, error)) {
	g.Go(func() error {
		body, err := c.need(ctx, path)
		if err != nil {
			return err
		}
		*to, err = parse(path, body)
		return err
	})
}

var accountID = regexp.MustCompile(`^\d{12}$`)

// parseDocument reads the instance identity document.
func parseDocument(body string) (Identity, error) {
	var doc struct {
		Account          string `json:"accountId"`
		Region           string `json:"region"`
		AvailabilityZone string `json:"availabilityZone"`
		InstanceID       string `json:"instanceId"`
		InstanceType     string `json:"instanceType"`
		PrivateIP        string `json:"privateIp"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		return Identity{}, &AnswerError{documentPath, body, "a JSON object (" + err.Error() + ")"}
	}
	var id Identity
	if accountID.MatchString(doc.Account) {
		id.Account = doc.Account
	}
	var err error
	for _, word := range []struct {
		to          *string
		field, from string
	}{
		{&id.Region, "region", doc.Region},
		{&id.AZ, "availabilityZone", doc.AvailabilityZone},
		{&id.InstanceType, "instanceType", doc.InstanceType},
	} {
		if *word.to, err = parseWord(documentPath+"#"+word.field, word.from); err != nil {
			return Identity{}, err
		}
	}
	if id.InstanceID, err = parseID(documentPath+"#instanceId", "i-", doc.InstanceID); err != nil {
		return Identity{}, err
	}
	if id.PrimaryIPv4, err = parseAddr(documentPath+"#privateIp", doc.PrivateIP, false); err != nil {
		return Identity{}, err
	}
	return id, nil
}
