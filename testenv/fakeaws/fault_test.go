package fakeaws_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/fakeaws"
)

func (b *bench) fault(r fakeaws.Rule) (id string) {
	b.t.Helper()
	id, err := b.AddFault(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) create(ctx context.Context, ips int32) (*ec2.CreateNetworkInterfaceOutput, error) {
	return b.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, SecondaryPrivateIpAddressCount: aws.Int32(ips)})
}

// answerOf returns how the SDK read an answer: EC2's error code, "broken" for any other error,
// "" for success.
func answerOf(err error) string {
	var e smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && !strings.HasPrefix(e.ErrorCode(), "Unknown"):
		return e.ErrorCode()
	}
	return "broken"
}

// For every reply: how the real SDK reads it, and whether the call took effect.
func TestFault_Replies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fault fakeaws.Fault
		want  string
		made  int
		log   string
	}{
		{fakeaws.Internal, "InternalError", 0, "InternalError"},
		{fakeaws.Unavailable, "Unavailable", 0, "Unavailable"},
		{fakeaws.Fault{Code: "InternalError", Effect: true}, "InternalError", 1, "InternalError, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyClosed}, "broken", 0, "closed"},
		{fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}, "broken", 1, "closed, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyTruncated}, "broken", 1, "truncated, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyGarbage}, "broken", 0, "garbage"},
		{fakeaws.Fault{Reply: fakeaws.ReplyGarbage, Effect: true}, "broken", 1, "garbage, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyHTML}, "broken", 0, "html"},
	} {
		t.Run(row.log, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			before := len(b.ENIs())
			b.fault(fakeaws.Rule{Action: "CreateNetworkInterface", Last: 1, Fault: row.fault})
			out, err := b.create(t.Context(), 0)
			got := answerOf(err)
			if err == nil && out.NetworkInterface == nil {
				got = "broken" // the SDK reads an empty answer as success
			}
			if got != row.want {
				t.Errorf("the SDK says %q (%v), want %q", got, err, row.want)
			}
			if made := len(b.ENIs()) - before; made != row.made {
				t.Errorf("%d ENIs made, want %d", made, row.made)
			}
			if log := b.Calls()[0].Fault; log != row.log {
				t.Errorf("logged as %q, want %q", log, row.log)
			}
			if _, err := b.create(t.Context(), 0); err != nil {
				t.Errorf("the call after the fault: %v", err)
			}
			b.noViolations()
		})
	}
}

// A well-formed answer that is empty, or names things that do not exist.
func TestFault_WrongContent(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{Action: "CreateNetworkInterface", Last: 1, Fault: fakeaws.Fault{Reply: fakeaws.ReplyEmpty}})
	b.fault(fakeaws.Rule{Action: "CreateNetworkInterface", First: 2, Fault: fakeaws.Fault{Reply: fakeaws.ReplyForeign}})
	if out, err := b.create(t.Context(), 0); err != nil || out.NetworkInterface != nil {
		t.Errorf("empty answer: %+v (%v)", out, err)
	}
	out, err := b.create(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := b.ENI(*out.NetworkInterface.NetworkInterfaceId); there {
		t.Errorf("%s exists", *out.NetworkInterface.NetworkInterfaceId)
	}
	if n := len(b.ENIs()); n != 3 {
		t.Errorf("%d ENIs, want the primary one and two created", n)
	}
}

// Neither a hang nor a stall ends before the client gives up; they differ only in EC2's effect.
func TestFault_HangAndStall(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fault fakeaws.Fault
		made  int
	}{
		{fakeaws.Fault{Reply: fakeaws.ReplyHang}, 0},
		{fakeaws.Fault{Reply: fakeaws.ReplyHang, Effect: true}, 1},
		{fakeaws.Fault{Reply: fakeaws.ReplyStall}, 1},
	} {
		t.Run(row.fault.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			before := len(b.ENIs())
			b.fault(fakeaws.Rule{Action: "CreateNetworkInterface", Fault: row.fault})
			ctx, giveUp := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := b.create(ctx, 0)
				done <- err
			}()
			for len(b.Calls()) == 0 { // until the server has the call; bounded by the test's own limit
				select {
				case err := <-done:
					t.Fatalf("answered: %v", err)
				default:
				}
			}
			select {
			case err := <-done:
				t.Fatalf("answered: %v", err)
			default:
			}
			giveUp()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v, want the client's own end", err)
			}
			if made := len(b.ENIs()) - before; made != row.made {
				t.Errorf("%d ENIs made, want %d", made, row.made)
			}
		})
	}
}

// A stalled answer sends its headers and part of its body.
func TestFault_StallBegins(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{Action: "IMDS", Path: "api/token", Fault: fakeaws.Fault{Reply: fakeaws.ReplyStall}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.server.IMDSURL+"/latest/api/token", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	half := make([]byte, resp.ContentLength/2)
	if _, err := io.ReadFull(resp.Body, half); err != nil || len(half) == 0 {
		t.Fatalf("%d bytes of %d: %v", len(half), resp.ContentLength, err)
	}
	b.Close() // closing the world ends the stall
	if rest, err := io.ReadAll(resp.Body); err == nil || len(rest) > 0 {
		t.Errorf("after the stall %q (%v)", rest, err)
	}
}

// Every mutating call loses its reply: it was carried out, and the SDK's retry meets its
// effect.
func TestFault_LostReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}})
	lost := func(what string, err error) {
		t.Helper()
		if answerOf(err) != "broken" {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := b.create(t.Context(), 2)
	lost("create", err)
	e := b.ENIs()[1]
	_, err = b.ec2.AttachNetworkInterface(t.Context(), &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &e.ID, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1)})
	lost("attach", err)
	if e, _ = b.ENI(e.ID); !e.Attached() {
		t.Errorf("not attached: %+v", e.Attachment)
	}
	_, err = b.ec2.AssignPrivateIpAddresses(t.Context(), &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &e.ID, SecondaryPrivateIpAddressCount: aws.Int32(1)})
	lost("assign", err)
	if e, _ = b.ENI(e.ID); len(e.SecondaryIPs) != 3 {
		t.Errorf("assigned %v, want three", e.SecondaryIPs)
	}
	_, err = b.ec2.UnassignPrivateIpAddresses(t.Context(), &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &e.ID, PrivateIpAddresses: []string{e.SecondaryIPs[0].String()}})
	lost("unassign", err)
	if e, _ = b.ENI(e.ID); len(e.SecondaryIPs) != 2 {
		t.Errorf("left %v, want two", e.SecondaryIPs)
	}
	_, err = b.ec2.DetachNetworkInterface(t.Context(), &ec2.DetachNetworkInterfaceInput{AttachmentId: &e.Attachment.ID})
	lost("detach", err)
	if e, _ = b.ENI(e.ID); e.Attachment.ID != "" {
		t.Errorf("still attached: %+v", e.Attachment)
	}
	_, err = b.ec2.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &e.ID})
	lost("delete", err)
	if _, there := b.ENI(e.ID); there {
		t.Error("not deleted")
	}
	b.RemoveFaults()
	if code := refused(b, b.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &e.ID}); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("deleted again: %s", code)
	}
	b.noViolations()
}

// A call limited by AtMost assigns fewer addresses than EC2 could, and reports success.
func TestFault_PartialSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	for _, action := range []string{"CreateNetworkInterface", "AssignPrivateIpAddresses", "AssignIpv6Addresses", "UnassignPrivateIpAddresses"} {
		b.fault(fakeaws.Rule{Action: action, Fault: fakeaws.Fault{AtMost: 2}})
	}
	made, err := b.create(t.Context(), 5)
	if err != nil || len(made.NetworkInterface.PrivateIpAddresses) != 3 {
		t.Fatalf("created with %+v (%v), want a primary and 2 of 5", made, err)
	}
	id := made.NetworkInterface.NetworkInterfaceId
	ips := must(b, b.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(3)})
	prefixes := must(b, b.ec2.AssignPrivateIpAddresses, &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: aws.Int32(3)})
	six := must(b, b.ec2.AssignIpv6Addresses, &ec2.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6PrefixCount: aws.Int32(3)})
	if len(ips.AssignedPrivateIpAddresses) != 2 || len(prefixes.AssignedIpv4Prefixes) != 2 || len(six.AssignedIpv6Prefixes) != 2 {
		t.Errorf("assigned %v, %v, %v, want two of each", ips, prefixes, six)
	}
	e, _ := b.ENI(*id)
	var all []string
	for _, a := range e.SecondaryIPs {
		all = append(all, a.String())
	}
	must(b, b.ec2.UnassignPrivateIpAddresses, &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, PrivateIpAddresses: all})
	if e, _ = b.ENI(*id); len(e.SecondaryIPs) != 2 {
		t.Errorf("%v are left of 4, want 2", e.SecondaryIPs)
	}
	b.noViolations()
}

func kinds(changes []fakeaws.Change) (out []fakeaws.ChangeKind) {
	for _, c := range changes {
		out = append(out, c.Kind)
	}
	return out
}

// Held attachments: what EC2, the metadata service and the network show before and after
// Settle.
func TestFault_Holds(t *testing.T) {
	t.Parallel()
	attach := func(b *bench, id string) { // through EC2, as a client does
		b.t.Helper()
		must(b, b.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1)})
	}
	detach := func(b *bench, id string) {
		b.t.Helper()
		e, _ := b.ENI(id)
		must(b, b.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: &e.Attachment.ID})
	}
	type seen struct {
		EC2   string // the attachment's state in DescribeNetworkInterfaces
		IMDS  int    // interfaces that the metadata service shows
		Links []fakeaws.ChangeKind
	}
	for _, row := range []struct {
		hold                 fakeaws.Hold
		action               string
		do                   func(b *bench, id string)
		held, settled, after seen // after: once detached too
	}{
		{fakeaws.HoldAttaching, "AttachNetworkInterface", attach,
			seen{"attaching", 1, nil}, seen{"attached", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}},
			seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}},
		{fakeaws.HoldLink, "AttachNetworkInterface", attach,
			seen{"attached", 2, nil}, seen{"attached", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}},
			seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}},
		{fakeaws.HoldDetaching, "DetachNetworkInterface", func(b *bench, id string) { attach(b, id); detach(b, id) },
			seen{"detaching", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}}, seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}, seen{}},
	} {
		t.Run(string(row.hold), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			e := b.eni(fakeaws.ENISpec{})
			var mu sync.Mutex
			var changes []fakeaws.Change
			defer b.Subscribe(func(c fakeaws.Change) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
			})()
			look := func() seen {
				t.Helper()
				n := must(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{e.ID}}).NetworkInterfaces[0]
				state := ""
				if n.Attachment != nil {
					state = string(n.Attachment.Status)
				}
				macs, _ := metadata(t, b.imds(), "network/interfaces/macs")
				mu.Lock()
				defer mu.Unlock()
				return seen{state, len(strings.Fields(macs)), kinds(changes)}
			}
			settle := func() {
				t.Helper()
				if err := b.Settle(e.ID); err != nil {
					t.Fatal(err)
				}
			}
			id := b.fault(fakeaws.Rule{Action: row.action, Fault: fakeaws.Fault{Hold: row.hold}})
			row.do(b, e.ID)
			b.RemoveFault(id)
			if diff := cmp.Diff(row.held, look()); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			settle()
			settle() // there is nothing more to settle
			if diff := cmp.Diff(row.settled, look()); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
			if row.hold == fakeaws.HoldDetaching {
				attach(b, e.ID) // works as if nothing had happened
				return
			}
			detach(b, e.ID)
			if diff := cmp.Diff(row.after, look()); diff != "" {
				t.Errorf("detached (-want +got):\n%s", diff)
			}
		})
	}
}

// An attachment without a link ends without an event for the network.
func TestFault_HeldAttachmentEnds(t *testing.T) {
	t.Parallel()
	for _, hold := range []fakeaws.Hold{fakeaws.HoldAttaching, fakeaws.HoldLink} {
		b := newBench(t, fakeaws.Options{})
		e := b.eni(fakeaws.ENISpec{})
		var links []fakeaws.ChangeKind
		cancel := b.Subscribe(func(c fakeaws.Change) { links = append(links, c.Kind) })
		attachment, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 1, Hold: hold})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.DetachENI(attachment), b.DeleteENI(e.ID)); err != nil {
			t.Errorf("%s: %v", hold, err)
		}
		cancel()
		if len(links) > 0 {
			t.Errorf("%s: the network heard of %v", hold, links)
		}
	}
}

// Rules count the calls that match them, separately for each action.
func TestRule_Numbers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule fakeaws.Rule
		want string // by call, of the ones below: x met, . not
	}{
		{fakeaws.Rule{Action: "DescribeSubnets"}, "x.x.x.x."},
		{fakeaws.Rule{Action: "DescribeSubnets", First: 2, Last: 3}, "..x.x..."},
		{fakeaws.Rule{Action: "*", First: 3}, "....xxxx"},
		{fakeaws.Rule{Action: "*", Last: 1}, "xx......"},
		{fakeaws.Rule{Action: "IMDS"}, "........"},
		{fakeaws.Rule{Action: "DescribeSecurityGroups", Params: map[string]string{"GroupId.1": "sg-0fa4e000000000001"}, Last: 3}, ".x.x.x.."},
		{fakeaws.Rule{Action: "*", Params: map[string]string{"GroupId.1": "sg-1"}}, "........"},
	} {
		b := newBench(t, fakeaws.Options{})
		must(b, b.ec2.DescribeSubnets, &ec2.DescribeSubnetsInput{}) // before the rule: not numbered
		row.rule.Fault = fakeaws.Internal
		if row.rule.Action == "IMDS" {
			row.rule.Fault = fakeaws.Fault{Status: 500}
		}
		id := b.fault(row.rule)
		var got strings.Builder
		mark := func(err error) {
			if answerOf(err) == "InternalError" {
				got.WriteString("x")
			} else {
				got.WriteString(".")
			}
		}
		for range 4 {
			_, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
			mark(err)
			_, err = b.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0fa4e000000000001"}})
			mark(err)
		}
		if got.String() != row.want {
			t.Errorf("%+v: %s, want %s", row.rule, &got, row.want)
		}
		if !b.RemoveFault(id) || b.RemoveFault(id) {
			t.Errorf("%s is not removed once", id)
		}
	}
}

// The oldest rule that a call meets applies; the others count the call too.
func TestRule_Order(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{ID: "a", Action: "DescribeSubnets", Last: 2, Fault: fakeaws.Internal})
	b.fault(fakeaws.Rule{ID: "b", Action: "DescribeSubnets", First: 2, Last: 3, Fault: fakeaws.Throttled})
	if _, err := b.AddFault(fakeaws.Rule{ID: "a", Action: "*", Fault: fakeaws.Internal}); err == nil {
		t.Error("two rules of one id")
	}
	var got []string
	for range 4 {
		_, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		got = append(got, answerOf(err))
	}
	if diff := cmp.Diff([]string{"InternalError", "InternalError", "RequestLimitExceeded", ""}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if rules := b.Faults(); len(rules) != 2 || rules[0].ID != "a" {
		t.Errorf("rules %+v", rules)
	}
}

// drawn returns which of an action's first n calls a random rule hits.
func drawn(t *testing.T, seed uint64, n int, others bool) (met []int) {
	t.Helper()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{Action: "*", Probability: 0.3, Seed: seed, Fault: fakeaws.Internal})
	var all sync.WaitGroup
	defer all.Wait()
	if others {
		all.Go(func() {
			for range n {
				_, _ = b.ec2.DescribeSecurityGroups(t.Context(), nil) // its result does not matter
			}
		})
	}
	for i := range n {
		if _, err := b.ec2.DescribeSubnets(t.Context(), nil); err != nil {
			met = append(met, i+1)
		}
	}
	return met
}

// Random faults depend only on the seed, the action and the number: calls of other actions, in
// any order, change nothing.
func TestRule_Probability(t *testing.T) {
	t.Parallel()
	const calls = 200
	alone := drawn(t, 5, calls, false)
	if n := len(alone); n < calls*20/100 || n > calls*40/100 {
		t.Errorf("%d of %d calls met a fault of probability 0.3", n, calls)
	}
	if again := drawn(t, 5, calls, true); !slices.Equal(alone, again) {
		t.Errorf("calls %v, with others beside %v", alone, again)
	}
	if other := drawn(t, 6, calls, false); slices.Equal(alone, other) {
		t.Error("another seed draws the same calls")
	}
	f := fakeaws.FailRandomly(0.3, 5, fakeaws.Internal)
	var same []int
	for n := range calls {
		if f("DescribeSubnets", n+1) != nil {
			same = append(same, n+1)
		}
	}
	if !slices.Equal(alone, same) {
		t.Errorf("FailRandomly meets %v, a rule %v", same, alone)
	}
}

func TestRule_Refused(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t, fakeaws.Options{})
	for _, row := range []struct {
		rule fakeaws.Rule
		says string
	}{
		{fakeaws.Rule{Action: "DescribeVpcs", Fault: fakeaws.Internal}, "DescribeVpcs"},
		{fakeaws.Rule{Fault: fakeaws.Internal}, "action"},
		{fakeaws.Rule{Action: "*"}, "does nothing"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Effect: true}}, "does nothing"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Reply: "lunch"}}, "lunch"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Reply: fakeaws.ReplyHang, Code: "InternalError"}}, "one of the two"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Status: 500}}, "code"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Code: "X", Status: 200}}, "200"},
		{fakeaws.Rule{Action: "*", First: 3, Last: 2, Fault: fakeaws.Internal}, "3 to 2"},
		{fakeaws.Rule{Action: "*", First: -1, Fault: fakeaws.Internal}, "-1"},
		{fakeaws.Rule{Action: "*", Probability: 1.5, Fault: fakeaws.Internal}, "1.5"},
		{fakeaws.Rule{Action: "*", Path: "meta-data/mac", Fault: fakeaws.Internal}, "path"},
		{fakeaws.Rule{Action: "IMDS", Params: map[string]string{"a": "b"}, Fault: fakeaws.Fault{Status: 500}}, "params"},
		{fakeaws.Rule{Action: "IMDS", Fault: fakeaws.Internal}, "status"},
		{fakeaws.Rule{Action: "IMDS", Fault: fakeaws.Fault{Reply: fakeaws.ReplyForeign}}, "foreign"},
		{fakeaws.Rule{Action: "DescribeSubnets", Fault: fakeaws.Fault{AtMost: 1}}, "atMost"},
		{fakeaws.Rule{Action: "AssignPrivateIpAddresses", Fault: fakeaws.Fault{AtMost: -1}}, "-1"},
		{fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Hold: fakeaws.HoldLink}}, "hold"},
		{fakeaws.Rule{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Hold: fakeaws.HoldDetaching}}, "hold"},
		{fakeaws.Rule{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Hold: "for ever"}}, "for ever"},
		{fakeaws.Rule{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Hold: fakeaws.HoldLink, Code: "InternalError"}}, "without effect"},
	} {
		if _, err := w.AddFault(row.rule); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: %v, want an error that says %q", row.rule, err, row.says)
		}
	}
	if rules := w.Faults(); len(rules) > 0 {
		t.Errorf("refused rules are there: %+v", rules)
	}
}

// Faults of the metadata service, by path and number.
func TestFault_Metadata(t *testing.T) {
	t.Parallel()
	get := func(b *bench, path string) (string, error) {
		// A separate client: the SDK's default gives up after 500 ms, too soon on a busy machine.
		out, err := imds.New(imds.Options{Endpoint: b.server.IMDSURL, Retryer: aws.NopRetryer{}, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}).GetMetadata(b.t.Context(), &imds.GetMetadataInput{Path: path})
		if err != nil {
			return "", err
		}
		defer out.Content.Close()
		body, err := io.ReadAll(out.Content)
		return string(body), err
	}
	for _, row := range []struct {
		fault fakeaws.Fault
		ok    bool
		want  string
	}{
		{fakeaws.Fault{Status: 503}, false, ""},
		{fakeaws.Fault{Reply: fakeaws.ReplyClosed}, false, ""},
		{fakeaws.Fault{Reply: fakeaws.ReplyTruncated}, false, ""},
		{fakeaws.Fault{Reply: fakeaws.ReplyEmpty}, true, ""},
		{fakeaws.Fault{Reply: fakeaws.ReplyHTML}, true, "<!DOCTYPE html>"},
		{fakeaws.Fault{Reply: fakeaws.ReplyGarbage}, true, "\x00\xff"},
	} {
		b := newBench(t, fakeaws.Options{})
		b.fault(fakeaws.Rule{Action: "IMDS", Path: "meta-data/m*", First: 2, Fault: row.fault})
		if got, err := get(b, "mac"); err != nil || got != b.instance.PrimaryMAC {
			t.Errorf("%s: first request: %q (%v)", row.fault.String(), got, err)
		}
		body, err := get(b, "mac")
		if len(body) > len(row.want) && row.want != "" {
			body = body[:len(row.want)]
		}
		if (err == nil) != row.ok || row.ok && body != row.want {
			t.Errorf("%s: second request: %q (%v), want %q", row.fault.String(), body, err, row.want)
		}
		if got, err := get(b, "instance-id"); err != nil || got != b.instance.ID {
			t.Errorf("%s: another path: %q (%v)", row.fault.String(), got, err)
		}
		var faults []string
		for _, c := range b.IMDSCalls() {
			if c.Fault != "" {
				faults = append(faults, c.Path+" "+c.Fault)
			}
		}
		// net/http itself retries a GET whose connection was closed.
		if len(faults) == 0 || slices.ContainsFunc(faults, func(f string) bool { return f != "/latest/meta-data/mac "+row.fault.String() }) {
			t.Errorf("%s: log of faults %q", row.fault.String(), faults)
		}
		b.noViolations()
	}
}

// EC2 lags: the metadata service and the node show ENIs and addresses before EC2 lists them,
// and hide removed ones while EC2 still does.
func TestDescribeLag(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	b := newBench(t, fakeaws.Options{DescribeLag: 10 * time.Second, Now: func() time.Time { return now }})
	type seen struct{ IMDS, EC2, Instance, Addresses int }
	look := func() (s seen) {
		macs, _ := metadata(t, b.imds(), "network/interfaces/macs")
		s.IMDS = len(strings.Fields(macs))
		for _, n := range must(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{}).NetworkInterfaces {
			if n.Attachment != nil {
				s.EC2++
				s.Addresses += len(n.PrivateIpAddresses)
			}
		}
		s.Instance = len(must(b, b.ec2.DescribeInstances, &ec2.DescribeInstancesInput{}).Reservations[0].Instances[0].NetworkInterfaces)
		return s
	}
	var got []seen
	step := func() {
		got = append(got, look())
		now = now.Add(5 * time.Second)
	}
	step() // the instance and its primary ENI appear immediately
	e := b.eni(fakeaws.ENISpec{IPs: 1})
	attachment, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	byID := &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{e.ID}}
	if code := refused(b, b.ec2.DescribeNetworkInterfaces, byID); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("a new ENI: %s, want it not found", code)
	}
	step()
	if err := b.Unassign(e.ID, netip.PrefixFrom(e.SecondaryIPs[0], 32)); err != nil {
		t.Fatal(err)
	}
	step()
	step()
	if err := b.DetachENI(attachment); err != nil {
		t.Fatal(err)
	}
	step()
	step()
	step()
	if diff := cmp.Diff([]seen{{1, 1, 1, 1}, {2, 1, 1, 1}, {2, 1, 1, 1}, {2, 2, 2, 3}, {1, 2, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 1}}, got); diff != "" {
		t.Errorf("seen every 5 s (-want +got):\n%s", diff)
	}
	b.SetDescribeLag(time.Hour)
	if err := b.DeleteENI(e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ec2.DescribeNetworkInterfaces(t.Context(), byID); err != nil {
		t.Errorf("an ENI that went since the lag began: %v, want it still listed", err)
	}
	b.SetDescribeLag(0)
	if code := refused(b, b.ec2.DescribeNetworkInterfaces, byID); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("a deleted ENI without lag: %s", code)
	}
	b.noViolations()
}

// The metadata service keeps showing an ENI and an address that EC2 has removed.
func TestMetadataLag_ShowsWhatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	e := b.eni(fakeaws.ENISpec{IPs: 1})
	attachment, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.SetMetadataLag(time.Hour)
	if err := errors.Join(b.Unassign(e.ID, netip.PrefixFrom(e.SecondaryIPs[0], 32)), b.DetachENI(attachment), b.DeleteENI(e.ID)); err != nil {
		t.Fatal(err)
	}
	if got, _ := metadata(t, b.imds(), "network/interfaces/macs/"+e.MAC+"/local-ipv4s"); got != fmt.Sprintf("%s\n%s", e.PrimaryIP, e.SecondaryIPs[0]) {
		t.Errorf("addresses of a deleted ENI: %q", got)
	}
	b.SetMetadataLag(0)
	if got, _ := metadata(t, b.imds(), "network/interfaces/macs"); strings.Contains(got, e.MAC) {
		t.Errorf("without lag: %q", got)
	}
	b.noViolations()
}
